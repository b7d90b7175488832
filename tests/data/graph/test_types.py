"""Edges as people list them, and the karate club."""

import numpy as np

from data.graph import load
from data.graph.types import directed, undirected


def test_edges_once_in_each_direction_without_self_loops():
    # 0-1 in both directions, 2-1 in one, 2-2 twice, 2-1 again.
    pairs = np.array([[0, 1], [1, 0], [2, 1], [2, 2], [2, 2], [2, 1]])
    senders, receivers = undirected(pairs)
    assert list(zip(senders, receivers, strict=True)) == [(1, 0), (0, 1), (2, 1), (1, 2)]
    senders, receivers = directed(pairs)
    assert list(zip(senders, receivers, strict=True)) == [(1, 0), (0, 1), (2, 1)]
    assert senders.dtype == np.int32
    assert [len(ends) for ends in undirected(np.zeros((0, 2)))] == [0, 0]


def test_karate():
    parts = load.graphs("karate")
    graph = parts.train[0]
    assert len(graph) == 34
    assert len(graph.senders) == 2 * 78
    degrees = np.bincount(graph.receivers)
    # Zachary's degrees: the instructor 16, the president 17, member 33 12, member 12 one friend.
    assert degrees[[0, 33, 32, 11]].tolist() == [16, 17, 12, 1]
    labels = {}
    for part in (parts.train, parts.validation, parts.test):
        assert part[0].features is not None
        for node, label in enumerate(part[0].labels):
            if label is not None:
                assert node not in labels
                labels[node] = label
    assert len(labels) == 34
    assert [labels[node] for node in (0, 33, 8, 9)] == ["Mr. Hi", "Officer", "Mr. Hi", "Officer"]
    assert sorted(labels.values()).count("Officer") == 17
