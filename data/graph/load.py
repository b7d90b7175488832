"""Graphs and molecules, held in memory: `graphs` is the one way in."""

from pathlib import Path
from typing import get_args

import numpy as np

import errors
from data import catalogue, splits, streams
from data.graph.types import Example, Targets
from data.splits import Convention, Splits
from spec import Natural, Share


def _classes(examples: list[Example]) -> np.ndarray:
    """Words by where they first stand; numbers are no classes, and all alike."""
    targets = [example.target for example in examples]
    number = {target: place for place, target in enumerate(dict.fromkeys(targets)) if isinstance(target, str)}
    return np.array([number.get(target, 0) for target in targets])  # type: ignore[arg-type]


GRAPHS = Convention[list[Example]](
    noun="graph", classes=_classes, folds=5, fold=0, folds_by_seed=True, folds_in_turn=True
)


def graphs(
    name: str,
    *,
    data_dir: str | None = None,
    is_directed: bool = False,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    targets: Targets | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[list[Example]]:
    """Loads graphs or molecules, as a run with one fold for its test sees them.

    Sets about nodes (karate, cora, citeseer, a folder) come with their split: they have no folds, and
    `split_seed` changes nothing. The others are divided into folds, by the published lists where there are
    such, else by one permutation per seed; one fold is the test, and a part of the others, balanced over
    classes, is held out.

    Args:
        name: a built-in set, a prepared one of the same fields, folder:DIR for a graph, or file:X.csv.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        is_directed: whether the edges of a folder are heard at their second node alone.
        smiles_column: column of the molecules of a file.
        target_column: column of the targets of a file; None: target, label or y, or the only other one.
        targets: what the targets of a file are; None: numbers if they look like measurements, else classes.
        validation_fraction: share of the training folds held out to choose by, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: the first.
        folds: how many folds; None: as published, else 5.
        split_seed: decides the folds that are not published, and what is held out.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    if targets is not None and targets not in get_args(Targets):
        raise errors.unknown("kind of targets", targets, get_args(Targets))
    folder, file = catalogue.own_folder(name), catalogue.own_files(name)
    own = folder or (Path(file).expanduser() if file else None)
    if own and not own.exists():
        raise errors.UserError(f"{name}: {own} does not exist")
    if not file:
        for option, value in (("target_column", target_column), ("targets", targets)):
            if value is not None:
                raise errors.UserError(
                    f"{option} {value!r} is not allowed: it is for file:X.csv or file:X.tsv"
                )
    # What is imported here takes longer to import than a small data set takes to load.
    fold_of = None
    if name in catalogue.GENERATED["graph"]:
        from data.graph.generated import karate

        splits.refuse_folds(name, fold, folds)
        return karate.splits()
    if folder:
        from data.graph.readers import folder as reader

        splits.refuse_folds(name, fold, folds)
        return reader.read(folder, is_directed=is_directed)
    if own:
        from data.graph.readers import molecules

        examples = molecules.read(
            own, smiles_column=smiles_column, target_column=target_column, targets=targets
        )
        published = {"train": examples}
    else:
        from data.graph.readers import records
        from data.readers import prepared

        stored = records.read(prepared.folder(name, "graph", data_dir, ("folder:DIR", "file:X.csv")))
        if isinstance(stored, Splits):
            splits.refuse_folds(name, fold, folds)
            return stored
        if stored.folds and folds not in (None, stored.folds):
            raise errors.UserError(f"folds {folds} is not allowed: {name} is published in {stored.folds}")
        published, fold_of, folds = stored.splits, stored.fold_of, stored.folds or folds
    return splits.divide(
        name,
        published,
        GRAPHS,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
        fold_of=fold_of,
    )
