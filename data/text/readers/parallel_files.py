"""Files of one's own, a line per sentence, line i of one file the translation of line i of the other.

`file:TRAIN,VALIDATION,TEST`, `file:TRAIN,TEST` or `file:ALL` names them without the language: `wmt/train` is
`wmt/train.de` and `wmt/train.en`. `folder:DIR` holds such files called `train`, and `validation` (or `valid`,
`val`, `dev`) and `test` if there are; others are passed over. Any may be compressed, `train.de.gz`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import errors
from data import raw_files
from data.readers import lines
from data.text.types import ParallelText

_VALIDATION = ("validation", "valid", "val", "dev")
_COMPRESSED = ".gz"
_SMALL_SHIFTS = 20

Languages = tuple[str, str]


def in_folder(folder: Path, languages: Languages, test: str | None = None) -> dict[str, Path]:
    """The files of each split in a folder, without their language.

    Args:
        folder: where they are.
        languages: how their names end.
        test: how the test is called; None is "test", which need not exist.

    Raises:
        errors.UserError: the folder does not exist, there are files of two names for validation, or none
            for train or for a `test` that was asked for.
    """
    if not folder.is_dir():
        raise errors.UserError(f"text folder {folder} does not exist")
    endings = [f".{language}{packed}" for language in languages for packed in ("", _COMPRESSED)]
    stems = {
        path.name.removesuffix(ending)
        for path in folder.iterdir()
        for ending in endings
        if path.name.endswith(ending)
    }
    if "train" not in stems:
        raise errors.UserError(f"text folder {folder} has no train.{languages[0]} and train.{languages[1]}")
    stem_of = {"train": folder / "train"}
    validation = [stem for stem in _VALIDATION if stem in stems]
    if len(validation) > 1:
        raise errors.UserError(
            f"text folder {folder} has {' and '.join(validation)} for validation; one is allowed"
        )
    if validation:
        stem_of["validation"] = folder / validation[0]
    if test is None and "test" in stems:
        stem_of["test"] = folder / "test"
    elif test is not None:
        if test not in stems:
            raise errors.unknown(f"test of {folder}", test, stems - {"train", *validation})
        stem_of["test"] = folder / test
    return stem_of


def read(stem: Path, languages: Languages, encoding: lines.Encoding) -> ParallelText:
    """The lines of both files.

    Args:
        stem: their path without the language.
        languages: what follows it.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: a file does not exist, cannot be read, or has another number of lines than the
            other.
        errors.RunError: a compressed file is damaged.
    """
    paths = [_path(stem, language) for language in languages]
    first, second = (_lines(path, encoding) for path in paths)
    if len(first) != len(second):
        line = first_suspicious(*([len(line) for line in side] for side in (first, second)))
        raise errors.UserError(
            f"{paths[0]} has {len(first):,} lines, but {paths[1]} has {len(second):,}; by their lengths they "
            f"no longer belong together from about line {line:,}"
        )
    return ParallelText(first, second)


def first_suspicious(first: Sequence[int], second: Sequence[int]) -> int:
    """The line, from 1, from which lines of unequal files seem to be translations no more.

    Translations of short sentences are short (Gale and Church 1993). Say the longer file has d lines that
    the other lacks. Then line i of the shorter one belongs to line i + s of the longer, with a shift s that
    grows from 0 to d on the way: of all such ways the one is taken whose pairs differ least in the
    logarithm of their lengths, apart from a constant, and the line of its first shift is returned. That is
    the line after the shorter file where lines are missing at its end alone.

    Args:
        first: characters of each line of a file.
        second: those of the other, more or fewer.
    """
    short, long = sorted((np.log1p(first), np.log1p(second)), key=len)
    if not len(short):
        return 1
    size, most = len(short), len(long) - len(short)
    # Where many lines are missing, it is a few at a time or all of them at once.
    shifts = [*range(min(most, _SMALL_SHIFTS)), most]
    constant = np.median(long) - np.median(short)
    # What the first i lines cost with each shift, [shifts, i].
    costs = np.stack([np.abs(long[s : s + size] - short - constant) for s in shifts])
    costs = np.pad(np.cumsum(costs, axis=1), ((0, 0), (1, 0)))
    # Over the ways that have shift s at line i: least cost, and where it began to have it.
    best, begins = costs[0], []
    for cost in costs[1:]:
        gain = best - cost
        lowest = np.minimum.accumulate(gain)
        begins.append(np.maximum.accumulate(np.where(gain == lowest, np.arange(size + 1), 0)))
        best = lowest + cost
    line = size
    for begin in reversed(begins):
        line = int(begin[line])
    return line + 1


def _path(stem: Path, language: str) -> Path:
    name = f"{stem}.{language}"
    for path in (Path(name), Path(name + _COMPRESSED)):
        if path.is_file():
            return path
    raise errors.UserError(
        f"no file {name} or {name}{_COMPRESSED}; paths are given without the language, which source and "
        "target name"
    )


def _lines(path: Path, encoding: lines.Encoding) -> list[str]:
    try:
        content = raw_files.decompressed(path)
    except OSError as error:
        raise errors.UserError(f"text file {path} cannot be read: {error.strerror}") from error
    return [line for _, line in lines.numbered(content, str(path), encoding=encoding)]
