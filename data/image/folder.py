"""A folder of your own images, one subfolder per class: `dataset=folder:DIR`.

See data/class_folders.py for how it may be laid out. All images must be of one size and all grey or all
RGB; nothing is resized or converted behind your back.
"""

from pathlib import Path

import numpy as np
from PIL import Image

import errors
from data import class_folders
from data.image import dataset

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
# Black-and-white and palette files are other ways to store grey and RGB images.
_MODES = {"L": "L", "1": "L", "RGB": "RGB", "P": "RGB"}


def read(folder: Path) -> dataset.Source:
    """Reads every image of a folder.

    Args:
        folder: laid out in one of the two ways of data/class_folders.py.

    Returns:
        The classes, in alphabetical order, and the splits; scale 255.

    Raises:
        errors.UserError: the layout is another, or an image is unreadable or unlike the others;
            the first such file is named.
    """
    files = class_folders.read(folder, SUFFIXES, "image")
    classes = tuple(files["train"])
    first = next(path for members in files["train"].values() for path in members)
    return dataset.Source(
        classes,
        255.0,
        {split: _read_split(by_class, classes, first) for split, by_class in files.items()},
    )


def image(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """The pixels of one file, uint8 `[height, width, channels]`.

    Raises:
        errors.UserError: it cannot be read, or has another shape.
    """
    if not path.is_file():
        raise errors.UserError(f"image file {path} does not exist")
    pixels = _open(path)[0]
    if pixels.shape != shape:
        raise errors.UserError(f"{path} is {list(pixels.shape)}, but images of {list(shape)} are needed")
    return pixels


def _read_split(by_class: dict[str, list[Path]], classes: tuple[str, ...], first: Path) -> dataset.ImageSplit:
    size, mode = _open(first)[1:]
    pixels, labels = [], []
    for name, members in by_class.items():
        for path in members:
            array, this_size, this_mode = _open(path)
            if (this_size, this_mode) != (size, mode):
                raise errors.UserError(
                    f"{path} is {this_size[0]}x{this_size[1]} {this_mode}, but {first} is "
                    f"{size[0]}x{size[1]} {mode}: all images must be of one size and mode"
                )
            pixels.append(array)
            labels.append(classes.index(name))
    return dataset.ImageSplit(np.stack(pixels), np.array(labels, np.int32))


def _open(path: Path) -> tuple[np.ndarray, tuple[int, int], str]:
    """Pixels uint8 [height, width, channels], (width, height) and mode L or RGB."""
    try:
        with Image.open(path) as image:
            if image.mode in _MODES:
                converted = image.convert(_MODES[image.mode])
                pixels = np.asarray(converted)
                return np.atleast_3d(pixels), converted.size, converted.mode
            mode = image.mode
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = " ".join(str(error).split())
        raise errors.UserError(f"{path} cannot be read as an image: {reason}") from error
    raise errors.UserError(f"{path} has mode {mode}; allowed: grey (L, 1) or RGB (RGB, P)")
