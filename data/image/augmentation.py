"""Random changes to a training batch that leave its labels true, vectorised in NumPy.

What happens to the batch of a step is a pure function of (seed, step), like the order of examples,
so a resumed run sees the very same pixels.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

import errors
from data import streams

Augmentation = Literal["none", "shift", "flip", "shift_flip"]


def translate(images: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Moves each image by whole pixels; what enters is zero, what leaves is lost.

    Args:
        images: [B, height, width, ...].
        down: rows to move each image by, int [B]; negative is up.
        right: columns to move each image by, int [B]; negative is left.

    Returns:
        An array like `images`.
    """
    batch, height, width, *rest = images.shape
    margin = int(max(np.abs(down).max(initial=0), np.abs(right).max(initial=0)))
    padded = np.zeros((batch, height + 2 * margin, width + 2 * margin, *rest), images.dtype)
    padded[:, margin : margin + height, margin : margin + width] = images
    # A view of every window there is, of which one per image is copied: many times faster than
    # gathering pixel by pixel.
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (height, width, *rest), axis=tuple(range(1, images.ndim))
    )
    return windows[(np.arange(batch), margin - down, margin - right, *(0 for _ in rest))]


def shift(images: np.ndarray, stream: streams.Stream) -> np.ndarray:
    """Moves each image by up to a fourteenth of its side (28 or 32 pixels: 2) on either axis."""
    batch, height, width = images.shape[:3]
    moves = []
    for side in (height, width):
        reach = max(1, round(side / 14))
        moves.append(stream.integers(2 * reach + 1, batch) - reach)
    return translate(images, *moves)


def flip(images: np.ndarray, stream: streams.Stream) -> np.ndarray:
    """Mirrors each image left to right with probability one half."""
    mirrored = stream.integers(2, len(images)).astype(bool)
    flipped = images.copy()
    flipped[mirrored] = images[mirrored, :, ::-1]
    return flipped


def shift_flip(images: np.ndarray, stream: streams.Stream) -> np.ndarray:
    """`shift`, then `flip`."""
    return flip(shift(images, stream), stream)


def none(images: np.ndarray, stream: streams.Stream) -> np.ndarray:
    """Leaves the images as they are."""
    del stream
    return images


_BY_NAME: dict[str, Callable[[np.ndarray, streams.Stream], np.ndarray]] = {
    function.__name__: function for function in (none, shift, flip, shift_flip)
}


def names() -> tuple[str, ...]:
    """Every augmentation that `augment` knows."""
    return tuple(_BY_NAME)


def check(name: str) -> str:
    """Returns `name`, or raises the one-line error for an unknown augmentation."""
    if name not in _BY_NAME:
        raise errors.unknown("augmentation", name, _BY_NAME)
    return name


def augment(name: Augmentation, images: np.ndarray, *, seed: int, step: int) -> np.ndarray:
    """The images of one training step, changed at random.

    Args:
        name: which of the changes above.
        images: uint8 [B, height, width, channels]; not written to.
        seed: with `step` decides all that is random.
        step: number of the training step, from 0.

    Returns:
        An array like `images`.

    Raises:
        errors.UserError: `name` is unknown.
    """
    return _BY_NAME[check(name)](images, streams.Stream(seed, "augmentation", step))
