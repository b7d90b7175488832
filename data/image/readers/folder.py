"""A folder of your own images, one subfolder per class: `folder:DIR`.

See data/readers/class_folders.py for how it may be laid out. All images must be of one size and all grey or
all RGB; nothing is resized or converted behind your back.
"""

from pathlib import Path

import numpy as np

import errors
from data.image.readers import pixels
from data.image.types import LabelledImages, PublishedImages
from data.readers import class_folders


def read(folder: Path) -> PublishedImages:
    """Reads every image of a folder.

    Args:
        folder: laid out in one of the two ways of data/readers/class_folders.py.

    Returns:
        The classes, in alphabetical order, and the splits; scale 255.

    Raises:
        errors.UserError: the layout is another, or an image is unreadable or unlike the others;
            the first such file is named.
    """
    files = class_folders.read(folder, pixels.SUFFIXES, "image")
    classes = tuple(files["train"])
    first = next(path for members in files["train"].values() for path in members)
    return PublishedImages(
        classes,
        255.0,
        {split: _read_split(by_class, classes, first) for split, by_class in files.items()},
    )


def _read_split(by_class: dict[str, list[Path]], classes: tuple[str, ...], first: Path) -> LabelledImages:
    example, mode = pixels.stored(first)
    images, labels = [], []
    for name, members in by_class.items():
        for path in members:
            image, this_mode = pixels.stored(path)
            if image.shape != example.shape:
                raise errors.UserError(
                    f"{path} is {_told(image, this_mode)}, but {first} is {_told(example, mode)}: all images "
                    "must be of one size and mode"
                )
            images.append(image)
            labels.append(classes.index(name))
    return LabelledImages.of(np.stack(images), np.array(labels, np.int32))


def _told(image: np.ndarray, mode: str) -> str:
    return f"{image.shape[1]}x{image.shape[0]} {mode}"
