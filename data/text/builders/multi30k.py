"""Multi30k, task 1: descriptions of photographs in English, translated into German and French.

The text is as it was published, not tokenised. The tests of 2017 and 2018 are splits of their own names;
that of 2016, the usual one, is `test`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import errors
from data import raw_files
from data.builder import Record
from data.readers import lines
from data.text.builders import base

_URL = "https://github.com/multi30k/dataset/raw/master/data/task1/raw/"
_STEMS = {
    "train": "train",
    "validation": "val",
    "test": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018_flickr": "test_2018_flickr",
}
# Bytes and SHA-256 of the content, SHA-256 of the file as it is downloaded.
_FILES = {
    "train.de": (
        2_110_398,
        "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    ),
    "train.en": (
        1_801_238,
        "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    ),
    "train.fr": (
        2_111_303,
        "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
        "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    ),
    "val.de": (
        75_981,
        "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    ),
    "val.en": (
        63_297,
        "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    ),
    "val.fr": (
        73_924,
        "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
        "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    ),
    "test_2016_flickr.de": (
        70_649,
        "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    ),
    "test_2016_flickr.en": (
        62_076,
        "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    ),
    "test_2016_flickr.fr": (
        72_261,
        "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    ),
    "test_2017_flickr.de": (
        64_059,
        "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
        "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    ),
    "test_2017_flickr.en": (
        55_242,
        "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
        "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    ),
    "test_2017_flickr.fr": (
        65_691,
        "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
        "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    ),
    "test_2017_mscoco.de": (
        29_906,
        "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
        "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    ),
    "test_2017_mscoco.en": (
        24_949,
        "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
        "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    ),
    "test_2017_mscoco.fr": (
        29_982,
        "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
        "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    ),
    "test_2018_flickr.de": (
        80_893,
        "39fcc8b3331d76fb42d648d019c6898b0d5e58baac87bc2a0bb93f44ec8db207",
        "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
    ),
    "test_2018_flickr.en": (
        70_603,
        "4e585c2dd525911a6ea7730e9d0b516239af3f1b1ffae6a2130223cfb639f25e",
        "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
    ),
    "test_2018_flickr.fr": (
        84_076,
        "234b4a887da0da4801a3e2c6f21336231ff7dd46daeb80cfa1b551c8bbb78239",
        "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501",
    ),
}


class Multi30k(base.ParallelBuilder):
    """TFDS builder of Multi30k from files of a line per sentence, one for each language."""

    LANGUAGES = ("de", "en", "fr")
    SPLITS: ClassVar = {
        "train": 29_000,
        "validation": 1_014,
        "test": 1_000,
        "test_2017_flickr": 1_000,
        "test_2017_mscoco": 461,
        "test_2018_flickr": 1_071,
    }
    RAW_FILES = tuple(
        raw_files.RawFile(f"{name}.gz", size, sha256) for name, (size, sha256, _) in _FILES.items()
    )
    DOWNLOADS = tuple(raw_files.Download(f"{_URL}{name}.gz", packed) for name, (*_, packed) in _FILES.items())
    DESCRIPTION = "Descriptions of photographs in English, German and French."
    HOMEPAGE = "https://github.com/multi30k/dataset"
    LICENSE = "None stated; the authors ask that the papers be cited."
    CITATION = """@inproceedings{elliott2016multi30k,
  title     = {Multi30K: Multilingual English-German Image Descriptions},
  author    = {Elliott, Desmond and Frank, Stella and Sima'an, Khalil and Specia, Lucia},
  booktitle = {Workshop on Vision and Language},
  year      = {2016}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Sequence[Record]]:
        """Reads the files line by line."""
        splits: dict[str, Sequence[Record]] = {}
        for split, stem in _STEMS.items():
            sides = [cls._lines(split, f"{stem}.{language}.gz", contents) for language in cls.LANGUAGES]
            splits[split] = [
                dict(zip(cls.LANGUAGES, sentences, strict=True)) for sentences in zip(*sides, strict=True)
            ]
        return splits

    @classmethod
    def _lines(cls, split: str, name: str, contents: Mapping[str, bytes]) -> list[str]:
        read = [line for _, line in lines.numbered(contents[name], name)]
        if len(read) != cls.SPLITS[split]:
            raise errors.RunError(f"{name}: {len(read):,} lines, expected {cls.SPLITS[split]:,}")
        return read
