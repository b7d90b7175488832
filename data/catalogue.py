"""Which data sets there are, by the kind of their examples: a line here for a new one."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.builder import Builder

# To be prepared first: where the builder of each is, `module:Class` below `data`.
BUILDERS: dict[str, dict[str, str]] = {
    "image": {
        "digits": "image.builders.digits:Digits",
        "fashion_mnist": "image.builders.fashion_mnist:FashionMnist",
        "cifar10": "image.builders.cifar10:Cifar10",
    },
    "text": {
        "ud_en_ewt": "text.builders.universal_dependencies:EnglishEwt",
        "ud_en_lines": "text.builders.universal_dependencies:EnglishLines",
        "ud_zh_gsd": "text.builders.universal_dependencies:ChineseGsd",
        "wnut17": "text.builders.wnut17:Wnut17",
        "mr": "text.builders.movie_reviews:MovieReviews",
        "subj": "text.builders.movie_reviews:Subjectivity",
        "sst2": "text.builders.sst:Sst2",
        "sst5": "text.builders.sst:Sst5",
        "trec": "text.builders.trec:Trec",
        "imdb": "text.builders.imdb:Imdb",
    },
    "parallel": {
        "multi30k": "text.builders.multi30k:Multi30k",
        "tatoeba_en_zh": "text.builders.tatoeba:TatoebaEnglishChinese",
    },
    "reading": {
        "xquad_en": "text.builders.xquad:English",
        "xquad_zh": "text.builders.xquad:Chinese",
    },
    "speech": {
        "fsdd": "speech.builders.fsdd:Fsdd",
        "japanese_vowels": "speech.builders.japanese_vowels:JapaneseVowels",
    },
    "graph": {
        "cora": "graph.builders.planetoid:Cora",
        "citeseer": "graph.builders.planetoid:Citeseer",
        "mutag": "graph.builders.tu:Mutag",
        "ptc": "graph.builders.tu:Ptc",
        "proteins": "graph.builders.tu:Proteins",
        "nci1": "graph.builders.tu:Nci1",
        "esol": "graph.builders.molecules:Esol",
        "freesolv": "graph.builders.molecules:Freesolv",
        "lipophilicity": "graph.builders.molecules:Lipophilicity",
        "bbbp": "graph.builders.molecules:Bbbp",
        "bace": "graph.builders.molecules:Bace",
    },
}

# Made when they are loaded, each by a module in `generated`; scenes and strings of digits from prepared sets.
GENERATED: dict[str, tuple[str, ...]] = {
    "image": ("pointed_digits", "pointed_digits_control"),
    "captions": ("digit_scenes", "fashion_scenes"),
    "text": ("grammar",),
    "parallel": ("dates",),
    "reading": ("facts",),
    "speech": ("tones",),
    "transcription": ("tone_strings", "fsdd_strings"),
    "graph": ("karate",),
}

_FOLDER, _FILE = "folder:", "file:"


def names(kind: str) -> tuple[str, ...]:
    """The data sets of a kind, by the names that its `load` takes."""
    return (*GENERATED.get(kind, ()), *BUILDERS.get(kind, ()))


def preparable() -> tuple[str, ...]:
    """The data sets that can be prepared, of all kinds."""
    return tuple(name for sets in BUILDERS.values() for name in sets)


def builder(name: str) -> "type[Builder]":
    """The builder of one of `preparable()`."""
    # Imported when asked for: TFDS takes a while to import, and a wrong name is told at once.
    place = next(sets[name] for sets in BUILDERS.values() if name in sets)
    module, _, cls = place.partition(":")
    return getattr(importlib.import_module(f"data.{module}"), cls)


def own_folder(name: str) -> Path | None:
    """DIR of a name written "folder:DIR"; None of any other name."""
    place = name.removeprefix(_FOLDER)
    return Path(place).expanduser() if name.startswith(_FOLDER) and place else None


def own_files(name: str) -> str | None:
    """What follows "file:" in a name; None of any other name."""
    place = name.removeprefix(_FILE)
    return place if name.startswith(_FILE) and place else None
