import time

import numpy as np
import pytest

from data.image import load
from data.image.builders import digits
from data.image.generated import pointed_digits


def cells(pixels):
    """[16, 16, 3] -> [cell, channel, 8, 8]."""
    return pixels.reshape(2, 8, 2, 8, 3).transpose(0, 2, 4, 1, 3).reshape(4, 3, 8, 8).astype(int)


def moved(digit):
    """All nine places of a digit in its cell, cut off at the border: [9, 8, 8]."""
    padded = np.pad(digit, 1)
    return np.stack([padded[i : i + 8, j : j + 8] for i in range(3) for j in range(3)])


@pytest.fixture(scope="module")
def base_digits():
    """Every digit of each split in all its places, with its class."""
    return {
        split: (
            np.stack([moved(digit[..., 0]) for digit in part.images]).astype(int),
            part.labels,
        )
        for split, part in digits.source().splits.items()
    }


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_image_follows_the_recipe(split, base_digits):
    """Takes images apart again, knowing the recipe only: digit, second digit, square, noise."""
    size = 40
    pointed = pointed_digits.generate(split, size, seed=3)
    control = pointed_digits.generate(split, size, seed=3, control=True)
    places, classes = base_digits[split]
    assert pointed.labels.tolist() == control.labels.tolist()
    second_classes = []
    for pixels, plain, label in zip(pointed.images, control.images, pointed.labels, strict=True):
        # The control: noise 0 to 3 everywhere, and one digit of the label's class in one cell.
        plain = cells(plain)
        first = np.argwhere(plain.max(axis=(2, 3)) > 3)
        assert len(first) == 1
        first_cell, first_channel = first[0]
        noise = plain[first_cell, first_channel] - places[classes == label]
        assert ((noise >= 0) & (noise <= 3)).all(axis=(2, 3)).any()

        # What the pointed image has on top: a second digit and the square, and nothing else.
        extra = cells(pixels) - plain
        (second, third) = np.argwhere(extra.any(axis=(2, 3)))
        square = extra[tuple(third)]
        if second[1] == first_channel:
            second, third, square = third, second, extra[tuple(second)]
        assert len({first_cell, second[0], third[0]}) == 3
        assert third[1] == first_channel != second[1]
        rows, columns = np.nonzero(square)
        assert (np.ptp(rows), np.ptp(columns), len(rows)) == (3, 3, 16)
        assert set(square[rows, columns]) == {12}
        match = (places == extra[tuple(second)]).all(axis=(2, 3)).any(axis=1)
        assert match.any()
        second_classes.append(classes[match][0])
    assert set(second_classes) <= set(range(5))
    assert 2 <= np.sum(second_classes == pointed.labels) <= 20  # drawn independently: 8 expected


def test_shape_levels_and_classes():
    data = load.labelled("pointed_digits", train_size=3_000, split_seed=1)
    assert data.train.images.shape == (3_000, 16, 16, 3)
    assert data.label_names == ("0", "1", "2", "3", "4")
    assert data.scale == 16.0
    assert (len(data.validation), len(data.test)) == (2_000, 5_000)
    for split in (data.train, data.validation, data.test):
        assert split.images.min() == 0
        assert 16 < split.images.max() <= 20
        np.testing.assert_allclose(np.bincount(split.labels) / len(split), 0.2, atol=0.03)


def test_noise_is_uniform_and_everywhere():
    plain = pointed_digits.generate("train", 2_000, seed=0, control=True).images
    # The control has one digit in one of 4 cells and 3 channels: 11 in 12 values are noise alone.
    low = np.bincount(plain.ravel(), minlength=21)[:4] / plain.size
    np.testing.assert_allclose(low, [0.25] * 4, atol=0.02)
    assert (plain.max(axis=0) > 3).mean() > 0.95  # digits come to every cell in every channel


def test_examples_are_nested_over_blocks_and_differ_between_seeds():
    few = load.labelled("pointed_digits", train_size=1_500, split_seed=4)
    many = load.labelled("pointed_digits", train_size=2_500, split_seed=4)
    other = load.labelled("pointed_digits", train_size=1_500, split_seed=5)
    assert np.array_equal(few.train.images, many.train.images[:1_500])
    assert np.array_equal(few.train.labels, many.train.labels[:1_500])
    assert not np.array_equal(few.train.images[0], other.train.images[0])
    assert not np.array_equal(many.train.images[0], many.train.images[1_000])
    for held_out in ("validation", "test"):
        assert getattr(few, held_out).fingerprint == getattr(other, held_out).fingerprint
    assert not np.array_equal(few.train.images[0], few.validation.images[0])


def test_no_digit_of_the_test_is_trained_on():
    drawn = {
        split: {digit.tobytes() for digit in part.images} for split, part in digits.source().splits.items()
    }
    assert {split: len(found) for split, found in drawn.items()} == {
        "train": 1_200,
        "validation": 200,
        "test": 397,
    }
    assert len(set.union(*drawn.values())) == 1_797


def test_default_and_smallest_size():
    assert len(load.labelled("pointed_digits_control").train) == 10_000
    assert len(load.labelled("pointed_digits", train_size=1).train) == 1


def test_100_000_images_take_seconds():
    start = time.process_time()
    pointed_digits.generate("train", 100_000, seed=0)
    assert time.process_time() - start < 3
