"""Free Spoken Digits: 3,000 recordings of the ten digits in English by six speakers, at 8 kHz."""

import hashlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import builder, raw_files
from data.speech.readers import wav

RATE = 8_000
DIGITS = tuple("0123456789")
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
_INDICES = range(50)
_TEST_INDICES = range(5)
_NAMES = sorted(
    f"{digit}_{speaker}_{index}.wav"
    for digit, speaker, index in itertools.product(DIGITS, SPEAKERS, _INDICES)
)


class Fsdd(builder.Builder):
    """TFDS builder of the Free Spoken Digit Dataset from its published wav files.

    The published split: of each digit by each speaker, recordings 0 to 4 to test on, 5 to 49 to train on.
    What is hashed is the list of the files with their hashes, as `sha256sum *.wav` prints it in their
    folder (in the C locale).
    """

    SPLITS: ClassVar = {"train": 2_700, "test": 300}
    RAW_FILES = (
        raw_files.RawFile(
            "recordings/*.wav",
            245_900,
            "1801eae019c063377d98f831d3f93574f259475df7332bb0e3d1b080fb5e6959",
        ),
    )
    SUPERVISED = ("audio", "digit")
    METADATA: ClassVar = {"rate": RATE}
    DESCRIPTION = "Spoken digits, trimmed so that they have little silence at the beginning and the end."
    HOMEPAGE = "https://github.com/Jakobovski/free-spoken-digit-dataset"
    LICENSE = "CC BY-SA 4.0"
    CITATION = """@misc{jackson2018free,
  title  = {Free Spoken Digit Dataset},
  author = {Jackson, Zohar and Souza, C{\\'e}sar and Flaks, Jason and Pan, Yuxin and Nicolas, Hereman
            and Thite, Adhish},
  note   = {Version 1.0.10},
  year   = {2018},
  doi    = {10.5281/zenodo.1342401}
}"""

    @classmethod
    def features(cls) -> dict[str, Any]:
        """The samples, 16 bits each; digit, speaker, and which recording of the two it is."""
        return {
            # Not features.Audio, which needs TensorFlow.
            "audio": tfds.features.Tensor(
                shape=(None,), dtype=np.int16, encoding=tfds.features.Encoding.BYTES
            ),
            "digit": tfds.features.ClassLabel(names=DIGITS),
            "speaker": tfds.features.ClassLabel(names=SPEAKERS),
            "index": np.int32,
        }

    @classmethod
    def what(cls) -> str:
        """Recordings and their rate."""
        return f"recordings of spoken digits at {RATE:,} Hz"

    @classmethod
    def read(cls, folder: Path) -> Mapping[str, list[builder.Record]]:
        """Reads and verifies the recordings, which lie in `folder` or in its folder `recordings`."""
        within = folder / "recordings" if (folder / "recordings").is_dir() else folder
        missing = [name for name in _NAMES if not (within / name).is_file()]
        if missing:
            raise errors.UserError(
                f"{within} lacks {len(missing):,} of {len(_NAMES):,} recordings, the first is {missing[0]}"
            )
        contents = {name: (within / name).read_bytes() for name in _NAMES}
        splits = cls.decode(contents)
        for split, examples in splits.items():
            cls.check(split, examples)
        raw_files.verify({cls.RAW_FILES[0].name: listing(contents)}, cls.RAW_FILES)
        return splits

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, list[builder.Record]]:
        """Reads wav files; digit, speaker and index are in their names."""
        splits: dict[str, list[builder.Record]] = {"train": [], "test": []}
        for name, content in contents.items():
            digit, speaker, index = re.split("[_.]", name)[:3]
            try:
                wave = wav.decode(content, name)
            except errors.UserError as error:
                raise errors.RunError(str(error)) from error
            if wave.rate != RATE:
                raise errors.RunError(f"{name}: {wave.rate:,} samples per second, expected {RATE:,}")
            split = "test" if int(index) in _TEST_INDICES else "train"
            splits[split].append(
                {
                    "audio": np.round(wave.samples * 2**15).astype(np.int16),
                    "digit": digit,
                    "speaker": speaker,
                    "index": int(index),
                }
            )
        return splits


def listing(contents: Mapping[str, bytes]) -> bytes:
    """What `sha256sum` prints of files with these contents."""
    lines = (f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents))
    return "".join(lines).encode()
