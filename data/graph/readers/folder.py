"""A graph of your own: `dataset=folder:DIR`.

    DIR/nodes.tsv    a header `id  label  split  FEATURE ...`, then a line per node: any word as id, its
                     label, the split it belongs to (train, validation or test), and numbers. Where label
                     and split are empty the node is there without being asked for.
    DIR/edges.tsv    no header, two ids on each line

An edge counts in both directions, once however often it is listed, unless the graph is said to be directed,
where the second node hears the first. Self loops add nothing.
"""

import dataclasses
from pathlib import Path

import numpy as np

import errors
from data.graph.readers import table
from data.graph.types import Example, Graph, directed, undirected
from data.readers import lines
from data.splits import NAMES, Splits

NODES, EDGES = "nodes.tsv", "edges.tsv"
_COLUMNS = ("id", "label", "split")


def read(folder: Path, *, is_directed: bool = False) -> Splits[list[Example]]:
    """Reads a graph with the labels of its splits.

    Args:
        folder: laid out as above.
        is_directed: whether an edge is heard at its second node alone.

    Returns:
        The same graph three times, each with the labels of one split.

    Raises:
        errors.UserError: a file is missing, or a line is not as above; file and line are named.
    """
    graph, rows = _read(folder, is_directed)
    labels: dict[str, list[str | None]] = {split: [None] * len(rows) for split in NAMES}
    for node, row in enumerate(rows):
        label, split = row.values.get("label", "").strip(), row.values.get("split", "").strip()
        if split and split not in NAMES:
            raise errors.UserError(f"{row.where}: split {split!r}; {', '.join(NAMES)} or nothing are allowed")
        if split and not label:
            raise errors.UserError(f"{row.where}: a node of split {split} without a label")
        if split:
            labels[split][node] = label
    for split in NAMES:
        if not any(labels[split]):
            raise errors.UserError(f"{folder / NODES}: no node of split {split}")
    train, validation, test = (dataclasses.replace(graph, labels=labels[split]) for split in NAMES)
    return Splits([train], [validation], [test])


def unlabelled(folder: Path, *, is_directed: bool = False) -> tuple[Graph, list[str]]:
    """The graph and the ids of its nodes; columns for label and split may be missing."""
    graph, rows = _read(folder, is_directed)
    return graph, [row.values["id"] for row in rows]


def _read(folder: Path, is_directed: bool) -> tuple[Graph, list[table.Row]]:
    for name in (NODES, EDGES):
        if not (folder / name).is_file():
            raise errors.UserError(f"graph folder {folder} lacks {name}")
    path = folder / NODES
    content = path.read_bytes()
    names = [column for column in table.header(content, str(path), "\t") if column not in _COLUMNS]
    rows = list(table.rows(content, str(path), ("id",), "\t"))
    if not rows or not names:
        raise errors.UserError(f"{path}: at least one node with one feature is needed")
    features = np.array([[table.number(row, name) for name in names] for row in rows], np.float32)
    number: dict[str, int] = {}
    for row in rows:
        if number.setdefault(row.values["id"], len(number)) != len(number) - 1:
            raise errors.UserError(f"{row.where}: node {row.values['id']!r} is listed twice")
    pairs = []
    path = folder / EDGES
    for line, text in lines.numbered(path.read_bytes(), str(path)):
        if lines.is_blank(text):
            continue
        ends = text.split("\t")
        if len(ends) != 2:
            raise errors.UserError(
                f"{path}:{line}: {len(ends)} fields; two ids with a tab between are needed"
            )
        for end in ends:
            if end not in number:
                raise errors.UserError(f"{path}:{line}: node {end!r} is not in {NODES}")
        pairs.append([number[end] for end in ends])
    listed = np.array(pairs, np.int64).reshape(-1, 2)
    senders, receivers = (directed if is_directed else undirected)(listed)
    edges = np.zeros((len(senders), 0), np.float32)
    return Graph(features, senders, receivers, edges, where=str(folder)), rows
