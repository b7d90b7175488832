"""Graphs and molecules prepared on disk, in memory; told apart by the fields of their records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import errors
from data.graph.types import Example, Graph, Molecule, undirected
from data.readers import prepared
from data.splits import NAMES, Splits


class PublishedGraphs(NamedTuple):
    """All there is of a data set, before it is divided.

    Attributes:
        splits: by the name of the split.
        fold_of: the fold that tests each example of the train split; None where none are published.
        folds: how many there are; None where none are published.
    """

    splits: dict[str, list[Example]]
    fold_of: np.ndarray | None = None
    folds: int | None = None


def read(directory: Path) -> Splits[list[Example]] | PublishedGraphs:
    """Reads a prepared data set into memory.

    Args:
        directory: what `data.readers.prepared.find` returned.

    Returns:
        The splits, where the records are the nodes of one graph; else graphs to be divided.

    Raises:
        errors.UserError: its records have none of the fields that are known here.
        errors.RunError: its files are damaged.
    """
    stored = prepared.open_folder(directory)
    fields, about = set(stored.info.features), dict(stored.info.metadata or {})
    if {"node", "words", "neighbours", "label"} <= fields:
        return _one_graph(stored, about)
    if {"smiles", "target"} <= fields:
        make: Callable[..., Example] = _molecule
    elif {"tags", "senders", "receivers", "label"} <= fields:
        make = _graph
    else:
        raise errors.UserError(
            f"{directory} holds no graphs: records of (node, words, neighbours, label), (smiles, target) or "
            f"(tags, senders, receivers, label) are needed, but these have {', '.join(sorted(fields))}"
        )
    splits: dict[str, list[Example]] = {}
    folds = []
    unreadable = set(about.get("unreadable", ()))
    for split in stored.info.splits:
        splits[split] = []
        for index, record in enumerate(prepared.records(stored, split)):
            if index not in unreadable:
                splits[split].append(make(stored, record, f"{stored.name}, {split} {index}"))
                folds += [int(record.get("fold", -1))] * (split == "train")
    num_folds = int(about.get("folds", 0))
    return PublishedGraphs(splits, np.array(folds), num_folds) if num_folds else PublishedGraphs(splits)


def _molecule(stored: Any, record: dict[str, Any], where: str) -> Molecule:
    names = getattr(stored.info.features["target"], "names", None)
    target = names[int(record["target"])] if names else (float(record["target"]),)
    return Molecule(record["smiles"], target, where)


def _graph(stored: Any, record: dict[str, Any], where: str) -> Graph:
    senders, receivers = undirected(np.stack([record["senders"], record["receivers"]], axis=1))
    return Graph(
        features=np.zeros((len(record["tags"]), 0), np.float32),
        senders=senders,
        receivers=receivers,
        edges=np.zeros((len(senders), 0), np.float32),
        tags=[str(tag) for tag in record["tags"]],
        target=stored.info.features["label"].names[int(record["label"])],
        where=where,
    )


def _one_graph(stored: Any, about: dict[str, Any]) -> Splits[list[Example]]:
    """The nodes of all splits as one graph, words as 0 and 1."""
    nodes = [(split, record) for split in stored.info.splits for record in prepared.records(stored, split)]
    nodes.sort(key=lambda pair: int(pair[1]["node"]))
    features = np.zeros((len(nodes), int(about["words"])), np.float32)
    for node, (_, record) in enumerate(nodes):
        features[node, record["words"]] = 1
    pairs = [(node, other) for node, (_, record) in enumerate(nodes) for other in record["neighbours"]]
    senders, receivers = undirected(np.array(pairs))
    edges = np.zeros((len(senders), 0), np.float32)

    def labelled(asked: str) -> list[Example]:
        labels = [record["label"] if split == asked else None for split, record in nodes]
        return [Graph(features, senders, receivers, edges, labels=labels, where=stored.name)]

    return Splits(*map(labelled, NAMES))
