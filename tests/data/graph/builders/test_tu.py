"""The text format of the TU sets, and their published folds."""

from pathlib import Path

import pytest

import errors
from data.graph import load
from data.graph.builders import tu
from data.graph.readers.records import PublishedGraphs, read

TWO = b"2\n3 1\n7 2 1 2\n4 1 0\n7 1 0\n1 0\n9 0\n"


def test_two_graphs():
    first, second = tu.parse(TWO, "x.txt", ("0", "1"))
    assert first == {"tags": [7, 4, 7], "senders": [1, 2, 0, 0], "receivers": [0, 0, 1, 2], "label": "1"}
    assert second == {"tags": [9], "senders": [], "receivers": [], "label": "0"}


@pytest.mark.parametrize(
    "content, parts",
    [
        (TWO[:-5], ["x.txt:7", "truncated"]),
        (TWO.replace(b"3 1", b"3 2"), ["x.txt:2", "label 2, allowed are 0, 1"]),
        (TWO.replace(b"2 1 2", b"2 1 3"), ["x.txt:3", "2 neighbours below 3 expected, got [1, 3]"]),
        (TWO.replace(b"4 1 0", b"4 2 0"), ["x.txt:4", "2 neighbours"]),
        (TWO.replace(b"4 1 0", b"4 1 a"), ["x.txt:4", "'a' is no whole number"]),
    ],
)
def test_damage(content, parts, one_line):
    with pytest.raises(errors.RunError) as raised:
        tu.parse(content, "x.txt", ("0", "1"))
    one_line(raised, *parts)


def test_published_folds_of_mutag(prepared, one_line):
    data_dir = prepared("mutag")
    everything = read(Path(data_dir) / "mutag" / "1.0.0")
    assert isinstance(everything, PublishedGraphs)
    assert len(everything.splits["train"]) == 188
    # Every fold tests 18; eight graphs are tested by none.
    assert [(everything.fold_of == fold).sum() for fold in range(-1, 10)] == [8] + [18] * 10
    parts = load.graphs("mutag", data_dir=data_dir, fold=3)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (153, 17, 18)
    first = everything.splits["train"][0]
    assert (len(first), len(first.senders), first.tags[0], first.target) == (23, 54, "2", "2")
    with pytest.raises(errors.UserError) as raised:
        load.graphs("mutag", data_dir=data_dir, folds=5)
    one_line(raised, "folds 5", "published in 10")
