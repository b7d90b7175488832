"""Sentences and their translations, held in memory: `load(name, source=.., target=..)` is the one way in."""

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import errors
from data import builders, streams, subsets
from data.parts import Parts

GENERATED = builders.GENERATED["parallel"]  # ready on a fresh machine, in any two languages
FILE, FOLDER = "file:", "folder:"
_TEST_SEED = 0


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Lines of text, each with its translation.

    Attributes:
        source: what is given.
        target: what is asked for.
        links: of each pair which characters say the same, where that is known.
    """

    source: Sequence[str]
    target: Sequence[str]
    links: Sequence[Sequence["Link"]] | None = None

    def __post_init__(self):
        if len(self.source) != len(self.target):
            raise ValueError(f"{len(self.source)} source lines, but {len(self.target)} target lines")
        if self.links is not None and len(self.links) != len(self.source):
            raise ValueError(f"{len(self.source)} lines, but links of {len(self.links)}")

    def __len__(self) -> int:
        return len(self.source)

    def take(self, indices: Iterable[int]) -> "ParallelText":
        """The pairs at `indices`, in that order."""
        chosen = list(indices)
        links = None if self.links is None else [self.links[i] for i in chosen]
        return ParallelText([self.source[i] for i in chosen], [self.target[i] for i in chosen], links)


class Link(NamedTuple):
    """A part of a target and the part of the source that says the same.

    Attributes:
        target: its characters, from the first up to the second.
        source: those of the source, likewise.
    """

    target: tuple[int, int]
    source: tuple[int, int]


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return (*GENERATED, *builders.names("parallel"))


def load(
    name: str,
    *,
    source: str = "de",
    target: str = "en",
    data_dir: str | None = None,
    validation_fraction: float = 0.1,
    seed: int = 0,
    test: str = "",
    encoding: str = "utf-8",
) -> Parts[ParallelText]:
    """Loads a translation data set into memory.

    Without a test its validation is the test; and with nothing but train, `validation_fraction` of that is,
    the same for every seed. A data set without validation has it taken from train: `validation_fraction` of
    that, chosen by `seed`. Pairs with the same source are never parted.

    Training pairs of which a side is blank are left out, with a warning; in validation and test they stay,
    so that scores are of the whole.

    Args:
        name: one of `names()`; or a translation data set that TFDS has prepared as array_record under
            `data_dir`, written NAME, NAME/CONFIG or NAME:VERSION; or "file:TRAIN,VALIDATION,TEST" or
            "folder:DIR" for your own files (see data/text/parallel_files.py).
        source: the language to translate from: a feature of a prepared data set, how the name of a file
            ends, or for "dates" a locale.
        target: the language to translate into.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        validation_fraction: share to hold out where there is no such split, in (0, 1).
        seed: chooses what is held out; for generated sets, all of train.
        test: the split to test on, of a prepared set or a folder; "" is "test".
        encoding: of your own files: "utf-8", or "latin-1" to read what is no UTF-8 as Latin-1.

    Returns:
        What to train, validate and test on.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or files are
            not as they must be.
        errors.RunError: files of a prepared data set are damaged.
    """
    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)
    if source == target:
        raise errors.UserError(f"source and target are both {source!r}; two languages are needed")

    own = next((prefix for prefix in (FILE, FOLDER) if name.startswith(prefix) and name != prefix), None)
    if encoding != "utf-8" and not own:
        raise errors.UserError(f"encoding {encoding!r} is not allowed: it is for files of your own")
    if test and (own == FILE or name in GENERATED):
        raise errors.UserError(f"test {test!r} is not allowed: {name} has one test or none")
    if name in GENERATED:
        from data.text import dates

        drawn = dates.parts(seed)
        return Parts(*(dates.written(part, source, target) for part in vars(drawn).values()))
    if own:
        from data.text import parallel_files

        place = name.removeprefix(own)
        stems = (
            parallel_files.listed(place)
            if own == FILE
            else parallel_files.in_folder(Path(place).expanduser(), (source, target), test or "test")
        )
        found = {
            split: parallel_files.read(stem, (source, target), encoding) for split, stem in stems.items()
        }
    else:
        found = _prepared(name, (source, target), data_dir, test)
    splits = {split: ParallelText(*sides) for split, sides in found.items()}
    return _parts(splits, name, validation_fraction, seed)


def _prepared(
    name: str, languages: tuple[str, str], data_dir: str | None, test: str
) -> dict[str, tuple[list[str], list[str]]]:
    """Both sides of each split of a prepared data set."""
    # What is imported here takes longer to import than a small data set takes to load.
    from data import prepared

    others = (*names(), f"{FOLDER}DIR", f"{FILE}TRAIN,VALIDATION,TEST")
    builder = prepared.open_folder(
        prepared.folder(name, "parallel", data_dir, others, also="translation data set")
    )
    texts = [
        key
        for key, feature in builder.info.features.items()
        if feature.shape == () and feature.np_dtype == np.object_
    ]
    for language in languages:
        if language not in texts:
            raise errors.unknown(f"language of {name}", language, texts)
    splits = {split: split for split in prepared.splits(builder)}
    if test:
        tests = [split for split in builder.info.splits if split not in ("train", "validation")]
        if test not in tests:
            raise errors.unknown(f"test of {name}", test, tests)
        splits["test"] = test
    found = {}
    for part, split in splits.items():
        rows = [tuple(row[language] for language in languages) for row in prepared.records(builder, split)]
        found[part] = ([first for first, _ in rows], [second for _, second in rows])
    return found


def _parts(splits: Mapping[str, ParallelText], name: str, fraction: float, seed: int) -> Parts[ParallelText]:
    for split, text in splits.items():
        if not len(text):
            raise errors.UserError(f"{name}: nothing to read for {split}; at least one pair is needed")
    train = _without_blank(splits["train"], name)
    if "validation" in splits and "test" in splits:
        return Parts(train, splits["validation"], splits["test"])
    test = splits.get("test") or splits.get("validation")
    if test is None:
        train, test = _hold_out(train, name, fraction, streams.Stream(_TEST_SEED, "parallel test"))
    train, validation = _hold_out(train, name, fraction, streams.Stream(seed, "parallel validation"))
    return Parts(train, validation, test)


def _without_blank(train: ParallelText, name: str) -> ParallelText:
    pairs = zip(train.source, train.target, strict=True)
    whole = np.array([bool(source.strip() and target.strip()) for source, target in pairs])
    if whole.all():
        return train
    logging.getLogger(__name__).warning(
        "%s: %s of %s training pairs left out, a side of them is blank; the first is pair %s",
        name,
        f"{np.sum(~whole):,}",
        f"{len(train):,}",
        f"{np.argmin(whole) + 1:,}",
    )
    if not whole.any():
        raise errors.UserError(f"{name}: every training pair has a blank side")
    return train.take(np.flatnonzero(whole))


def _hold_out(
    text: ParallelText, name: str, fraction: float, stream: streams.Stream
) -> tuple[ParallelText, ParallelText]:
    """What is left, and about `fraction` of the pairs, each with all others of the same source."""
    numbers: dict[str, int] = {}
    group = np.array([numbers.setdefault(line, len(numbers)) for line in text.source])
    size = subsets.held_out_size(len(numbers), fraction)
    if not size:
        raise errors.UserError(f"{name}: too few different source lines to hold some out; give more splits")
    held = np.isin(group, stream.permutation(len(numbers))[:size])
    return text.take(np.flatnonzero(~held)), text.take(np.flatnonzero(held))
