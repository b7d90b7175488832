"""Graph data, held in memory: `load(name)` is the one way in."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import errors
from data import builders, streams, subsets
from data.graph import folder as folders
from data.graph import karate, table
from data.graph.graphs import Example, Molecule
from data.parts import Parts

GENERATED = builders.GENERATED["graph"]  # always there
FOLDER, FILE = "folder:", "file:"
FOLDS = 5  # where none are published and none are asked for
TARGETS = ("auto", "classes", "numbers")
_MANY = 10  # more different whole numbers than this are no classes


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return (*GENERATED, *builders.names("graph"))


def load(
    name: str,
    *,
    data_dir: str | None = None,
    fold: int = 0,
    folds: int = 0,
    seed: int = 0,
    validation_fraction: float = 0.1,
    is_directed: bool = False,
    smiles_column: str = "smiles",
    target_column: str = "",
    targets: str = "auto",
) -> Parts[Sequence[Example]]:
    """Loads a data set into memory, as a run with one fold for its test sees it.

    Sets about nodes (karate, cora, citeseer, a folder) come with their split: they have no folds, and
    `seed` changes nothing. The others are parted into folds, by the published lists where there are such,
    else by one permutation per seed; one fold is the test, and of the others `validation_fraction` is held
    out, balanced over classes.

    Args:
        name: one of `names()`; or a set of the same fields that is prepared under `data_dir`; or
            "folder:DIR", a graph of your own (see data/graph/folder.py); or "file:X.csv" or "file:X.tsv",
            molecules of your own.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        fold: which one is the test, from 0.
        folds: how many; 0 is as published, or 5.
        seed: of the permutation, and of what is held out.
        validation_fraction: share of the training folds to hold out, in (0, 1).
        is_directed: whether the edges of a folder are heard at their second node alone.
        smiles_column: of a file.
        target_column: of a file; "" is the one called target, label or y, or the only other one.
        targets: of a file, whether they are "classes" or "numbers"; "auto" takes them as numbers if all
            are, and not all of them whole or more than 10 different ones.

    Returns:
        Graphs or molecules to train on, to validate on and to test on.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    subsets.check_fraction(validation_fraction)
    if targets not in TARGETS:
        raise errors.unknown("kind of targets", targets, TARGETS)
    streams.check_seed(seed)
    if name == "karate":
        _refuse_folds(name, fold, folds)
        return karate.parts()
    if name.startswith(FOLDER) and name != FOLDER:
        _refuse_folds(name, fold, folds)
        return folders.read(_path(name), is_directed=is_directed)
    if name.startswith(FILE) and name != FILE:
        examples: list[Example] = list(_molecules(_path(name), smiles_column, target_column, targets))
        return _parts(name, examples, np.zeros(0), fold, folds or FOLDS, seed, validation_fraction)
    return _prepared(name, data_dir, fold, folds, seed, validation_fraction)


def _refuse_folds(name: str, fold: int, folds: int) -> None:
    if fold or folds:
        raise errors.UserError(
            f"fold {fold} of {folds} is not allowed: {name} has a test of its own; leave both at 0"
        )


def _path(name: str) -> Path:
    path = Path(name.partition(":")[2]).expanduser()
    if not path.exists():
        raise errors.UserError(f"{name}: {path} does not exist")
    return path


def _prepared(
    name: str, data_dir: str | None, fold: int, folds: int, seed: int, fraction: float
) -> Parts[Sequence[Example]]:
    # What is imported here takes longer to import than a small data set takes to load.
    from data import prepared
    from data.graph import records

    others = (*names(), f"{FOLDER}DIR", f"{FILE}X.csv")
    directory = prepared.folder(name, "graph", data_dir, others)
    found = records.read(directory)
    if isinstance(found, Parts):
        _refuse_folds(name, fold, folds)
        return found
    if found.num_folds and folds not in (0, found.num_folds):
        raise errors.UserError(f"folds {folds} is not allowed: {name} is published in {found.num_folds}")
    if "test" not in found.splits:
        folds = found.num_folds or folds or FOLDS
        published = found.folds if found.num_folds else np.zeros(0)
        return _parts(name, found.splits["train"], published, fold, folds, seed, fraction)
    _refuse_folds(name, fold, folds)
    train = found.splits["train"]
    if "validation" in found.splits:
        return Parts(train, found.splits["validation"], found.splits["test"])
    return Parts(*_hold_out(train, fraction, seed), found.splits["test"])


def _parts(
    name: str,
    examples: list[Example],
    published: np.ndarray,
    fold: int,
    folds: int,
    seed: int,
    fraction: float,
) -> Parts[Sequence[Example]]:
    if folds < 2 or not 0 <= fold < folds:
        raise errors.UserError(
            f"fold {fold} of {folds} is not allowed: 2 folds at least, and a fold from 0 to {folds - 1}"
        )
    if len(examples) < max(folds, 3):
        raise errors.UserError(f"{name}: {len(examples)} examples are too few for {folds} folds")
    fold_of = published
    if not len(published):
        fold_of = np.empty(len(examples), np.int64)
        fold_of[streams.Stream(seed, "folds").permutation(len(examples))] = np.arange(len(examples)) % folds
    test = [example for example, tests in zip(examples, fold_of, strict=True) if tests == fold]
    rest = [example for example, tests in zip(examples, fold_of, strict=True) if tests != fold]
    return Parts(*_hold_out(rest, fraction, seed), test)


def _hold_out(examples: list[Example], fraction: float, seed: int) -> tuple[list[Example], list[Example]]:
    targets = [example.target for example in examples]
    kinds = {target: kind for kind, target in enumerate(dict.fromkeys(targets)) if isinstance(target, str)}
    classes = np.array([kinds.get(target, 0) for target in targets])  # type: ignore[arg-type]
    train, validation = subsets.train_and_validation(classes, len(examples), fraction, seed)
    return [examples[i] for i in train], [examples[i] for i in validation]


def _molecules(path: Path, smiles_column: str, target_column: str, targets: str) -> list[Molecule]:
    delimiter = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if delimiter is None:
        raise errors.UserError(f"{path}: a table of molecules must end in .csv or .tsv")
    content = path.read_bytes()
    others = [c for c in table.header(content, str(path), delimiter) if c != smiles_column]
    if not target_column:
        usual = [column for column in others if column.lower() in ("target", "label", "y")] or others
        if len(usual) != 1:
            raise errors.UserError(
                f"{path}: which column is the target? Name one of {', '.join(others)} by target_column"
            )
        target_column = usual[0]
    rows = list(table.rows(content, str(path), (smiles_column, target_column), delimiter))
    words = [row.values[target_column].strip() for row in rows]
    for row, word in zip(rows, words, strict=True):
        if not word:
            raise errors.UserError(f"{row.where}: {target_column} is empty")
    if targets == "numbers" or (targets == "auto" and _are_numbers(words)):
        values: list = [(table.number(row, target_column),) for row in rows]
    else:
        values = words
    return [
        Molecule(row.values[smiles_column].strip(), value, row.where)
        for row, value in zip(rows, values, strict=True)
    ]


def _are_numbers(words: list[str]) -> bool:
    try:
        values = {float(word) for word in words}
    except ValueError:
        return False
    return len(values) > _MANY or any(value != int(value) for value in values if np.isfinite(value))
