"""Universal Dependencies: treebanks with parts of speech, in CoNLL-U.

The treebanks of the table below can be prepared; any other is read as it is, with
`dataset=file:train.conllu,dev.conllu,test.conllu`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import tensorflow_datasets as tfds

from data import raw_files
from data.builder import Record
from data.text.builders import base
from data.text.readers import conllu

UPOS: tuple[str, ...] = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


class Treebank(base.TaggedBuilder):
    """TFDS builder of a treebank: its words, both kinds of parts of speech, and the text.

    Attributes:
        STEM: how its files begin, before `-ud-train.conllu`.
    """

    STEM: ClassVar[str]
    TAGS = UPOS
    SUPERVISED = ("tokens", "upos")
    HOMEPAGE = "https://universaldependencies.org"
    CITATION = """@inproceedings{nivre2020universal,
  title     = {Universal Dependencies v2: An Evergrowing Multilingual Treebank Collection},
  author    = {Nivre, Joakim and de Marneffe, Marie-Catherine and Ginter, Filip and others},
  booktitle = {LREC},
  year      = {2020}
}"""

    @classmethod
    def features(cls) -> dict[str, Any]:
        """Words with their universal and their language-specific parts of speech."""
        return {
            "text": tfds.features.Text(),
            "tokens": tfds.features.Sequence(tfds.features.Text()),
            "upos": tfds.features.Sequence(tfds.features.ClassLabel(names=cls.TAGS)),
            "xpos": tfds.features.Sequence(tfds.features.Text()),
        }

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the three files."""
        return {
            split: [
                {
                    "text": sentence.text,
                    "tokens": sentence.field("form"),
                    "upos": sentence.field("upos"),
                    "xpos": sentence.field("xpos"),
                }
                for sentence in conllu.sentences(contents[name], name)
            ]
            for part, split in _SPLITS.items()
            for name in [f"{cls.STEM}-ud-{part}.conllu"]
        }


def _downloads(url: str, files: tuple[raw_files.RawFile, ...]) -> tuple[raw_files.Download, ...]:
    return tuple(raw_files.Download(f"{url}/{file.name}", file.sha256) for file in files)


class EnglishEwt(Treebank):
    """TFDS builder of the English Web Treebank, release 2.10."""

    name = "ud_en_ewt"
    STEM = "en_ewt"
    SPLITS: ClassVar = {"train": 12_543, "validation": 2_001, "test": 2_077}
    RAW_FILES = (
        raw_files.RawFile(
            "en_ewt-ud-train.conllu",
            13_686_411,
            "e6a3784727e7726d4f1c2e10ff22dcd0ddeb8869ad6f85b73bb1ff5ef798e944",
        ),
        raw_files.RawFile(
            "en_ewt-ud-dev.conllu",
            1_738_438,
            "ef962ac05d844eaff46eeded125937129bfc0876d43963d66810cb73ffa8f5df",
        ),
        raw_files.RawFile(
            "en_ewt-ud-test.conllu",
            1_738_935,
            "465100c5b6fb606725068dc70680d65cc047fbb4ae25195375618bc6353a4e58",
        ),
    )
    DOWNLOADS = _downloads(
        "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.10", RAW_FILES
    )
    DESCRIPTION = "English of weblogs, newsgroups, emails, reviews and answers, with parts of speech."
    LICENSE = "CC BY-SA 4.0"


class EnglishLines(Treebank):
    """TFDS builder of the English part of LinES, release 2.10."""

    name = "ud_en_lines"
    STEM = "en_lines"
    SPLITS: ClassVar = {"train": 3_176, "validation": 1_032, "test": 1_035}
    RAW_FILES = (
        raw_files.RawFile(
            "en_lines-ud-train.conllu",
            3_365_394,
            "705bfe26b886da24d11719068edfa22d31826007657602de09894006468bae46",
        ),
        raw_files.RawFile(
            "en_lines-ud-dev.conllu",
            1_123_185,
            "c545e91e13c4e6a272e78175d5224a01791694999f0c8460e7741da4a46746b9",
        ),
        raw_files.RawFile(
            "en_lines-ud-test.conllu",
            1_037_779,
            "ea037b9cc2f22c298d1fd0de640b5d310852cf2e942a3183446b2c3a9122c493",
        ),
    )
    DOWNLOADS = _downloads(
        "https://raw.githubusercontent.com/UniversalDependencies/UD_English-LinES/r2.10", RAW_FILES
    )
    DESCRIPTION = "English literature, online manuals and parliament, with parts of speech."
    LICENSE = "CC BY-NC-SA 4.0"


class ChineseGsd(Treebank):
    """TFDS builder of the (traditional) Chinese treebank of Google, release 1.4, which has no text."""

    name = "ud_zh_gsd"
    STEM = "zh_gsd"
    TAGS = tuple("CONJ" if tag == "CCONJ" else tag for tag in UPOS)  # as version 1 of the scheme has it
    SPLITS: ClassVar = {"train": 3_997, "validation": 500, "test": 500}
    RAW_FILES = (
        raw_files.RawFile(
            "zh_gsd-ud-train.conllu",
            3_281_947,
            "94c1ad7f8f7d545169bafbef367852b965ec5eada13d614d8e8b6b9297ee6d0d",
        ),
        raw_files.RawFile(
            "zh_gsd-ud-dev.conllu",
            422_074,
            "574a2c826fc4207530be65b9cd9d8d9611a9749716ab1e3349ec681b93c7a42f",
        ),
        raw_files.RawFile(
            "zh_gsd-ud-test.conllu",
            400_666,
            "c5fe2733ca4a118725fc06d6a7dbce9952254a4a174f3bd75e13ab4d504e9970",
        ),
    )
    DESCRIPTION = "Chinese Wikipedia, with parts of speech."
    LICENSE = "CC BY-NC-SA"
