"""A folder of your own wav files: `dataset=folder:DIR`.

The labels stand in DIR/labels.tsv or DIR/labels.csv, one line for each file, which may begin with a heading
of these words:

    file<TAB>label
    file<TAB>label<TAB>split        (train, validation or test)

Without the split, about a fifth of the files, chosen by their names alone, is kept for the test (as
`data.class_folders` does it). Without a label file, each label is a folder of wav files; see there.
"""

import csv
import io
from pathlib import Path

import errors
from data import class_folders
from data.class_folders import SPLITS
from data.speech import wav
from data.speech.dataset import Recording

_HEADING = ("file", "label", "split")
_LABEL_FILES = ("labels.tsv", "labels.csv")


class _Plain(csv.Dialect):
    """Tabs alone part columns; quotation marks are characters like others."""

    delimiter, lineterminator, quoting = "\t", "\n", csv.QUOTE_NONE


def read(folder: Path) -> dict[str, list[Recording]]:
    """Reads every recording of a folder, by split.

    Raises:
        errors.UserError: a file is missing or cannot be read, or a line of the label file is wrong.
    """
    found = [name for name in _LABEL_FILES if (folder / name).is_file()]
    if len(found) > 1:
        raise errors.UserError(f"{folder} has both {' and '.join(found)}; keep one")
    if found:
        return _labelled(folder, folder / found[0])
    by_split = class_folders.read(folder, (".wav",), "wav")
    return {
        split: [
            Recording(wav.read(path), label, where=str(path))
            for label, members in by_class.items()
            for path in members
        ]
        for split, by_class in by_split.items()
    }


def _labelled(folder: Path, labels: Path) -> dict[str, list[Recording]]:
    splits: dict[str, list[Recording]] = {}
    lines: dict[str, int] = {}
    for number, (file, label, *rest) in _rows(labels):
        where = f"{labels}:{number}"
        if file in lines:
            raise errors.UserError(f"{where}: {file} has its label in line {lines[file]} already")
        lines[file] = number
        split = rest[0] if rest else "test" if class_folders.is_test(file) else "train"
        if split not in SPLITS:
            raise errors.UserError(f"{where}: {errors.unknown('split', split, SPLITS)}")
        if not (folder / file).is_file():
            raise errors.UserError(f"{where}: file {folder / file} does not exist")
        splits.setdefault(split, []).append(Recording(wav.read(folder / file), label, where=where))
    for split in ("train", "test"):
        if split not in splits:
            found = ", ".join(f"{len(members)} for {other}" for other, members in splits.items()) or "none"
            raise errors.UserError(f"{labels} has no file for {split} ({found}); a third column may name it")
    return splits


def _rows(labels: Path) -> list[tuple[int, list[str]]]:
    """The lines with their numbers, all of two or all of three columns."""
    try:
        text = labels.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.UserError(f"{labels}: byte {error.start} is no UTF-8 text") from error
    dialect = csv.excel if labels.suffix == ".csv" else _Plain
    reader = csv.reader(io.StringIO(text, newline=""), dialect)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise errors.UserError(f"{labels}:{reader.line_num}: {error}") from error
    rows = [(number, row) for number, row in lines if any(row)]
    if rows and tuple(rows[0][1]) in (_HEADING[:2], _HEADING):
        rows = rows[1:]
    for number, row in rows:
        if len(row) not in (2, 3) or len(row) != len(rows[0][1]) or not all(row):
            columns = len(rows[0][1]) if len(rows[0][1]) in (2, 3) else 2
            raise errors.UserError(
                f"{labels}:{number}: {len(row)} columns {row}; {columns} are needed, none of them empty: "
                f"{', '.join(_HEADING[:columns])}"
            )
    return rows
