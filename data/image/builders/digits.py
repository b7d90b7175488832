"""scikit-learn's digits: 1,797 handwritten digits, 8 x 8, seventeen grey levels, embedded.

The raw file comes with scikit-learn, so this set is always there. It has no published split; ours
is by one fixed permutation of the published order: the first 1,200 of it to train on, the next 200
to validate on, the last 397 to test on. Pointed digits are drawn from the same three splits.
"""

import importlib.util
import io
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

import errors
from data import raw_files, streams
from data.image.builders import base
from data.image.types import LabelledImages, PublishedImages

_SPLIT_SEED = 0


class Digits(base.ImageBuilder):
    """TFDS builder of the digits from the file that scikit-learn brings along."""

    CLASSES = tuple("0123456789")
    SHAPE = (8, 8, 1)
    SCALE = 16.0  # a level counts the inked pixels of a 4 x 4 block of the scanned bitmap
    SPLITS: ClassVar = {"train": 1_200, "validation": 200, "test": 397}
    RAW_FILES = (
        raw_files.RawFile(
            "digits.csv.gz",
            264_712,
            "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
        ),
    )
    DESCRIPTION = "Handwritten digits, each pixel the number of inked ones in a 4x4 block."
    HOMEPAGE = "https://archive.ics.uci.edu/dataset/80"
    LICENSE = "CC BY 4.0"
    CITATION = """@misc{alpaydin1998optical,
  title     = {Optical Recognition of Handwritten Digits},
  author    = {Alpaydin, E. and Kaynak, C.},
  publisher = {UCI Machine Learning Repository},
  year      = {1998},
  doi       = {10.24432/C50P49}
}"""

    @classmethod
    def installed(cls) -> Path:
        """The folder inside the installed scikit-learn, found without the second of importing it."""
        package = importlib.util.find_spec("sklearn")
        if package is None or package.origin is None:
            raise errors.RunError("scikit-learn, which holds the digits, is not installed")
        return Path(package.origin).parent / "datasets" / "data"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, base.Arrays]:
        """Reads lines of 64 levels and a label, and divides them by the fixed permutation."""
        name = "digits.csv.gz"
        try:
            table = np.loadtxt(io.BytesIO(contents[name]), delimiter=",", dtype=np.uint8, ndmin=2)
        except ValueError as error:
            raise errors.RunError(f"{name}: {error}") from error
        total = sum(cls.SPLITS.values())
        if table.shape != (total, 65):
            raise errors.RunError(f"{name}: a table of {table.shape}, expected {(total, 65)}")
        table = table[streams.Stream(_SPLIT_SEED, "digits split").permutation(total)]
        ends = np.cumsum(list(cls.SPLITS.values()))[:-1]
        return {
            split: (part[:, :64].reshape(-1, *cls.SHAPE), part[:, 64])
            for split, part in zip(cls.SPLITS, np.split(table, ends), strict=True)
        }


def source() -> PublishedImages:
    """The digits, read straight from scikit-learn's file; nothing to prepare."""
    return PublishedImages(
        Digits.CLASSES,
        Digits.SCALE,
        {
            split: LabelledImages.of(pixels, labels.astype(np.int32))
            for split, (pixels, labels) in Digits.read(Digits.installed()).items()
        },
    )
