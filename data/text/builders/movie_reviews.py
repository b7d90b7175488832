"""The sentences of Pang and Lee's film reviews: polarity (MR) and subjectivity (Subj).

Neither has a published split, and ten-fold cross-validation is the custom: `data.text.load.labelled`
divides them by one fixed permutation.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base


class FilePerClass(base.LabelledBuilder):
    """A set of tokenised sentences, a line each, with a Latin-1 file for each class, in order of CLASSES."""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads one class after the other."""
        return {
            "train": [
                {"text": line.strip(" "), "label": label}
                for label, file in zip(cls.CLASSES, cls.RAW_FILES, strict=True)
                for _, line in lines.numbered(contents[file.name], file.name, encoding="latin-1")
            ]
        }


class MovieReviews(FilePerClass):
    """TFDS builder of MR, sentence polarity."""

    name = "mr"
    CLASSES = ("negative", "positive")
    SPLITS: ClassVar = {"train": 10_662}
    RAW_FILES = (
        raw_files.RawFile(
            "rt-polarity.neg", 612_256, "4ace77d558c3714723843f1d65b60c01e3417b208180f0728808d76ad0eeeaca"
        ),
        raw_files.RawFile(
            "rt-polarity.pos", 626_139, "2da124ec187a9d5a29c9f04e91c540e02baed5af8868f550a26bd6fd4dbf8bf0"
        ),
    )
    DESCRIPTION = "Sentences of film reviews, half of them negative, half positive."
    HOMEPAGE = "https://www.cs.cornell.edu/people/pabo/movie-review-data/"
    LICENSE = "None stated; the authors ask that the paper be cited."
    CITATION = """@inproceedings{pang2005seeing,
  title     = {Seeing Stars: Exploiting Class Relationships for Sentiment Categorization with Respect to
               Rating Scales},
  author    = {Pang, Bo and Lee, Lillian},
  booktitle = {ACL},
  year      = {2005}
}"""


class Subjectivity(FilePerClass):
    """TFDS builder of Subj, opinion or plot."""

    name = "subj"
    CLASSES = ("objective", "subjective")
    SPLITS: ClassVar = {"train": 10_000}
    RAW_FILES = (
        raw_files.RawFile(
            "subj.objective", 669_456, "5ddc9b44dc60d64d651347fcd7bdd489b0c70661e3f768215c16eea36f51204a"
        ),
        raw_files.RawFile(
            "subj.subjective", 630_790, "73a2dcf8dc3cbcc7f068a70ef9f021c86b2a8e4dac81566b7fd015b3e938f2c5"
        ),
    )
    DESCRIPTION = "Sentences of film reviews (subjective) and of plot summaries (objective)."
    HOMEPAGE = "https://www.cs.cornell.edu/people/pabo/movie-review-data/"
    LICENSE = "None stated; the authors ask that the paper be cited."
    CITATION = """@inproceedings{pang2004sentimental,
  title     = {A Sentimental Education: Sentiment Analysis Using Subjectivity Summarization Based on
               Minimum Cuts},
  author    = {Pang, Bo and Lee, Lillian},
  booktitle = {ACL},
  year      = {2004}
}"""
