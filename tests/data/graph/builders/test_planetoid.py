"""Cora and Citeseer: pickles that can do nothing, the public split, the papers nobody knows."""

import os
import pickle

import numpy as np
import pytest

import errors
from data.graph import load
from data.graph.builders import planetoid
from data.graph.builders.planetoid import Citeseer, Cora


class Evil:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_names_anything_else_is_refused(tmp_path, monkeypatch, one_line, protocol):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.RunError) as raised:
        planetoid._loaded(pickle.dumps([Evil()], protocol), "ind.cora.x")
    one_line(raised, "ind.cora.x", "mkdir")
    assert not (tmp_path / "owned").exists()


def test_damage(one_line):
    with pytest.raises(errors.RunError) as raised:
        planetoid._loaded(pickle.dumps([1, 2, 3])[:-3], "ind.cora.y")
    one_line(raised, "ind.cora.y")


@pytest.mark.parametrize(
    "builder, sizes, nodes, edges, classes",
    [(Cora, (140, 500, 1000), 2708, 5278, 7), (Citeseer, (120, 500, 1000), 3327, 4552, 6)],
)
def test_published_sizes(prepared, builder, sizes, nodes, edges, classes):
    parts = load.graphs(builder.name, data_dir=prepared(builder.name))
    found = [part[0] for part in (parts.train, parts.validation, parts.test)]
    for graph, size in zip(found, sizes, strict=True):
        assert len(graph) == nodes
        assert len(graph.senders) == 2 * edges
        labels = [label for label in graph.labels if label is not None]
        assert len(labels) == size
        assert set(labels) == set(builder.CLASSES)
    # Twenty papers of each class to train on.
    counts = np.unique([label for label in found[0].labels if label], return_counts=True)[1]
    assert counts.tolist() == [20] * classes
    if builder is Citeseer:
        assert (found[0].features.sum(1) == 0).sum() == 15
