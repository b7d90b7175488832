"""A folder of your own images, one subfolder per class: `dataset=folder:DIR`.

Two layouts are understood.

    DIR/train/CLASS/*, DIR/test/CLASS/* and, if you like, DIR/validation/CLASS/*
    DIR/CLASS/*, of which about a fifth, chosen by the file names alone, is kept for the test: an
        image is a test image if the first 32 bits of the SHA-256 of "CLASS/FILE", as a fraction,
        are below 0.2. So no image changes sides when others are added or taken away.

All images must be of one size and all grey or all RGB; nothing is resized or converted behind your
back. Hidden files are passed over, any other file that is no image is an error.
"""

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

import errors
from data.image import dataset

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
_SPLITS = ("train", "validation", "test")
_TEST_FRACTION = 0.2
# Black-and-white and palette files are other ways to store grey and RGB images.
_MODES = {"L": "L", "1": "L", "RGB": "RGB", "P": "RGB"}


def read(folder: Path) -> dataset.Source:
    """Reads every image of a folder.

    Args:
        folder: laid out in one of the two ways above.

    Returns:
        The classes, in alphabetical order, and the splits; scale 255.

    Raises:
        errors.UserError: the layout is another, or an image is unreadable or unlike the others;
            the first such file is named.
    """
    if not folder.is_dir():
        raise errors.UserError(f"image folder {folder} does not exist")
    parts = [split for split in _SPLITS if (folder / split).is_dir()]
    if parts:
        others = sorted({path.name for path in _visible(folder)} - set(parts))
        if others:
            raise errors.UserError(
                f"image folder {folder} has {', '.join(parts)} and also {others[0]!r}; beside "
                f"{', '.join(_SPLITS)} nothing else is allowed"
            )
        files = {split: _by_class(folder / split) for split in parts}
        for split in ("train", "test"):
            if split not in files:
                raise errors.UserError(f"image folder {folder} has {' and '.join(parts)} but no {split}")
    else:
        files = _part_by_name(_by_class(folder), folder)
    classes = tuple(files["train"])
    for split, by_class in files.items():
        for name in by_class:
            if name not in classes:
                raise errors.UserError(
                    f"class {name!r} of {folder / split} is none of train's: {', '.join(classes)}"
                )
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


def _by_class(folder: Path) -> dict[str, list[Path]]:
    by_class = {}
    for path in _visible(folder):
        if not path.is_dir():
            raise errors.UserError(f"{path} is no folder: {folder} must hold a folder per class")
        members = _visible(path)
        for member in members:
            if member.suffix.lower() not in SUFFIXES or not member.is_file():
                raise errors.UserError(f"{member} is no image file; allowed endings: {' '.join(SUFFIXES)}")
        if not members:
            raise errors.UserError(f"class folder {path} holds no images")
        by_class[path.name] = members
    if not by_class:
        raise errors.UserError(f"image folder {folder} is empty: it must hold a folder per class")
    return by_class


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _part_by_name(by_class: dict[str, list[Path]], folder: Path) -> dict[str, dict[str, list[Path]]]:
    files: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for name, members in by_class.items():
        files["train"][name] = [path for path in members if not _is_test(path)]
        files["test"][name] = [path for path in members if _is_test(path)]
    for split, chosen in files.items():
        if not any(chosen.values()):
            raise errors.UserError(
                f"no image of {folder} falls to {split} by its name: add images, or part them "
                "yourself into train and test folders"
            )
    return files


def _is_test(path: Path) -> bool:
    digest = hashlib.sha256(f"{path.parent.name}/{path.name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < _TEST_FRACTION * 2**32


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
