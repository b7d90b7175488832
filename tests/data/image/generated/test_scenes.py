"""Scenes: sentences by hand, and every image taken apart again by what is said of it."""

import numpy as np
import pytest

from data.examples import Examples
from data.image import load
from data.image.builders import digits
from data.image.generated import scenes
from data.image.types import ImageSplits, LabelledImages
from errors import UserError

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="module")
def data():
    return load.captioned("digit_scenes", train_size=40, split_seed=3)


@pytest.mark.parametrize(
    "cells, rare, said",
    [
        ((0, 2), (0,), "a bag left of a coat"),
        ((3, 4), (1,), "a bag beside a coat"),
        ((1, 7), (0,), "a bag above a coat"),
        ((1, 4), (1,), "a bag over a coat"),
        ((0, 8), (1,), "a bag above and left of a coat"),  # has no rarer wording
        ((2, 3), (0,), "a bag above and right of a coat"),
        ((1, 3, 5, 8), (0, 1, 0), "a bag above and right of a coat beside some trousers above a boot"),
    ],
)
def test_sentences(cells, rare, said):
    names = ("a bag", "a coat", "some trousers", "a boot")[: len(cells)]
    words, places = scenes.sentence(names, cells, rare)
    assert " ".join(words) == said
    assert [words[place] for place in places] == [name.split()[-1] for name in names]
    usual, _ = scenes.sentence(names, cells, [False] * 3)
    assert scenes.plain(said) == " ".join(usual)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_scene_is_what_is_said(split, data):
    """Takes images apart knowing the digits alone: one of the class named in each box, and nothing else."""
    part = getattr(data, split)
    known = digits.source().splits[split]
    of_class = [
        {(image[..., 0].astype(int) * 255 // 16).tobytes() for image in known.images[known.labels == label]}
        for label in range(10)
    ]
    for image, (caption,), boxes in list(zip(part.images, part.captions, part.boxes, strict=True))[:40]:
        words, left = caption.split(), image[..., 0].astype(int)
        assert boxes.shape == (len(words), 4)
        named = np.flatnonzero(boxes.any(axis=1))
        assert [words[place] for place in named] == [word for word in words if word in WORDS]
        assert 2 <= len(named) <= 4
        cells = []
        for place in named:
            top, low, bottom, high = boxes[place]
            inside = left[top:bottom, low:high]
            assert np.ascontiguousarray(inside).tobytes() in of_class[WORDS.index(words[place])]
            inside[...] = 0
            cells.append((top - 1) // 10 * 3 + (low - 1) // 10)
        assert not left.any()
        assert cells == sorted(set(cells))
        names = [f"an {words[p]}" if words[p] == "eight" else f"a {words[p]}" for p in named]
        assert scenes.plain(caption) == " ".join(scenes.sentence(names, cells, [False] * 3)[0])


def test_examples_are_nested_over_blocks_and_differ_between_seeds(data):
    many, other = (load.captioned("digit_scenes", train_size=510, split_seed=seed) for seed in (3, 4))
    np.testing.assert_array_equal(many.train.images[:40], data.train.images)
    assert list(many.train.captions[:40]) == list(data.train.captions)
    assert (many.train.images[500:] != many.train.images[:10]).any(axis=(1, 2, 3)).all()
    assert (other.train.images[:40] != data.train.images).any(axis=(1, 2, 3)).all()
    for part in ("validation", "test"):
        np.testing.assert_array_equal(getattr(many, part).images, getattr(other, part).images)
    assert (len(many.validation), len(many.test)) == (300, 600)


def test_draws_are_even(data):
    counts = [len([word for word in caption.split() if word in WORDS]) for (caption,) in data.test.captions]
    np.testing.assert_allclose(np.bincount(counts)[2:] / 600, [1 / 3] * 3, atol=0.05)
    wordings = " ".join(caption for (caption,) in data.test.captions)
    rare, usual = wordings.count("beside"), wordings.count("left of") - wordings.count("and left of")
    np.testing.assert_allclose(rare / (rare + usual), 1 / 4, atol=0.05)
    corners = np.concatenate([boxes[boxes.any(axis=1), :2] for boxes in data.test.boxes])
    rows, columns = ((corners - 1) // 10).T
    np.testing.assert_allclose(np.bincount(3 * rows + columns) / len(corners), [1 / 9] * 9, atol=0.03)


def test_the_content_is_pinned(data):
    part = data.train.take(np.arange(10))
    fields = {"image": part.images, "caption": np.array([caption for (caption,) in part.captions])}
    pinned = "37b1ecfc6cfd68c5405f3169d0e2efc989b76419a3337cb24a65fdb53830b7e6"
    assert Examples(fields).fingerprint == pinned


def test_larger_images_are_shrunk_by_means():
    pixels = np.zeros((3, 28, 28, 1), np.uint8)
    pixels[:, ::2, ::2], pixels[:, 1::2, 1::2] = 255, 105  # means of 90
    bags = LabelledImages.of(pixels, np.array([8, 8, 8], np.int32))
    things = ImageSplits(bags, bags, bags, ("",) * 10, 255.0)
    made = scenes.generate("fashion_scenes", things, "train", 5, 0)
    assert made.images.shape == (5, 56, 56, 1)
    for image, (caption,), boxes in zip(made.images, made.captions, made.boxes, strict=True):
        assert (image == 90).sum() == caption.split().count("bag") * 14 * 14
        for top, left, bottom, right in boxes[boxes.any(axis=1)]:
            assert (image[top:bottom, left:right] == 90).all()


def test_no_size_but_their_own(one_line):
    with pytest.raises(UserError) as error:
        load.captioned("digit_scenes", image_size=64)
    one_line(error, "image_size 64", "digit_scenes has its own")
