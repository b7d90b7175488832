"""Japanese Vowels: nine men say /ae/; 640 utterances of 7 to 29 frames, each 12 LPC cepstrum coefficients."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import builder, raw_files
from data.speech.readers import ts

WIDTH = 12
SPEAKERS = tuple("123456789")


class JapaneseVowels(builder.Builder):
    """TFDS builder of Japanese Vowels from the .ts files of the time series classification archive."""

    SPLITS: ClassVar = {"train": 270, "test": 370}
    RAW_FILES = (
        raw_files.RawFile(
            "JapaneseVowels_TRAIN.ts",
            487_971,
            "68a430eabd919cc77f40b1f5f3bc0dcafacc1486bca9260785aeb7d262cc78cd",
        ),
        raw_files.RawFile(
            "JapaneseVowels_TEST.ts",
            649_132,
            "b3d41d6a0ca3bcad3afb9ca7d4365382aa51341e2e58bae2a574babdda5b9462",
        ),
    )
    SUPERVISED = ("frames", "speaker")
    DESCRIPTION = "Which of nine male speakers said the vowels /ae/, by linear prediction of their sound."
    HOMEPAGE = "https://archive.ics.uci.edu/dataset/128"
    LICENSE = "CC BY 4.0"
    CITATION = """@article{kudo1999multidimensional,
  title   = {Multidimensional curve classification using passing-through regions},
  author  = {Kudo, Mineichi and Toyama, Jun and Shimbo, Masaru},
  journal = {Pattern Recognition Letters},
  volume  = {20},
  pages   = {1103--1111},
  year    = {1999}
}"""

    @classmethod
    def features(cls) -> dict[str, Any]:
        """Frames and the speaker."""
        return {
            "frames": tfds.features.Tensor(shape=(None, WIDTH), dtype=np.float32),
            "speaker": tfds.features.ClassLabel(names=SPEAKERS),
        }

    @classmethod
    def what(cls) -> str:
        """Utterances as frames."""
        return f"utterances in frames of {WIDTH}"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, list[builder.Record]]:
        """Reads a .ts file for each split."""
        splits: dict[str, list[builder.Record]] = {}
        for split, name in (("train", "JapaneseVowels_TRAIN.ts"), ("test", "JapaneseVowels_TEST.ts")):
            try:
                series = ts.decode(contents[name], name)
            except errors.UserError as error:
                raise errors.RunError(str(error)) from error
            for number, (frames, speaker) in enumerate(series):
                if frames.shape[1] != WIDTH or speaker not in SPEAKERS:
                    raise errors.RunError(
                        f"{name}: utterance {number} of speaker {speaker!r} has frames of {frames.shape[1]}, "
                        f"expected {WIDTH} and a speaker of {', '.join(SPEAKERS)}"
                    )
            splits[split] = [{"frames": frames, "speaker": speaker} for frames, speaker in series]
        return splits
