"""Where a model looked, on disk."""

import csv

import numpy as np
import pytest

from tasks.alignment import Alignment

ALIGNMENT = Alignment(("ein", "$5", "</s>"), ("a", "fish"), np.array([[1, 0, 0], [0.25, 0.5, 0.25]]))


def test_three_files(tmp_path):
    ALIGNMENT.save(tmp_path / "looks", "0001")
    assert sorted(path.name for path in (tmp_path / "looks").iterdir()) == [
        "0001.csv",
        "0001.npz",
        "0001.png",
    ]
    rows = list(csv.reader((tmp_path / "looks" / "0001.csv").read_text().splitlines()))
    assert rows == [
        ["", "ein", "$5", "</s>"],
        ["a", "1.000000", "0.000000", "0.000000"],
        ["fish", "0.250000", "0.500000", "0.250000"],
    ]
    with np.load(tmp_path / "looks" / "0001.npz") as kept:
        np.testing.assert_array_equal(kept["weights"], ALIGNMENT.weights)
        assert kept["source"].tolist() == ["ein", "$5", "</s>"]


def test_weights_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"\(2, 3\).* 1 targets by 3"):
        Alignment(ALIGNMENT.source, ("a",), ALIGNMENT.weights)
