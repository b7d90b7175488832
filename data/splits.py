"""What a run learns from, chooses by and reports; and the one policy of holding out what is not published.

1. A published split is taken as it is. Where there is no test, the published validation is the test.
2. Where there is nothing but train, a part of it is the test: one of `folds` folds, or a share chosen once
   for all, by what is usual for that kind of data (its `Convention`).
3. Where there is no validation, `validation_fraction` of train is held out, chosen by `split_seed` and
   balanced over classes (see data/subsets.py).

Examples of one group, such as questions about one article, always stay together.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

import errors
from data import streams, subsets

NAMES = ("train", "validation", "test")
TEST_FRACTION = 0.2  # of train, where neither a test nor folds are usual
_SHARED_SEED = 0  # of what is the same for every run

Data = TypeVar("Data", bound=Sized)
Other = TypeVar("Other", bound=Sized)


@dataclasses.dataclass(frozen=True)
class Splits(Generic[Data]):
    """A data set as one run sees it: three parts that share no example.

    Attributes:
        train: what to learn from, vocabularies and statistics included.
        validation: what to choose models and settings by.
        test: what to report, used once.
    """

    train: Data
    validation: Data
    test: Data

    def __iter__(self) -> Iterator[Data]:
        return iter((self.train, self.validation, self.test))

    def map(self, function: Callable[[Data], Other]) -> "Splits[Other]":
        """What `function` makes of each."""
        return Splits(*map(function, self))


@dataclasses.dataclass(frozen=True)
class Convention(Generic[Data]):
    """How a kind of data is divided where nobody published it.

    Streams and orders are those of the first runs: with others, an old run would resume on other examples.

    Attributes:
        noun: what is divided, for messages: examples, or groups of them.
        classes: the class of each example, int `[n]`, to balance over; None where there are no classes.
        groups: what each example belongs to and is never divided from; None where each stands alone.
        folds: how many folds are usual; None where the test is a share.
        fold: which of them is the usual test; -1 is the last.
        test_fraction: the share that is the test without folds; None is the validation fraction.
        folds_by_seed: whether `split_seed` chooses the folds too, or they are the same for all.
        folds_in_turn: whether a fold is every so-many-th of the order drawn, or a stretch of it.
        least: examples of train, or groups of them, to hold one out of; 1 lets the only one serve as both.
        in_order: whether examples keep their published order, or that of the draw.
        fold_stream: names the random numbers that choose folds.
        test_stream: likewise the test without folds.
        validation_stream: likewise what is held out.
    """

    noun: str
    classes: Callable[[Data], np.ndarray] | None = None
    groups: Callable[[Data], Sequence[Hashable]] | None = None
    folds: int | None = None
    fold: int = -1
    test_fraction: float | None = TEST_FRACTION
    folds_by_seed: bool = False
    folds_in_turn: bool = False
    least: int = 2
    in_order: bool = False
    fold_stream: str = "folds"
    test_stream: str = subsets.STREAM
    validation_stream: str = subsets.STREAM


def divide(
    name: str,
    published: Mapping[str, Data],
    convention: Convention[Data],
    *,
    validation_fraction: float,
    fold: int | None,
    folds: int | None,
    split_seed: int,
    train_size: int | None = None,
    fold_of: np.ndarray | None = None,
) -> Splits[Data]:
    """The splits of a run from those that are published, by the policy above.

    Args:
        name: of the data set, for messages.
        published: by name, "train" at least; lists, or what has `take` and a length.
        convention: of this kind of data.
        validation_fraction: share of train to hold out for validation, in (0, 1).
        fold: which fold is the test, from 0; None is the usual one.
        folds: how many; None is as usual.
        split_seed: chooses what is held out.
        train_size: examples of train to learn from, those held out included; None is all.
        fold_of: the fold that tests each example of train as published, from 0; -1 where none does.

    Raises:
        errors.UserError: an argument is not allowed, or there are too few examples.
    """
    check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    for split, data in published.items():
        if not len(data):
            raise errors.UserError(f"{name}: nothing to read for {split}; one {convention.noun} is the least")
    splits = dict(published)
    if "train" not in splits:
        raise errors.UserError(f"{name} has no split called train, only {', '.join(published)}")
    if "test" not in splits and "validation" in splits:
        splits["test"] = splits.pop("validation")
    train = splits["train"]
    if "test" in splits:
        refuse_folds(name, fold, folds)
        test = splits["test"]
    elif convention.folds or fold is not None or folds is not None or fold_of is not None:
        train, test = _fold(name, train, convention, fold, folds, seed, fold_of)
    else:
        fraction = convention.test_fraction or validation_fraction
        train, test = _hold_out(name, train, convention, fraction, _SHARED_SEED, convention.test_stream)
    if train_size is not None and train_size > len(train):
        raise errors.UserError(
            f"train_size {train_size:,} is more than the {len(train):,} {convention.noun}(s) of {name}"
        )
    if "validation" in splits:
        return Splits(train, splits["validation"], test)
    stream = convention.validation_stream
    return Splits(*_hold_out(name, train, convention, validation_fraction, seed, stream, train_size), test)


def check_fraction(validation_fraction: float) -> None:
    """Raises a one-line UserError unless some examples, and not all, are to be held out."""
    if not 0 < validation_fraction < 1:
        raise errors.UserError(
            f"validation_fraction {validation_fraction!r} is not allowed: it must be in (0, 1)"
        )


def check_size(argument: str, value: int | None) -> None:
    """Raises a one-line UserError unless a number of something is a whole number >= 1, or None."""
    if value is not None and (not isinstance(value, int | np.integer) or value < 1):
        raise errors.UserError(f"{argument} {value!r} is not allowed: a whole number >= 1 is needed, or None")


def refuse_folds(name: str, fold: int | None, folds: int | None) -> None:
    """Raises a one-line UserError if folds are asked of a data set that has a test."""
    for argument, value in (("fold", fold), ("folds", folds)):
        if value is not None:
            raise errors.UserError(f"{argument} {value} is not allowed: {name} has a test of its own")


def is_test(file: str) -> bool:
    """Whether one of your own files is for the test, by its name alone: about a fifth are.

    It is if the first 32 bits of the SHA-256 of its name, as a fraction, are below `TEST_FRACTION`. So no
    file changes sides when others are added or taken away.

    Args:
        file: its path below the folder of the data set.
    """
    digest = hashlib.sha256(file.encode()).digest()
    return int.from_bytes(digest[:4], "big") < TEST_FRACTION * 2**32


def _fold(
    name: str,
    data: Data,
    convention: Convention[Data],
    fold: int | None,
    folds: int | None,
    seed: int,
    fold_of: np.ndarray | None,
) -> tuple[Data, Data]:
    """Everything but one fold, and that fold."""
    group = _groups(data, convention)
    count = int(group.max()) + 1
    folds = (convention.folds or 10) if folds is None else folds
    if folds < 2 or not 0 <= (0 if fold is None else fold) < folds:
        raise errors.UserError(
            f"fold {fold} of {folds} is not allowed: 2 folds at least, and a fold from 0 to {folds - 1}"
        )
    if fold_of is None:
        if count < max(folds, 3):
            raise errors.UserError(
                f"{name}: {count} {convention.noun}(s), no test; {max(folds, 3)} are needed for {folds} folds"
            )
        order = streams.Stream(
            seed if convention.folds_by_seed else _SHARED_SEED, convention.fold_stream
        ).permutation(count)
        if convention.folds_in_turn:
            members = [order[number::folds] for number in range(folds)]
        else:
            members = np.array_split(order, folds)
        fold_of = np.empty(count, np.int64)
        for number, chosen in enumerate(members):
            fold_of[chosen] = number
    tests = fold_of[group] == range(folds)[convention.fold if fold is None else fold]
    return _take(data, np.flatnonzero(~tests)), _take(data, np.flatnonzero(tests))


def _hold_out(
    name: str,
    data: Data,
    convention: Convention[Data],
    fraction: float,
    seed: int,
    stream: str,
    size: int | None = None,
) -> tuple[Data, Data]:
    """What is left, and `fraction` of all; both together `size` examples, if that is given."""
    group = _groups(data, convention)
    count = int(group.max()) + 1
    if count < convention.least:
        raise errors.UserError(
            f"{name}: {count} {convention.noun} to train on; to hold one out, {convention.least} are needed"
        )
    alone = convention.groups is None
    classes = convention.classes(data) if convention.classes and alone else np.zeros(count, np.int64)
    kept, held = subsets.train_and_validation(classes, size or count, fraction, seed, stream)
    if not alone:
        inside = np.isin(group, held)
        kept, held = np.flatnonzero(~inside), np.flatnonzero(inside)
    elif convention.in_order:
        kept, held = np.sort(kept), np.sort(held)
    return _take(data, kept), _take(data, held)


def _groups(data: Any, convention: Convention) -> np.ndarray:
    """The number of each example's group, counted as they first appear, int `[n]`."""
    if convention.groups is None:
        return np.arange(len(data))
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in convention.groups(data)])


def _take(data: Any, indices: np.ndarray) -> Any:
    return [data[index] for index in indices] if isinstance(data, list) else data.take(indices)
