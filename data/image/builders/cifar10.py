"""CIFAR-10: 60,000 colour photographs, 32 x 32, in ten classes."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

import errors
from data import raw_files
from data.image.builders import base

_FOLDER = "cifar-10-batches-bin"
_FILE_RECORDS = 10_000  # records in each file
_RECORD = 1 + 3 * 32 * 32  # label, then the red, the green and the blue plane, row by row
_FILE_BYTES = _FILE_RECORDS * _RECORD


class Cifar10(base.ImageBuilder):
    """TFDS builder of CIFAR-10 from the published binary version."""

    CLASSES = (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    )
    SHAPE = (32, 32, 3)
    SPLITS: ClassVar = {"train": 50_000, "test": 10_000}
    RAW_FILES = (
        raw_files.RawFile(
            f"{_FOLDER}/data_batch_1.bin",
            _FILE_BYTES,
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        raw_files.RawFile(
            f"{_FOLDER}/data_batch_2.bin",
            _FILE_BYTES,
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        raw_files.RawFile(
            f"{_FOLDER}/data_batch_3.bin",
            _FILE_BYTES,
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        raw_files.RawFile(
            f"{_FOLDER}/data_batch_4.bin",
            _FILE_BYTES,
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        raw_files.RawFile(
            f"{_FOLDER}/data_batch_5.bin",
            _FILE_BYTES,
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        raw_files.RawFile(
            f"{_FOLDER}/test_batch.bin",
            _FILE_BYTES,
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
    )
    DOWNLOADS = (
        raw_files.Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    )
    DESCRIPTION = "Colour photographs of ten kinds of animals and vehicles."
    HOMEPAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
    LICENSE = "None stated; the authors ask that the technical report be cited."
    CITATION = """@techreport{krizhevsky2009learning,
  title       = {Learning Multiple Layers of Features from Tiny Images},
  author      = {Krizhevsky, Alex},
  institution = {University of Toronto},
  year        = {2009}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, base.Arrays]:
        """Reads the records of the binary version."""
        batches = {file.name: _records(contents[file.name], file.name) for file in cls.RAW_FILES}
        test = batches.pop(f"{_FOLDER}/test_batch.bin")
        images, labels = (np.concatenate(part) for part in zip(*batches.values(), strict=True))
        return {"train": (images, labels), "test": test}


def _records(content: bytes, name: str) -> base.Arrays:
    count, left_over = divmod(len(content), _RECORD)
    if left_over:
        raise errors.RunError(
            f"{name}: truncated, {len(content):,} bytes are not a whole number of records of {_RECORD:,}"
        )
    if count != _FILE_RECORDS:
        raise errors.RunError(f"{name}: {count:,} records, expected {_FILE_RECORDS:,}")
    records = np.frombuffer(content, np.uint8).reshape(count, _RECORD)
    planes = records[:, 1:].reshape(count, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0]
