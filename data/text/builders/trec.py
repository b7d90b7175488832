"""TREC: what kind of answer a question asks for, in six classes and, finer, in fifty."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import tensorflow_datasets as tfds

import errors
from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base


class Trec(base.LabelledBuilder):
    """TFDS builder of TREC: `label`, one of six, and `label_fine` such as "NUM:dist"."""

    CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
    SPLITS: ClassVar = {"train": 5_452, "test": 500}
    RAW_FILES = (
        raw_files.RawFile(
            "TREC.train", 335_858, "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3"
        ),
        raw_files.RawFile(
            "TREC.test", 23_354, "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e"
        ),
    )
    DESCRIPTION = "Questions, by the kind of answer that they ask for."
    HOMEPAGE = "https://cogcomp.seas.upenn.edu/Data/QA/QC/"
    LICENSE = "None stated; the authors ask that the paper be cited."
    CITATION = """@inproceedings{li2002learning,
  title     = {Learning Question Classifiers},
  author    = {Li, Xin and Roth, Dan},
  booktitle = {COLING},
  year      = {2002}
}"""

    @classmethod
    def features(cls) -> dict[str, Any]:
        """The question, its class and its finer class."""
        return {**super().features(), "label_fine": tfds.features.Text()}

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads lines such as "NUM:dist How far is it ?"; one letter of the train file is Latin-1."""
        return {
            split: [_question(line, f"{file.name}:{number}") for number, line in numbered]
            for split, file in zip(cls.SPLITS, cls.RAW_FILES, strict=True)
            for numbered in [lines.numbered(contents[file.name], file.name, encoding="latin-1")]
        }


def _question(line: str, where: str) -> Record:
    fine, _, text = line.partition(" ")
    label, separated, _ = fine.partition(":")
    if not separated:
        raise errors.RunError(f"{where}: begins with {fine[:20]!r}; a class such as NUM:dist is needed")
    return {"text": text.strip(" "), "label": label, "label_fine": fine}
