"""IMDB: long film reviews, negative or positive, as raw text.

Long Range Arena's byte-level task is this set with `tokenisation="none"` and a vocabulary of bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base


class Imdb(base.LabelledBuilder):
    """TFDS builder of IMDB from lines of label, id, rating and text."""

    CLASSES = ("negative", "positive")
    TOKENISATION = "punctuation"
    SPLITS: ClassVar = {"train": 25_000, "test": 25_000}
    RAW_FILES = (
        raw_files.RawFile(
            "train.tsv", 33_388_566, "9d84655b8454ecb4172d40b0bbee65c5d90c7b6d30c38cf6b303029d9ffd88e7"
        ),
        raw_files.RawFile(
            "test.tsv", 32_604_478, "413d7402d75a2807118ce5b3367833d8dee232ac80feccf0fd880dc03f506d9f"
        ),
    )
    DESCRIPTION = "Reviews of films, half of them negative, half positive, none of them lukewarm."
    HOMEPAGE = "https://ai.stanford.edu/~amaas/data/sentiment/"
    LICENSE = "None stated; the authors ask that the paper be cited."
    CITATION = """@inproceedings{maas2011learning,
  title     = {Learning Word Vectors for Sentiment Analysis},
  author    = {Maas, Andrew L. and Daly, Raymond E. and Pham, Peter T. and Huang, Dan and Ng, Andrew Y.
               and Potts, Christopher},
  booktitle = {ACL},
  year      = {2011}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the two files; id and rating, which gives the label away, are left out."""
        names = {str(number): name for number, name in enumerate(cls.CLASSES)}
        return {
            split: base.labelled_lines(
                _without_id_and_rating(contents[file.name], file.name), file.name, names, separator="\t"
            )
            for split, file in zip(cls.SPLITS, cls.RAW_FILES, strict=True)
        }


def _without_id_and_rating(content: bytes, name: str) -> Iterator[tuple[int, str]]:
    for number, line in lines.numbered(content, name):
        fields = line.split("\t", 3)
        yield number, f"{fields[0]}\t{fields[3]}" if len(fields) == 4 else line.replace("\t", " ")
