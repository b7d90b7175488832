"""Text data, held in memory: `load(name, task=...)` is the one way in."""

from pathlib import Path

import numpy as np

import errors
from data import builders, streams, subsets
from data.parts import Parts
from data.text import tokenisation as tokenisations
from data.text.corpus import Corpus, LabelledTexts

LABELING, CLASSIFICATION = TASKS = ("labeling", "classification")
GENERATED = builders.GENERATED["text"]  # ready on a fresh machine, for both tasks
FILE, FOLDER = "file:", "folder:"
FOLDS = 10
_FOLD_SEED = 0


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return (*GENERATED, *builders.names("text"))


def load(
    name: str,
    *,
    task: str,
    data_dir: str | None = None,
    validation_fraction: float = 0.1,
    seed: int = 0,
    fold: int = -1,
    tokenisation: str = "",
    text_column: str = "",
    label_column: str = "",
    token_column: str = "",
    tag_column: str = "",
    encoding: str = "utf-8",
) -> Parts[Corpus]:
    """Loads a text data set into memory, as `TaggedSentences` or as `LabelledTexts`.

    A data set with a published test has that; without one its validation is the test; and one with
    nothing but train is parted into ten folds by one permutation, the same for every seed, of which
    `fold` is the test. A data set without validation has it taken from train: `validation_fraction` of it,
    chosen by `seed`, for labelled texts class by class.

    Args:
        name: one of `names()`; or a text data set that TFDS has prepared as array_record under
            `data_dir`, written NAME, NAME/CONFIG or NAME:VERSION; or "file:TRAIN,VALIDATION,TEST" or
            "folder:DIR" for your own files (see data/text/files.py).
        task: "labeling", a tag for every token, or "classification", a label for the text.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        validation_fraction: share of train to hold out, in (0, 1).
        seed: chooses what is held out; for generated sets, all of train.
        fold: the test fold, 0 to 9, of sets without a test; -1 is the last.
        tokenisation: a word of `data.text.tokenisation`, for classification; "" is the data set's own.
        text_column: where the text is, for classification; "" is found out. Columns are those of files
            or the features of prepared data sets.
        label_column: where its label is.
        token_column: where the tokens are, for labeling.
        tag_column: where their tags are, such as "xpos".
        encoding: of your own files: "utf-8", or "latin-1" to read what is no UTF-8 as Latin-1.

    Returns:
        What to train, validate and test on.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or a file
            is not as it must be.
        errors.RunError: files of a prepared data set are damaged.
    """
    if task not in TASKS:
        raise errors.unknown("task", task, TASKS)
    subsets.check_fraction(validation_fraction)
    if fold not in range(-1, FOLDS):
        raise errors.UserError(f"fold {fold!r} is not allowed: 0 to {FOLDS - 1}, or -1 for the last")
    if tokenisation:
        tokenisations.check(tokenisation)
    seed = streams.check_seed(seed)
    options = {
        "tokenisation": tokenisation,
        "text_column": text_column,
        "label_column": label_column,
        "token_column": token_column,
        "tag_column": tag_column,
        "encoding": "" if encoding == "utf-8" else encoding,
    }
    other = LABELING if task == CLASSIFICATION else CLASSIFICATION
    _refuse(options, _COLUMNS[other], f"it is for {other}, not {task}")

    if name in GENERATED:
        from data.text import grammar

        _refuse(options, options, f"{name} is generated")
        if fold != -1:
            raise errors.UserError(f"fold {fold} is not allowed: {name} has a test of its own")
        return grammar.parts(task, seed)
    splits = _read(name, task, data_dir, options)
    for split, corpus in splits.items():
        if not len(corpus):
            raise errors.UserError(f"{name}: nothing to read for {split}; at least one example is needed")
    return _parts(splits, name, validation_fraction, seed, fold)


_COLUMNS = {
    LABELING: ("token_column", "tag_column"),
    CLASSIFICATION: ("tokenisation", "text_column", "label_column"),
}


def _refuse(options: dict[str, str], keys: object, why: str) -> None:
    """No option is silently ignored."""
    for key in keys:  # type: ignore[attr-defined]
        if options[key]:
            raise errors.UserError(f"{key} {options[key]!r} is not allowed: {why}")


def _read(name: str, task: str, data_dir: str | None, options: dict[str, str]) -> dict[str, Corpus]:
    """Every split there is."""
    chosen = {key: options[key] for key in _COLUMNS[task]}
    if task == CLASSIFICATION:
        chosen["how"] = chosen.pop("tokenisation")
    for prefix in (FILE, FOLDER):
        if name.startswith(prefix) and name != prefix:
            from data.text import files

            place = name.removeprefix(prefix)
            found = files.listed(place) if prefix == FILE else files.in_folder(Path(place).expanduser())
            read = files.tagged if task == LABELING else files.labelled
            return read(found, **chosen, encoding=options["encoding"] or "utf-8")
    _refuse(options, ("encoding",), "it is for files of your own")

    # What is imported here takes longer to import than a small data set takes to load.
    from data import prepared
    from data.text import records

    others = (*names(), f"{FOLDER}DIR", f"{FILE}TRAIN,VALIDATION,TEST")
    directory = prepared.folder(name, "text", data_dir, others, also="text data set")
    return (records.tagged if task == LABELING else records.labelled)(directory, **chosen)


def _parts(splits: dict[str, Corpus], name: str, fraction: float, seed: int, fold: int) -> Parts[Corpus]:
    train = splits["train"]
    if "test" in splits or "validation" in splits:
        if fold != -1:
            raise errors.UserError(f"fold {fold} is not allowed: {name} has a test of its own")
        test = splits["test"] if "test" in splits else splits["validation"]
        if "test" in splits and "validation" in splits:
            return Parts(train, splits["validation"], test)
    else:
        if len(train) < FOLDS:
            raise errors.UserError(
                f"{name}: {len(train)} example(s) and no test; to part them into folds, {FOLDS} are needed"
            )
        folds = np.array_split(streams.Stream(_FOLD_SEED, "text folds").permutation(len(train)), FOLDS)
        test = train.take(np.sort(folds.pop(fold)))
        train = train.take(np.sort(np.concatenate(folds)))
    if len(train) < 2:
        raise errors.UserError(f"{name}: 1 example to train on; to validate on one too, 2 are needed")
    # Sentences have no class to balance over: they are all of one.
    classes = train.label if isinstance(train, LabelledTexts) else ["" for _ in range(len(train))]
    labels = np.unique(np.asarray(classes), return_inverse=True)[1]
    chosen = subsets.train_and_validation(labels, len(train), fraction, seed)
    train, validation = (train.take(np.sort(part)) for part in chosen)
    return Parts(train, validation, test)
