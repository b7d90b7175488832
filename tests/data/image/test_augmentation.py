import numpy as np
import pytest

import errors
from data.image import augmentation


def images(batch=6, height=5, width=9, channels=2):
    return np.random.default_rng(0).integers(1, 256, (batch, height, width, channels)).astype("u1")


def test_translate_by_hand():
    image = np.array([[1, 2, 3], [4, 5, 6]])
    moved = augmentation.translate(np.stack([image] * 4), np.array([0, 1, -1, 0]), np.array([0, 0, 1, -2]))
    assert moved.tolist() == [
        [[1, 2, 3], [4, 5, 6]],
        [[0, 0, 0], [1, 2, 3]],
        [[0, 4, 5], [0, 0, 0]],
        [[3, 0, 0], [6, 0, 0]],
    ]


def test_shift_moves_each_image_on_its_own_and_no_further_than_allowed():
    before = images(batch=400, height=28, width=56)  # 2 down, 4 across
    after = augmentation.augment("shift", before, seed=0, step=0)
    padded = np.pad(before, [(0, 0), (2, 2), (4, 4), (0, 0)])
    found = set()
    for i in range(len(before)):
        fits = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-4, 5)
            if np.array_equal(after[i], padded[i, 2 - down : 30 - down, 4 - right : 60 - right])
        ]
        assert len(fits) == 1
        found |= set(fits)
    assert len(found) == 5 * 9


def test_flip_mirrors_about_half():
    before = images(batch=400)
    after = augmentation.augment("flip", before, seed=0, step=0)
    same = (after == before).all(axis=(1, 2, 3))
    mirrored = (after == before[:, :, ::-1]).all(axis=(1, 2, 3))
    assert (same ^ mirrored).all()
    assert 140 < same.sum() < 260


def test_none_changes_nothing():
    before = images()
    assert augmentation.augment("none", before, seed=0, step=0) is before


@pytest.mark.parametrize("name", augmentation.names())
def test_a_pure_function_of_seed_and_step_that_leaves_its_input(name):
    before = images(batch=40)
    copy = before.copy()
    after = augmentation.augment(name, before, seed=3, step=7)
    assert after.dtype == np.uint8
    assert after.shape == before.shape
    assert np.array_equal(before, copy)
    assert np.array_equal(after, augmentation.augment(name, before, seed=3, step=7))
    if name != "none":
        assert not np.array_equal(after, augmentation.augment(name, before, seed=3, step=8))
        assert not np.array_equal(after, augmentation.augment(name, before, seed=4, step=7))


@pytest.mark.parametrize("name", augmentation.names())
def test_smallest_image(name):
    assert augmentation.augment(name, images(1, 1, 1, 1), seed=0, step=0).shape == (1, 1, 1, 1)


def test_unknown_name(one_line):
    with pytest.raises(errors.UserError) as raised:
        augmentation.augment("shft", images(), seed=0, step=0)
    one_line(raised, "'shft'", "Did you mean 'shift'?", "shift_flip")
