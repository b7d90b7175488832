"""Tatoeba, English and Chinese: short sentences that volunteers translated, in both kinds of characters."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import errors
from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base


class TatoebaEnglishChinese(base.ParallelBuilder):
    """TFDS builder of a file with a pair on each line, a tab between the two; all of it is train."""

    name = "tatoeba_en_zh"
    LANGUAGES = ("en", "zh")
    SPLITS: ClassVar = {"train": 32_028}
    RAW_FILES = (
        raw_files.RawFile(
            "cmn.txt", 1_976_573, "d8719bfc39a689b8040652557e73a9117dae47691011c8e9a6b3038efe97dc97"
        ),
    )
    DESCRIPTION = "Short sentences in English and Chinese, the shortest first."
    HOMEPAGE = "https://www.manythings.org/anki/"
    LICENSE = "CC BY 2.0 FR"
    CITATION = """@misc{tatoeba,
  title  = {Tatoeba: collection of sentences and translations},
  author = {{The Tatoeba contributors}},
  url    = {https://tatoeba.org}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the file."""
        (file,) = cls.RAW_FILES
        records = []
        for number, line in lines.numbered(contents[file.name], file.name):
            sentences = line.split("\t")
            if len(sentences) != len(cls.LANGUAGES):
                raise errors.RunError(
                    f"{file.name}:{number}: {len(sentences)} column(s) between tabs, expected 2"
                )
            records.append(dict(zip(cls.LANGUAGES, sentences, strict=True)))
        return {"train": records}
