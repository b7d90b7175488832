"""Image files, and images of any mode, as arrays of pixels."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import errors

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
# Black-and-white and palette files are other ways to store grey and RGB images.
_MODES = {"L": "L", "1": "L", "RGB": "RGB", "P": "RGB"}
_GREY = ("1", "L", "I", "I;16", "F")
_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)  # what PIL raises


def stored(path: Path) -> tuple[np.ndarray, str]:
    """The pixels of a grey or RGB file as they are, uint8 `[height, width, channels]`, and mode L or RGB.

    Raises:
        errors.UserError: it cannot be read, or is neither grey nor RGB.
    """
    try:
        with Image.open(path) as image:
            if image.mode in _MODES:
                converted = image.convert(_MODES[image.mode])
                return np.atleast_3d(np.asarray(converted)), converted.mode
            mode = image.mode
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    raise errors.UserError(f"{path} has mode {mode}; allowed: grey (L, 1) or RGB (RGB, P)")


def exact(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """The pixels of a file that must have a shape, uint8 `[height, width, channels]`.

    Raises:
        errors.UserError: it cannot be read, or has another shape.
    """
    if not path.is_file():
        raise errors.UserError(f"image file {path} does not exist")
    pixels = stored(path)[0]
    if pixels.shape != shape:
        raise errors.UserError(f"{path} is {list(pixels.shape)}, but images of {list(shape)} are needed")
    return pixels


def fitted(path: Path, size: tuple[int, int] | None = None, channels: int | None = None) -> np.ndarray:
    """`fit` of a file.

    Raises:
        errors.UserError: it cannot be read.
    """
    try:
        with Image.open(path) as image:
            return fit(image, size, channels)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def fit(image: Image.Image, size: tuple[int, int] | None = None, channels: int | None = None) -> np.ndarray:
    """The pixels of an image, brought to a size, uint8 `[height, width, channels]`.

    Args:
        image: of any mode.
        size: height and width: scaled until it covers them, cut to its middle; None leaves it as it is.
        channels: 1, grey, or 3, RGB; None is whichever it is.
    """
    mode = {None: "L" if image.mode in _GREY else "RGB", 1: "L", 3: "RGB"}[channels]
    converted = image.convert(mode)
    if size is not None and converted.size != size[::-1]:
        converted = ImageOps.fit(converted, size[::-1], Image.Resampling.BILINEAR)
    return np.atleast_3d(np.asarray(converted))


def _unreadable(path: Path, error: Exception) -> errors.UserError:
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())
    return errors.UserError(f"{path} cannot be read as an image: {reason}")
