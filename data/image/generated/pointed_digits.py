"""Pointed digits: a generated task that cannot be solved without relating two places of an image.

Each image is 16 x 16 RGB, 2 x 2 cells of 8 x 8. Two digits of classes 0 to 4 stand in two cells, in
two different colours; in a third cell a square has the colour of one of them, and the label is the
class of *that* digit. Seeing both digits but not the square's colour, one is right at most six times
in ten (half the time, and again when both classes agree: 1/2 + 1/2 * 1/5); chance is one in five.

How example i is drawn, all choices uniform and independent:
 1. three different cells and two different colour channels;
 2. a class for each of two digits, and a digit of that class among scikit-learn's (levels 0-16);
 3. each digit moved inside its cell by -1, 0 or +1 pixels on each axis; what would leave the cell is
    cut off, so that no cell is ever painted on by its neighbour;
 4. the first digit into the first cell and channel, the second into the second;
 5. a 4 x 4 square of level 12 anywhere within the third cell, in the channel of the first digit;
 6. noise 0 to 3 on every pixel of every channel; clipped at 20. Level 16 counts as 1.0.

The *control* is made of the very same draws but paints neither the second digit nor the square:
nothing is to be related, and the label can be read off one place.

Digits to train, validate and test on come from the three splits of data/image/builders/digits.py, so that no
digit of the test was ever seen. Example i is a pure function of (seed, split, i): the first n examples of a
seed are the same whatever n is, and there is no end to them. Validation and test are the same for
every seed.
"""

import functools
import itertools

import numpy as np

from data import streams
from data.image import augmentation
from data.image.builders import digits
from data.image.types import LabelledImages, PublishedImages

CLASSES = tuple("01234")
SCALE = 16.0
TRAIN_SIZE = 10_000  # where the caller asks for "all" of a data set without end
VALIDATION_SIZE = 2_000
TEST_SIZE = 5_000

_BLOCK = 1_000  # examples drawn from one stream; part of what defines the data set
_SHARED_SEED = 0
_CELLS = np.array(list(itertools.permutations(range(4), 3)))
_CHANNELS = np.array(list(itertools.permutations(range(3), 2)))


def source(train_size: int, seed: int, *, control: bool = False) -> PublishedImages:
    """The data set with `train_size` training examples drawn by `seed`."""
    return PublishedImages(
        CLASSES,
        SCALE,
        {
            "train": generate("train", train_size, seed, control=control),
            "validation": generate("validation", VALIDATION_SIZE, _SHARED_SEED, control=control),
            "test": generate("test", TEST_SIZE, _SHARED_SEED, control=control),
        },
    )


def generate(split: str, size: int, seed: int, *, control: bool = False) -> LabelledImages:
    """The first `size` examples of a split.

    Args:
        split: "train", "validation" or "test"; decides which digits are drawn from.
        size: how many, >= 1.
        seed: the same seed gives the same examples.
        control: leave out the second digit and the square.

    Returns:
        Images uint8 [size, 16, 16, 3] of levels 0 to 20, and labels 0 to 4.
    """
    blocks = [_block(split, seed, index, control) for index in range(-(-size // _BLOCK))]
    pixels, labels = (np.concatenate(part)[:size] for part in zip(*blocks, strict=True))
    return LabelledImages.of(pixels, labels)


def _block(split: str, seed: int, index: int, control: bool) -> tuple[np.ndarray, np.ndarray]:
    stream = streams.Stream(seed, f"pointed digits {split}", index)
    cells = _CELLS[stream.integers(len(_CELLS), _BLOCK)]
    channels = _CHANNELS[stream.integers(len(_CHANNELS), _BLOCK)]
    digits_of, counts = _digits_by_class(split)
    classes = stream.integers(len(CLASSES), (_BLOCK, 2))
    drawn = digits_of[classes, stream.integers(counts[classes], (_BLOCK, 2))]
    moves = stream.integers(3, (_BLOCK, 2, 2)) - 1
    corners = stream.integers(5, (_BLOCK, 2))
    noise = (stream.octets(_BLOCK * 16 * 16 * 3) & 3).reshape(_BLOCK, 2, 2, 8, 8, 3)

    rows = np.arange(_BLOCK)
    canvas = np.zeros((_BLOCK, 4, 3, 8, 8), np.uint8)
    for which in range(1 if control else 2):
        canvas[rows, cells[:, which], channels[:, which]] = augmentation.translate(
            drawn[:, which], moves[:, which, 0], moves[:, which, 1]
        )
    if not control:
        inside = (np.arange(8) - corners[:, :, None]) // 4 == 0  # [n, axis, 8]
        square = inside[:, 0, :, None] & inside[:, 1, None, :]
        canvas[rows, cells[:, 2], channels[:, 0]] = 12 * square.astype(np.uint8)
    painted = canvas.reshape(_BLOCK, 2, 2, 3, 8, 8).transpose(0, 1, 2, 4, 5, 3)
    noisy = np.minimum(painted + noise, 20)  # [n, cell row, cell column, y, x, channel]
    return noisy.swapaxes(2, 3).reshape(_BLOCK, 16, 16, 3), classes[:, 0].astype(np.int32)


@functools.cache
def _digits_by_class(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Digits as uint8 [class, n, 8, 8], short classes padded with zeros, and the n of each."""
    part = digits.source().splits[split]
    by_class = [part.images[part.labels == label, :, :, 0] for label in range(len(CLASSES))]
    counts = np.array([len(members) for members in by_class])
    padded = np.zeros((len(CLASSES), counts.max(), 8, 8), np.uint8)
    for label, members in enumerate(by_class):
        padded[label, : len(members)] = members
    return padded, counts
