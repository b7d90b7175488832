"""Graphs and molecules in the words of the data, before they are encoded as numbers."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

Target = str | tuple[float, ...] | None
Targets = Literal["classes", "numbers"]  # what the targets of a file are


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, and edges from a sender to a receiver.

    Attributes:
        features: what is measured of each node, float32 `[n, C]`; C may be 0.
        senders: the node each edge starts from, int32 `[E]`.
        receivers: the node each edge ends at, int32 `[E]`.
        edges: what is measured of each edge, float32 `[E, C]`; C may be 0.
        tags: the word on each node, where there are such, n of them; or none at all.
        labels: what is asked of each node, None where nothing is; or none at all.
        target: what is asked of the graph: its class, or numbers.
        where: where it was read, for messages.
    """

    features: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    edges: np.ndarray
    tags: Sequence[str] = ()
    labels: Sequence[str | None] = ()
    target: Target = None
    where: str = "a graph"

    def __len__(self) -> int:
        return len(self.features)


class Molecule(NamedTuple):
    """A molecule as chemists write it, encoded as a graph by data/graph/smiles.py.

    Attributes:
        smiles: its formula in SMILES (Weininger 1988).
        target: what is asked of it.
        where: where it was read, for messages.
    """

    smiles: str
    target: Target = None
    where: str = "a molecule"


Example = Graph | Molecule


def directed(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each edge once, without self loops: models give every node an edge to itself.

    Args:
        pairs: sender and receiver of each edge, int `[E, 2]`, however often.

    Returns:
        Senders and receivers, int32, ordered by receiver and then by sender.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    once = np.unique(pairs[pairs[:, 0] != pairs[:, 1], ::-1], axis=0).astype(np.int32)
    return once[:, 1].copy(), once[:, 0].copy()


def undirected(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`directed` of each edge in both directions, whether listed in one or in both."""
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    return directed(np.concatenate([pairs, pairs[:, ::-1]]))
