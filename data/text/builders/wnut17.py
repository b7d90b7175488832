"""WNUT17: entities that were new when the texts were written, in tweets and comments; IOB2 tags."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from data import raw_files
from data.builder import Record
from data.text.builders import base
from data.text.readers import columns

_URL = "https://raw.githubusercontent.com/leondz/emerging_entities_17/master/"
_ENTITIES = ("corporation", "creative-work", "group", "location", "person", "product")


class Wnut17(base.TaggedBuilder):
    """TFDS builder of WNUT17 from the published column files."""

    TAGS = ("O", *(f"{sign}-{entity}" for entity in _ENTITIES for sign in "BI"))
    SPLITS: ClassVar = {"train": 3_394, "validation": 1_009, "test": 1_287}
    RAW_FILES = (
        raw_files.RawFile(
            "wnut17train.conll", 493_781, "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5"
        ),
        raw_files.RawFile(
            "emerging.dev.conll", 114_749, "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8"
        ),
        raw_files.RawFile(
            "emerging.test.annotated",
            192_425,
            "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0",
        ),
    )
    DOWNLOADS = tuple(raw_files.Download(_URL + file.name, file.sha256) for file in RAW_FILES)
    DESCRIPTION = "Tweets and comments with emerging and rare entities of six kinds, IOB2."
    HOMEPAGE = "https://noisy-text.github.io/2017/emerging-rare-entities.html"
    LICENSE = "CC BY 4.0"
    CITATION = """@inproceedings{derczynski2017results,
  title     = {Results of the {WNUT2017} Shared Task on Novel and Emerging Entity Recognition},
  author    = {Derczynski, Leon and Nichols, Eric and van Erp, Marieke and Limsopatham, Nut},
  booktitle = {Workshop on Noisy User-generated Text},
  year      = {2017}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the three files."""
        names = (file.name for file in cls.RAW_FILES)
        return {
            split: base.tagged_records(columns.decode(contents[name], name))
            for split, name in zip(cls.SPLITS, names, strict=True)
        }
