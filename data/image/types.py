"""Images in memory: labelled, or with captions."""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np

import errors
from data.examples import Batch, Examples, Size
from data.splits import Splits


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledImages(Examples):
    """Labelled images of one size: the fields `image` and `label`; made by `of`."""

    @classmethod
    def of(cls, images: np.ndarray, labels: np.ndarray) -> "LabelledImages":
        """Images with their labels.

        Args:
            images: uint8 `[n, height, width, channels]`, n >= 1.
            labels: int32 `[n]`, the class of each image.
        """
        return cls({"image": images, "label": labels})

    def __post_init__(self):
        super().__post_init__()
        images, labels = self.images, self.labels
        if images.dtype != np.uint8 or images.ndim != 4 or not len(images):
            raise ValueError(
                "images must be uint8 [n >= 1, height, width, channels], not "
                f"{images.dtype} {list(images.shape)}"
            )
        if labels.dtype != np.int32 or labels.ndim != 1:
            raise ValueError(
                f"labels must be int32 [{len(images)}], like the images, not "
                f"{labels.dtype} {list(labels.shape)}"
            )

    @property
    def images(self) -> np.ndarray:
        """The pixels, uint8 `[n, height, width, channels]`."""
        return self.fields["image"]

    @property
    def labels(self) -> np.ndarray:
        """The class of each image, int32 `[n]`."""
        return self.fields["label"]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over shape and content of the images and labels, in hex."""
        # Not that of `Examples`: it is what checkpoints of image runs have always held.
        digest = hashlib.sha256(repr(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        digest.update(np.ascontiguousarray(self.labels, "<i4").data)
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class ImageSplits(Splits[LabelledImages]):
    """The splits of a run, with what labels and pixels mean.

    Attributes:
        label_names: the word for each class; labels are positions in it.
        scale: the pixel value that counts as 1.0 (255; for digits and pointed digits 16).
    """

    label_names: tuple[str, ...]
    scale: float


@dataclasses.dataclass(frozen=True)
class PublishedImages:
    """All there is of a data set, before a run takes its share.

    Attributes:
        label_names: the word for each class.
        scale: the pixel value that counts as 1.0.
        splits: those that there are, "train" at least.
    """

    label_names: tuple[str, ...]
    scale: float
    splits: dict[str, LabelledImages]

    def check(self, name: str) -> None:
        """Raises a one-line error if labels are out of range or images not all of one size."""
        shape = self.splits["train"].images.shape[1:]
        for key, split in self.splits.items():
            if split.images.shape[1:] != shape:
                raise errors.UserError(
                    f"{name}: images must be of one size, but those of train are {list(shape)} and "
                    f"those of {key} {list(split.images.shape[1:])}"
                )
            wrong = np.flatnonzero((split.labels < 0) | (split.labels >= len(self.label_names)))
            if len(wrong):
                raise errors.RunError(
                    f"{name}: label {split.labels[wrong[0]]} of example {wrong[0]:,} of {key} is out of "
                    f"range, 0 to {len(self.label_names) - 1} are allowed"
                )


@dataclasses.dataclass(frozen=True, eq=False)
class Captioned:
    """Images, each with one caption or several.

    Attributes:
        images: uint8 `[n, height, width, channels]`.
        captions: of each image, one or more; words in lower case with a space between them.
        boxes: of each image, int16 `[words, 4]`: where the thing is that a word of the first caption names,
            as top, left, bottom and right in pixels, the last two exclusive; zeros for any other word. Empty
            where nobody knows.
    """

    images: np.ndarray
    captions: Sequence[Sequence[str]]
    boxes: Sequence[np.ndarray] = ()

    def __post_init__(self):
        if len(self.captions) != len(self.images) or len(self.boxes) not in (0, len(self.images)):
            raise ValueError(
                f"{len(self.images)} images, but captions of {len(self.captions)} and boxes of "
                f"{len(self.boxes)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: np.ndarray) -> "Captioned":
        """The images at `indices`, in that order."""
        boxes = [self.boxes[index] for index in indices] if len(self.boxes) else ()
        return Captioned(self.images[indices], [self.captions[index] for index in indices], boxes)


@dataclasses.dataclass(frozen=True, eq=False)
class ImageExamples(Examples):
    """Examples that share images: an image with five captions makes five examples and is held once.

    Attributes:
        images: `[m, height, width, channels]`; the field `image` says which of them an example has.
    """

    images: np.ndarray = dataclasses.field(kw_only=True)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, shapes and contents, in hex."""
        digest = hashlib.sha256(super().fingerprint.encode())
        digest.update(repr((self.images.dtype.str, self.images.shape)).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        return digest.hexdigest()

    def gather(self, indices: np.ndarray, size: Size) -> Batch:
        """A batch whose `image` is the image itself, `[B, height, width, channels]`."""
        batch = super().gather(indices, size)
        return batch | {"image": self.images[batch["image"]]}
