"""Cora and Citeseer: papers that cite each other, as bags of words, with the split of Planetoid.

Published as Python pickles, which can hold any program; so they are read by an unpickler that knows six
names and refuses all others.
"""

import collections
import io
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
import tensorflow_datasets as tfds

import errors
from data import raw_files
from data.builder import Builder, Record

_ROOT = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_VALIDATION = 500
_UNKNOWN = ""  # the label of a paper whose class nobody knows


class _Unpickler(pickle.Unpickler):
    """Reads arrays, sparse matrices and dicts of lists, and refuses whatever else a pickle may name."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            "numpy ndarray": np.ndarray,
            "numpy dtype": np.dtype,
            # Under the name of NumPy 1, by which the files call it.
            "numpy.core.multiarray _reconstruct": np.empty(0).__reduce__()[0],
            "scipy.sparse.csr csr_matrix": scipy.sparse.csr_matrix,
            "collections defaultdict": collections.defaultdict,
            "__builtin__ list": list,
        }
        if f"{module} {name}" not in known:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no such file needs")
        return known[f"{module} {name}"]


class PlanetoidBuilder(Builder):
    """A TFDS builder of one citation graph.

    A record is a paper: its number, its words, the papers it cites or is cited by, and its class. The split
    a record is in says what its class is for; "unlabelled" holds the papers whose class is for nothing. All
    of them together are one graph.

    Attributes:
        STEM: how the raw files begin.
        CLASSES: the word for each class.
        WORDS: size of the vocabulary.
    """

    STEM: ClassVar[str]
    CLASSES: ClassVar[tuple[str, ...]]
    WORDS: ClassVar[int]
    CONTENT: ClassVar[Mapping[str, tuple[int, str]]]
    SUPERVISED = ("words", "label")
    LICENSE = "MIT (the repository of Planetoid)."

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.METADATA = {"words": cls.WORDS}
        cls.RAW_FILES = tuple(
            raw_files.RawFile(cls.file(part), *about) for part, about in cls.CONTENT.items()
        )
        # Published as they are, so that what is downloaded is the content.
        cls.DOWNLOADS = tuple(
            raw_files.Download(f"{_ROOT}/{file.name}", file.sha256) for file in cls.RAW_FILES
        )

    @classmethod
    def file(cls, part: str) -> str:
        """The name of a raw file."""
        return f"ind.{cls.STEM}.{part}"

    @classmethod
    def features(cls) -> dict[str, Any]:
        """A paper."""
        return {
            "node": np.int32,
            "words": tfds.features.Sequence(np.int32),
            "neighbours": tfds.features.Sequence(np.int32),
            "label": tfds.features.Text(),
        }

    @classmethod
    def what(cls) -> str:
        """Papers."""
        return "papers of one citation graph"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, list[Record]]:
        """Papers by the split their class belongs to.

        The papers of the test come last and out of order; a file says where each belongs. Citeseer's has
        gaps: papers without words, whose class is not known.
        """
        loaded = {part: _loaded(contents[cls.file(part)], cls.file(part)) for part in _PARTS[:-1]}
        name = cls.file("test.index")
        try:
            places = np.array(contents[name].split(), dtype=np.int64)
        except ValueError as error:
            raise errors.RunError(f"{name}: {error}") from error
        known, tested, neighbours = len(loaded["ally"]), loaded["ty"], loaded["graph"]
        if len(places) != len(tested) or len(set(places)) != len(places):
            raise errors.RunError(f"{name}: {len(set(places)):,} places, expected {len(tested):,}")
        total = len(neighbours)
        if places.min() < known or places.max() >= total or set(neighbours) != set(range(total)):
            raise errors.RunError(f"{name}: places must lie within {known:,} to {total - 1:,}")

        words: list[list[int]] = [[] for _ in range(total)]
        labels = [_UNKNOWN] * total
        for rows, classes, where in (
            (loaded["allx"], loaded["ally"], np.arange(known)),
            (loaded["tx"], tested, places),
        ):
            for row, place in enumerate(where):
                words[place] = sorted(rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist())
                labels[place] = cls.CLASSES[int(classes[row].argmax())]
        train = len(loaded["y"])
        split_of = ["unlabelled"] * total
        split_of[:train] = ["train"] * train
        split_of[train : train + _VALIDATION] = ["validation"] * _VALIDATION
        for place in places:
            split_of[place] = "test"
        splits: dict[str, list[Record]] = {split: [] for split in cls.SPLITS}
        for node, split in enumerate(split_of):
            # Listed as published: some twice, some in one direction alone, some to the paper itself.
            splits[split].append(
                {
                    "node": node,
                    "words": words[node],
                    "neighbours": [int(other) for other in neighbours[node]],
                    "label": labels[node],
                }
            )
        return splits


def _loaded(content: bytes, name: str) -> Any:
    try:
        return _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError) as error:
        raise errors.RunError(f"{name}: {' '.join(str(error).split()) or 'truncated'}") from error


class Cora(PlanetoidBuilder):
    """TFDS builder of Cora: 2,708 papers on machine learning."""

    STEM = "cora"
    CLASSES = (
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    )
    WORDS = 1433
    SPLITS: ClassVar = {"train": 140, "validation": 500, "test": 1_000, "unlabelled": 1_068}
    CONTENT: ClassVar = {
        "x": (22_119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"),
        "y": (4_054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
        "tx": (148_025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
        "ty": (28_135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
        "allx": (257_305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
        "ally": (47_959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
        "graph": (59_847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
        "test.index": (5_000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
    }
    DESCRIPTION = "Papers on machine learning, their words and citations; Planetoid's split."
    HOMEPAGE = "https://github.com/kimiyoung/planetoid"
    CITATION = """@inproceedings{yang2016revisiting,
  title     = {Revisiting Semi-Supervised Learning with Graph Embeddings},
  author    = {Yang, Zhilin and Cohen, William W. and Salakhutdinov, Ruslan},
  booktitle = {ICML},
  year      = {2016}
}"""


class Citeseer(PlanetoidBuilder):
    """TFDS builder of Citeseer: 3,327 papers on computing, 15 of them without words or class."""

    STEM = "citeseer"
    CLASSES = ("AI", "ML", "IR", "DB", "Agents", "HCI")
    WORDS = 3703
    SPLITS: ClassVar = {"train": 120, "validation": 500, "test": 1_000, "unlabelled": 1_707}
    CONTENT: ClassVar = {
        "x": (31_087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"),
        "y": (3_014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
        "tx": (260_321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
        "ty": (24_135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
        "allx": (595_021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
        "ally": (55_623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
        "graph": (61_987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
        "test.index": (5_000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
    }
    DESCRIPTION = "Papers on computer science, their words and citations; Planetoid's split."
    HOMEPAGE = "https://github.com/kimiyoung/planetoid"
    CITATION = Cora.CITATION
