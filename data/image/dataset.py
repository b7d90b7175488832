"""Image classification data, held in memory: `load(name)` is the one way in."""

import dataclasses
import functools
import hashlib
import operator
from pathlib import Path

import numpy as np

import errors
from data import builders, streams, subsets
from data.examples import Batch, Size

GENERATED = builders.GENERATED["image"]
EMBEDDED = ("digits", *GENERATED)  # ready on a fresh machine, without `python -m data.prepare`
FOLDER = "folder:"


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSplit:
    """Labelled images.

    Attributes:
        images: uint8 [n, height, width, channels], n >= 1.
        labels: int32 [n], the class of each image.
    """

    images: np.ndarray
    labels: np.ndarray

    def __post_init__(self):
        if self.images.dtype != np.uint8 or self.images.ndim != 4 or not len(self.images):
            raise ValueError(
                "images must be uint8 [n >= 1, height, width, channels], not "
                f"{self.images.dtype} {list(self.images.shape)}"
            )
        if self.labels.dtype != np.int32 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"labels must be int32 [{len(self.images)}], like the images, not "
                f"{self.labels.dtype} {list(self.labels.shape)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: np.ndarray) -> "ImageSplit":
        """The examples at `indices`, in that order."""
        return ImageSplit(self.images[indices], self.labels[indices])

    def gather(self, indices: np.ndarray, size: Size) -> Batch:
        """A batch of the examples at `indices`; -1 stands for padding, the first example with weight 0.

        Args:
            indices: `[B]`.
            size: not needed; images are of one size.
        """
        where = np.maximum(indices, 0)
        weight = (indices >= 0).astype(np.float32)
        return {"image": self.images[where], "label": self.labels[where], "weight": weight}

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over shape and content of the images and labels, in hex."""
        digest = hashlib.sha256(repr(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        digest.update(np.ascontiguousarray(self.labels, "<i4").data)
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class ImageDataset:
    """A data set as one run sees it.

    Attributes:
        name: what it was loaded by.
        label_names: the word for each class; labels are positions in it.
        scale: the pixel value that counts as 1.0 (255; for digits and pointed digits 16).
        train: what to learn from.
        validation: what to choose models and settings by.
        test: what to report, used once.
        fingerprint: SHA-256 over all of the above but the name, in hex; worked out when not given.
    """

    name: str
    label_names: tuple[str, ...]
    scale: float
    train: ImageSplit
    validation: ImageSplit
    test: ImageSplit
    fingerprint: str = ""

    def __post_init__(self):
        if not self.fingerprint:
            splits = [split.fingerprint for split in (self.train, self.validation, self.test)]
            parts = (tuple(self.label_names), float(self.scale), splits)
            digest = hashlib.sha256(repr(parts).encode()).hexdigest()
            object.__setattr__(self, "fingerprint", digest)


@dataclasses.dataclass(frozen=True)
class Source:
    """All there is of a data set, before the share of a run is taken from it.

    Attributes:
        label_names: the word for each class.
        scale: the pixel value that counts as 1.0.
        splits: "train" and "test" and, where the data set has one of its own, "validation".
    """

    label_names: tuple[str, ...]
    scale: float
    splits: dict[str, ImageSplit]

    def check(self, name: str) -> None:
        """Raises a one-line error if labels are out of range or images not all of one size."""
        side = self.splits["train"].images.shape[1:]
        for key, split in self.splits.items():
            if split.images.shape[1:] != side:
                raise errors.UserError(
                    f"{name}: images must be of one size, but those of train are {list(side)} and "
                    f"those of {key} {list(split.images.shape[1:])}"
                )
            wrong = np.flatnonzero((split.labels < 0) | (split.labels >= len(self.label_names)))
            if len(wrong):
                raise errors.RunError(
                    f"{name}: label {split.labels[wrong[0]]} of example {wrong[0]:,} of {key} is out of "
                    f"range, 0 to {len(self.label_names) - 1} are allowed"
                )


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return tuple(dict.fromkeys((*EMBEDDED, *builders.names("image"))))


def load(
    name: str,
    *,
    data_dir: str | None = None,
    train_size: int = 0,
    seed: int = 0,
    validation_fraction: float = 0.1,
) -> ImageDataset:
    """Loads a data set into memory, with `train_size` labelled examples for a method to learn from.

    A data set with a validation split of its own keeps it whole, and `train_size` counts training
    examples. From the others `validation_fraction` of the `train_size` examples is held out: with
    60,000 of Fashion-MNIST the method sees 60,000 labels in all, 6,000 of them for choosing.
    For one seed the examples of a smaller `train_size` are among those of a larger one, and they are
    balanced over the classes (see data/subsets.py). The test split is always whole.

    Args:
        name: one of `names()`; or an image data set that TFDS has prepared as array_record under
            `data_dir`, written NAME, NAME/CONFIG or NAME:VERSION; or "folder:DIR" for a folder of
            your own image files (see data/image/folder.py).
        data_dir: where prepared data sets are; see data/locations.py for the default.
        train_size: labelled examples for the method; 0 is all of them (10,000 for pointed digits,
            which have no end).
        seed: chooses the examples.
        validation_fraction: share of `train_size` to hold out, in (0, 1).

    Returns:
        The data set, its images as uint8 [n, height, width, channels].

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    try:
        size = operator.index(train_size)
    except TypeError:
        size = -1
    if size < 0:
        raise errors.UserError(
            f"train_size {train_size!r} is not allowed: a whole number >= 0 is needed (0 is all)"
        )
    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)

    if name in GENERATED:
        from data.image import pointed_digits

        source = pointed_digits.source(size, seed, control=name.endswith("_control"))
        train, validation = source.splits["train"], source.splits["validation"]
    else:
        source = _read(name, data_dir)
        source.check(name)
        train, validation = _share(source, name, size, seed, validation_fraction)
    return ImageDataset(name, source.label_names, source.scale, train, validation, source.splits["test"])


def _share(source: Source, name: str, size: int, seed: int, fraction: float) -> tuple[ImageSplit, ImageSplit]:
    """What a run may learn from and choose by, out of all there is."""
    everything = source.splits["train"]
    if size > len(everything):
        raise errors.UserError(
            f"train_size {size:,} is more than the {len(everything):,} labelled examples of {name}"
            " (0 means all of them)"
        )
    size = size or len(everything)
    if "validation" in source.splits:
        order = subsets.balanced_order(everything.labels, seed)
        return everything.take(order[:size]), source.splits["validation"]
    train, validation = subsets.train_and_validation(everything.labels, size, fraction, seed)
    return everything.take(train), everything.take(validation)


def _read(name: str, data_dir: str | None) -> Source:
    # What is imported here takes longer to import than a small data set takes to load.
    if name.startswith(FOLDER) and name != FOLDER:
        from data.image import folder

        return folder.read(Path(name.removeprefix(FOLDER)).expanduser())
    if name == "digits":
        from data.image import digits

        return digits.source()

    from data import prepared
    from data.image import records

    others = (*names(), f"{FOLDER}DIR")
    return records.read(prepared.folder(name, "image", data_dir, others, also="image data set"))
