"""Which data sets can be prepared, and where the builder of each is: a line here for a new one."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.builder import Builder

# By the kind of their examples, `package:Class` below `data`.
BUILDERS: dict[str, dict[str, str]] = {
    "image": {
        "digits": "image.digits:Digits",
        "fashion_mnist": "image.fashion_mnist:FashionMnist",
        "cifar10": "image.cifar10:Cifar10",
    },
    "text": {
        "ud_en_ewt": "text.universal_dependencies:EnglishEwt",
        "ud_en_lines": "text.universal_dependencies:EnglishLines",
        "ud_zh_gsd": "text.universal_dependencies:ChineseGsd",
        "wnut17": "text.wnut17:Wnut17",
        "mr": "text.movie_reviews:MovieReviews",
        "subj": "text.movie_reviews:Subjectivity",
        "sst2": "text.sst:Sst2",
        "sst5": "text.sst:Sst5",
        "trec": "text.trec:Trec",
        "imdb": "text.imdb:Imdb",
    },
    "parallel": {
        "multi30k": "text.multi30k:Multi30k",
        "tatoeba_en_zh": "text.tatoeba:TatoebaEnglishChinese",
    },
    "speech": {
        "fsdd": "speech.fsdd:Fsdd",
        "japanese_vowels": "speech.japanese_vowels:JapaneseVowels",
    },
    "graph": {
        "cora": "graph.planetoid:Cora",
        "citeseer": "graph.planetoid:Citeseer",
        "mutag": "graph.tu:Mutag",
        "ptc": "graph.tu:Ptc",
        "proteins": "graph.tu:Proteins",
        "nci1": "graph.tu:Nci1",
        "esol": "graph.molecules:Esol",
        "freesolv": "graph.molecules:Freesolv",
        "lipophilicity": "graph.molecules:Lipophilicity",
        "bbbp": "graph.molecules:Bbbp",
        "bace": "graph.molecules:Bace",
    },
    "reading": {
        "xquad_en": "text.xquad:English",
        "xquad_zh": "text.xquad:Chinese",
    },
}

# Made when they are loaded.
GENERATED: dict[str, tuple[str, ...]] = {
    "image": ("pointed_digits", "pointed_digits_control"),
    "captions": ("digit_scenes",),
    "text": ("grammar",),
    "parallel": ("dates",),
    "speech": ("tones",),
    "transcription": ("tone_strings", "fsdd_strings"),
    "graph": ("karate",),
    "reading": ("facts",),
}


def names(kind: str | None = None) -> tuple[str, ...]:
    """The data sets that can be prepared, all or those of one kind."""
    kinds = BUILDERS if kind is None else (kind,)
    return tuple(name for kind in kinds for name in BUILDERS[kind])


def builder(name: str) -> "type[Builder]":
    """The builder of one of `names()`."""
    # Imported when asked for: TFDS takes a while to import, and a wrong name is told at once.
    place = next(sets[name] for sets in BUILDERS.values() if name in sets)
    module, _, cls = place.partition(":")
    return getattr(importlib.import_module(f"data.{module}"), cls)
