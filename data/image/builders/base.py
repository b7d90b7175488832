"""What the builders of image data sets share."""

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data.builder import Builder, Record

Arrays = tuple[np.ndarray, np.ndarray]  # images uint8 [n, height, width, channels], labels int [n]


class ImageBuilder(Builder):
    """A TFDS builder of labelled images, all of one size.

    Attributes:
        CLASSES: the word for each class.
        SHAPE: height, width and channels of every image.
        SCALE: the pixel value that counts as 1.0.
    """

    CLASSES: ClassVar[tuple[str, ...]]
    SHAPE: ClassVar[tuple[int, int, int]]
    SCALE: ClassVar[float] = 255.0
    SUPERVISED = ("image", "label")

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.METADATA = {"scale": cls.SCALE}

    @classmethod
    def features(cls) -> dict[str, Any]:
        """Pixels and a class."""
        return {
            # Not features.Image: that encodes arrays with TensorFlow, and a PNG takes
            # three times as long to read back as plain bytes do.
            "image": tfds.features.Tensor(
                shape=cls.SHAPE, dtype=np.uint8, encoding=tfds.features.Encoding.BYTES
            ),
            "label": tfds.features.ClassLabel(names=cls.CLASSES),
        }

    @classmethod
    def what(cls) -> str:
        """Images and their size."""
        return f"images of {'x'.join(map(str, cls.SHAPE))}"

    @classmethod
    @abc.abstractmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Arrays]:
        """Images (uint8 [n, height, width, channels]) and labels (int [n]) by split."""

    @classmethod
    def check(cls, split: str, examples: Arrays) -> None:
        """Sizes, counts and labels."""
        where, expected = cls.where(split), cls.SPLITS[split]
        images, labels = examples
        if images.shape[1:] != cls.SHAPE:
            raise errors.RunError(f"{where}: images are {list(images.shape[1:])}, expected {list(cls.SHAPE)}")
        for what, count in (("images", len(images)), ("labels", len(labels))):
            if count != expected:
                raise errors.RunError(f"{where}: {count:,} {what}, expected {expected:,}")
        wrong = np.flatnonzero(labels >= len(cls.CLASSES))
        if len(wrong):
            raise errors.RunError(
                f"{where}: label {labels[wrong[0]]} of example {wrong[0]:,} is out of range, "
                f"0 to {len(cls.CLASSES) - 1} are allowed"
            )

    @classmethod
    def records(cls, examples: Arrays) -> Iterator[Record]:
        """One image and label at a time."""
        for image, label in zip(*examples, strict=True):
            yield {"image": image, "label": int(label)}
