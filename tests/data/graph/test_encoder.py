"""Numbers for graphs, measured on the training part alone."""

import json

import numpy as np
import pytest

import errors
from data.graph.encoder import GraphEncoder
from data.graph.types import Graph


def made(features=None, *, tags=(), labels=(), target=None, edges=0):
    size = len(tags) if features is None else len(features)
    features = np.zeros((size, 0)) if features is None else np.array(features)
    return Graph(
        features=features.astype(np.float32),
        senders=np.array([0, 1], np.int32),
        receivers=np.array([1, 0], np.int32),
        edges=np.ones((2, edges), np.float32),
        tags=tags,
        labels=labels,
        target=target,
        where="g.tsv:5",
    )


def test_tags_and_classes():
    train = [made(tags=["N", "C"], target="yes"), made(tags=["C", "C", "C"], target="no")]
    encoding = GraphEncoder.fit(train)
    assert (encoding.tags, encoding.labels, encoding.node_dim, encoding.outputs) == (
        ("C", "N"),
        ("no", "yes"),
        2,
        2,
    )
    examples = encoding.encode([made(tags=["N", "Xe"], target="no")])
    batch = examples.gather(np.array([0, -1]), (3, 4))
    assert batch["nodes"][0].tolist() == [[0, 1], [0, 0], [0, 0]]  # Xe is neither
    assert batch["label"][0] == 0
    assert batch["mask"].tolist() == [[True, True, False], [False] * 3]
    assert batch["senders"][0].tolist() == [0, 1, 0, 0]
    assert batch["edge_mask"].tolist() == [[True, True, False, False], [False] * 4]
    assert "edges" not in batch


def test_labels_of_nodes():
    train = made([[1.0], [2.0], [3.0]], labels=["b", None, "a"])
    encoding = GraphEncoder.fit([train])
    other = made([[1.0], [2.0], [3.0]], labels=[None, "a", None])
    batch = encoding.encode([other]).gather(np.array([0]), (4, 2))
    assert batch["tags"].tolist() == [[-1, 0, -1, 0]]
    assert encoding.per_node
    assert "tags" not in encoding.encode([made([[1.0], [2.0]])]).vectors


def test_targets_and_features_are_standardised_by_the_training_part():
    train = [made([[0.0, 5.0], [2.0, 5.0]], target=(1.0,)), made([[0.0, 5.0], [2.0, 5.0]], target=(5.0,))]
    encoding = GraphEncoder.fit(train, scaling="standard")
    assert (encoding.feature_mean, encoding.feature_std) == ((1, 5), (1, 1))
    assert (encoding.target_mean, encoding.target_std, encoding.outputs) == ((3,), (2,), 1)
    examples = encoding.encode([made([[4.0, 6.0], [1.0, 5.0]], target=(7.0,))])
    assert examples.vectors["nodes"].values.tolist() == [[3, 1], [0, 0]]
    assert examples.fields["target"].tolist() == [[2]]
    assert examples.fields["target"].dtype == np.float32


def test_rows_sum_to_one_but_for_empty_ones():
    encoding = GraphEncoder.fit([made([[1.0, 3.0], [0.0, 0.0]], target="a")], scaling="rows")
    examples = encoding.encode([made([[1.0, 3.0], [0.0, 0.0]])])
    assert examples.vectors["nodes"].values.tolist() == [[0.25, 0.75], [0, 0]]


def test_through_json_and_back():
    for encoding in (
        GraphEncoder.fit([made([[1.0, 2.0], [3.0, 4.0]], target=(1.0,), edges=3)], scaling="standard"),
        GraphEncoder.fit([made(tags=["C", "N"], labels=["a", None])]),
    ):
        assert GraphEncoder.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding


@pytest.mark.parametrize(
    "graph, said",
    [
        (made([[1.0, 2.0], [3.0, 4.0]], target="c"), ["g.tsv:5", "label 'c'", "a, b"]),
        (made([[1.0], [3.0]], target="a"), ["g.tsv:5: 1 features per node", "must be 2 and 0"]),
        (made([[1.0, 2.0], [3.0, 4.0]], edges=3), ["g.tsv:5: 2 features per node and 3 per edge"]),
    ],
)
def test_what_does_not_fit_the_training_part_is_one_line(graph, said, one_line):
    train = [made([[1.0, 2.0], [3.0, 4.0]], target=target) for target in "ab"]
    with pytest.raises(errors.UserError) as raised:
        GraphEncoder.fit(train).encode([graph])
    one_line(raised, *said)
    with pytest.raises(errors.UserError) as raised:
        GraphEncoder.fit(train, scaling="row")
    one_line(raised, "unknown scaling 'row'. Did you mean 'rows'?")
