"""The one way in: folds, molecules of one's own, names."""

import collections

import pytest

import errors
from data.graph import load


def molecules(tmp_path, text, name="X.csv", **arguments):
    (tmp_path / name).write_bytes(text.encode())
    return load.graphs(f"file:{tmp_path / name}", **arguments)


def carbon(n):
    return "C" * (n + 1)


TWENTY = "name,smiles,target\r\n" + "".join(f'"a, {n}",{carbon(n)},{n / 2}\r\n' for n in range(20))


def test_every_molecule_is_tested_by_one_fold(tmp_path):
    tested = collections.Counter()
    for fold in range(4):
        parts = molecules(tmp_path, TWENTY, fold=fold, folds=4)
        tested.update(molecule.smiles for molecule in parts.test)
        parted = [*parts.train, *parts.validation, *parts.test]
        assert sorted(len(molecule.smiles) for molecule in parted) == list(range(1, 21))
        assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [13, 2, 5]
        assert all(molecule.target == ((len(molecule.smiles) - 1) / 2,) for molecule in parted)
        assert parts.test[0].where.endswith(f"X.csv:{len(parts.test[0].smiles) + 1}")
    assert set(tested.values()) == {1}
    again, other = (molecules(tmp_path, TWENTY, folds=4, split_seed=seed).test for seed in (0, 1))
    assert again == molecules(tmp_path, TWENTY, folds=4).test
    assert again != other


@pytest.mark.parametrize(
    "targets, values, found",
    [
        (None, "0 1 1 0", {"0", "1"}),
        (None, "-1 1 1 -1", {"-1", "1"}),
        (None, "0.5 1 1 0", {(0.0,), (0.5,), (1.0,)}),
        ("numbers", "0 1 1 0", {(0.0,), (1.0,)}),
        ("classes", "0.5 1 1 0", {"0.5", "1", "0"}),
        (None, "yes no no yes", {"yes", "no"}),
    ],
)
def test_classes_and_numbers(tmp_path, targets, values, found):
    text = "smiles\ty\n" + "".join(f"C\t{value}\n" for value in values.split())
    parts = molecules(tmp_path, text, "X.tsv", targets=targets, folds=2)
    assert {m.target for m in (*parts.train, *parts.validation, *parts.test)} == found


@pytest.mark.parametrize(
    "text, arguments, said",
    [
        ("smiles,a,b\nC,1,2\n", {}, ["which column is the target", "a, b", "target_column"]),
        ("smiles,a\nC,1\n", {"target_column": "c"}, ["unknown column", "'c'", "a, smiles"]),
        ("mol,a\nC,1\n", {}, ["which column is the target"]),
        ("smiles,a\nC,1\nC\n", {}, ["X.csv:3", "1 fields, but the header has 2"]),
        ("smiles,a\nC,1\nC,\n", {}, ["X.csv:3", "a is empty"]),
        ("smiles,a\nC,1\nC,x\n", {"targets": "numbers"}, ["X.csv:3", "a is 'x'"]),
        ("smiles,a\nC,1\nC,2\n", {}, ["2 graph(s), no test; 5 are needed for 5 folds"]),
        (TWENTY, {"fold": 5}, ["fold 5 of 5", "from 0 to 4"]),
        (TWENTY, {"targets": "number"}, ["unknown kind of targets", "'numbers'"]),
        (TWENTY, {"validation_fraction": 1.0}, ["validation_fraction 1.0"]),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, one_line, text, arguments, said):
    with pytest.raises(errors.UserError) as raised:
        molecules(tmp_path, text, **arguments)
    one_line(raised, *said)


@pytest.mark.parametrize("arguments", [{"fold": 2}, {"folds": 5}])
def test_a_set_with_a_test_of_its_own_has_no_folds(arguments, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.graphs("karate", **arguments)
    one_line(raised, "karate has a test of its own")


def test_names(tmp_path, one_line):
    for name, said in (
        ("coras", ["unknown data set 'coras'. Did you mean 'cora'?", "folder:DIR", "file:X.csv", "karate"]),
        ("esol", ["not prepared", "python -m data.prepare esol"]),
        ("folder:/none", ["/none does not exist"]),
        ("file:/none.csv", ["/none.csv does not exist"]),
    ):
        with pytest.raises(errors.UserError) as raised:
            load.graphs(name, data_dir=tmp_path)
        one_line(raised, *said)
