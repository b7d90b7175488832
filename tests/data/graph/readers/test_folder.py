"""A graph of one's own, as people have it: the right result, or one line with file and line."""

import pytest

import errors
from data.graph import load
from data.graph.readers import folder

NODES = (
    "\ufeffid\tlabel\tsplit\tage\theight\r\na\tx\ttrain\t1\t2\r\nb\ty\ttrain\t3\t4\r\n\t\t\t\t\r\n"
    "c d\tx\tvalidation\t5\t6\r\ne\ty\ttest\t7\t8\r\nlone\t\t\t9\t10"
)
# One direction, both, twice, a self loop twice; `lone` has no edge; no final line end.
EDGES = "a\tb\nb\ta\nc d\tb\nc d\tb\n\t\n\ne\te\ne\te\ne\ta"


@pytest.fixture
def write(tmp_path):
    def write(nodes=NODES, edges=EDGES):
        (tmp_path / "nodes.tsv").write_bytes(nodes.encode())
        (tmp_path / "edges.tsv").write_bytes(edges.encode())
        return tmp_path

    return write


def test_messy_files(write):
    parts = load.graphs(f"folder:{write()}")
    graph = parts.train[0]
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]
    pairs = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    assert pairs == [(1, 0), (3, 0), (0, 1), (2, 1), (1, 2), (0, 3)]
    assert graph.labels == ["x", "y", None, None, None]
    assert parts.validation[0].labels == [None, None, "x", None, None]
    assert parts.test[0].labels == [None, None, None, "y", None]


def test_directed(write):
    graph = load.graphs(f"folder:{write()}", is_directed=True).train[0]
    pairs = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    assert pairs == [(1, 0), (3, 0), (0, 1), (2, 1)]


def test_new_input_needs_neither_labels_nor_splits(write):
    graph, ids = folder.unlabelled(write("id\tage\na\t1\nb\t2\n", "a\tb\n"))
    assert ids == ["a", "b"]
    assert graph.features.tolist() == [[1], [2]]
    assert not graph.labels


@pytest.mark.parametrize(
    "nodes, edges, parts",
    [
        (NODES, "a\tb\nb\tz\n", ["edges.tsv:2", "node 'z' is not in nodes.tsv"]),
        (NODES, "a b\n", ["edges.tsv:1", "1 fields"]),
        (NODES, "a\tb\t1\n", ["edges.tsv:1", "3 fields"]),
        (NODES.replace("e\ty", "a\ty"), EDGES, ["nodes.tsv:6", "node 'a' is listed twice"]),
        (NODES.replace("\t7\t", "\tseven\t"), EDGES, ["nodes.tsv:6", "age is 'seven'"]),
        (NODES.replace("\t7\t", "\tnan\t"), EDGES, ["nodes.tsv:6", "age is 'nan'"]),
        (NODES.replace("\t7\t8", "\t7"), EDGES, ["nodes.tsv:6", "4 fields, but the header has 5"]),
        (NODES.replace("test", "tests"), EDGES, ["nodes.tsv:6", "split 'tests'", "validation"]),
        (NODES.replace("y\ttest", "\ttest"), EDGES, ["nodes.tsv:6", "without a label"]),
        (NODES.replace("y\ttest", "y\t"), EDGES, ["nodes.tsv", "no node of split test"]),
        ("name\tage\na\t1\n", EDGES, ["unknown column", "'id'", "age, name"]),
        ("id\tlabel\na\tx\n", EDGES, ["nodes.tsv", "one feature"]),
    ],
)
def test_what_is_wrong_is_one_line(write, one_line, nodes, edges, parts):
    with pytest.raises(errors.UserError) as raised:
        load.graphs(f"folder:{write(nodes, edges)}")
    one_line(raised, *parts)


def test_a_file_that_is_missing(tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.graphs(f"folder:{tmp_path}")
    one_line(raised, "lacks nodes.tsv")
