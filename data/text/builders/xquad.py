"""XQuAD: a part of SQuAD's development set in eleven languages, made by professional translators."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

from data import raw_files
from data.builder import Builder, Record
from data.text.readers import squad


class Xquad(Builder):
    """A TFDS builder of one language; 240 passages of 48 articles, published to evaluate with."""

    SPLITS: ClassVar = {"test": 1_190}
    DESCRIPTION = "Questions about paragraphs of Wikipedia, each answered by a span of its paragraph."
    HOMEPAGE = "https://github.com/google-deepmind/xquad"
    LICENSE = "CC BY-SA 4.0"
    CITATION = """@inproceedings{artetxe2020cross,
  title     = {On the Cross-lingual Transferability of Monolingual Representations},
  author    = {Artetxe, Mikel and Ruder, Sebastian and Yogatama, Dani},
  booktitle = {ACL},
  year      = {2020}
}"""

    @classmethod
    def features(cls) -> dict[str, Any]:
        """Passage, question and answers, named as TFDS names them in SQuAD."""
        text, number = tfds.features.Text(), tfds.features.Scalar(np.int32)
        return {
            **dict.fromkeys(("id", "title", "context", "question"), text),
            "answers": tfds.features.Sequence({"text": text, "answer_start": number}),
        }

    @classmethod
    def what(cls) -> str:
        """Questions."""
        return "questions about passages"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the one file."""
        (file,) = cls.RAW_FILES
        return {"test": squad.decode(contents[file.name], file.name)}


class English(Xquad):
    """As it stands in SQuAD."""

    name = "xquad_en"
    RAW_FILES = (
        raw_files.RawFile(
            "xquad.en.json", 609_383, "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29"
        ),
    )


class Chinese(Xquad):
    """Translated to Chinese in simplified characters."""

    name = "xquad_zh"
    RAW_FILES = (
        raw_files.RawFile(
            "xquad.zh.json", 808_652, "691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835"
        ),
    )
