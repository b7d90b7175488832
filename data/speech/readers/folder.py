"""A folder of your own wav files: `dataset=folder:DIR`.

The labels stand in DIR/labels.tsv or DIR/labels.csv, one line for each file, which may begin with a heading
of these words:

    file<TAB>label
    file<TAB>label<TAB>split        (train, validation or test)

Without the split, about a fifth of the files, chosen by their names alone, is kept for the test (as
`data.splits.is_test` does it). Without a label file, each label is a folder of wav files; see there.

What is said in them stands in DIR/transcripts.tsv or DIR/transcripts.csv, alike (`file<TAB>text`). Without
such a file, each NAME.wav, in whatever folder below DIR, has its text in a file NAME.txt beside it; those
below DIR/train, DIR/validation and DIR/test are of that split.
"""

import csv
import io
from pathlib import Path

import errors
from data.readers import class_folders, lines
from data.speech.readers import wav
from data.speech.types import Recording, Transcribed
from data.splits import NAMES, is_test

Line = tuple[str, Path, str]  # where it stands, the wav file, what is told of it


class _Plain(csv.Dialect):
    """Tabs alone separate columns; quotation marks are characters like others."""

    delimiter, lineterminator, quoting = "\t", "\n", csv.QUOTE_NONE


def labelled(folder: Path) -> dict[str, list[Recording]]:
    """Reads every recording of a folder, by split.

    Raises:
        errors.UserError: a file is missing or cannot be read, or a line of the label file is wrong.
    """
    table = _table(folder, "labels")
    if table is not None:
        return {
            split: [Recording(wav.read(path), label, where=where) for where, path, label in of_split]
            for split, of_split in _listed(folder, table, "label").items()
        }
    by_split = class_folders.read(folder, (".wav",), "wav")
    return {
        split: [
            Recording(wav.read(path), label, where=str(path))
            for label, members in by_class.items()
            for path in members
        ]
        for split, by_class in by_split.items()
    }


def transcribed(folder: Path) -> dict[str, list[Transcribed]]:
    """Reads every recording of a folder with its text, by split.

    Raises:
        errors.UserError: a file is missing, empty or cannot be read, or a line of the table is wrong.
    """
    if not folder.is_dir():
        raise errors.UserError(f"wav folder {folder} does not exist")
    table = _table(folder, "transcripts")
    by_split = _beside(folder) if table is None else _listed(folder, table, "text")
    return {
        split: [Transcribed(wav.read(path), where=where, text=text) for where, path, text in of_split]
        for split, of_split in by_split.items()
    }


def _table(folder: Path, name: str) -> Path | None:
    tables = [file for file in (f"{name}.tsv", f"{name}.csv") if (folder / file).is_file()]
    if len(tables) > 1:
        raise errors.UserError(f"{folder} has both {' and '.join(tables)}; keep one")
    return folder / tables[0] if tables else None


def _listed(folder: Path, table: Path, column: str) -> dict[str, list[Line]]:
    """The lines of a table by split."""
    splits: dict[str, list[Line]] = {}
    seen: dict[str, int] = {}
    for number, (file, told, *rest) in _rows(table, ("file", column, "split")):
        where = f"{table}:{number}"
        if file in seen:
            raise errors.UserError(f"{where}: {file} has its {column} in line {seen[file]} already")
        seen[file] = number
        split = rest[0] if rest else "test" if is_test(file) else "train"
        if split not in NAMES:
            raise errors.UserError(f"{where}: {errors.unknown('split', split, NAMES)}")
        if not (folder / file).is_file():
            raise errors.UserError(f"{where}: file {folder / file} does not exist")
        splits.setdefault(split, []).append((where, folder / file, told))
    return _with_train_and_test(splits, f"{table} has", "a third column may name it")


def _beside(folder: Path) -> dict[str, list[Line]]:
    """Wav files with their texts beside them, by split."""
    divided = any((folder / split).is_dir() for split in NAMES)
    splits: dict[str, list[Line]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() != ".wav" or any(part.startswith(".") for part in name.parts):
            continue
        split = name.parts[0] if divided else "test" if is_test(name.as_posix()) else "train"
        if split not in NAMES:
            raise errors.UserError(f"{path} is in none of the folders {', '.join(NAMES)}")
        file = path.with_suffix(".txt")
        if not file.is_file():
            raise errors.UserError(f"{path} has no text: {file.name} is needed beside it")
        text = " ".join(line for _, line in lines.numbered(file.read_bytes(), str(file))).split()
        if not text:
            raise errors.UserError(f"{file} is empty; it must hold what is said in {path.name}")
        splits.setdefault(split, []).append((str(path), path, " ".join(text)))
    return _with_train_and_test(splits, f"wav folder {folder} has", "folders train and test may divide them")


def _with_train_and_test(splits: dict[str, list[Line]], has: str, hint: str) -> dict[str, list[Line]]:
    for split in ("train", "test"):
        if split not in splits:
            others = ", ".join(f"{len(members)} for {other}" for other, members in splits.items()) or "none"
            raise errors.UserError(f"{has} no file for {split} ({others}); {hint}")
    return splits


def _rows(table: Path, heading: tuple[str, str, str]) -> list[tuple[int, list[str]]]:
    """The lines with their numbers, all of two or all of three columns."""
    try:
        text = table.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.UserError(f"{table}: byte {error.start} is no UTF-8 text") from error
    dialect = csv.excel if table.suffix == ".csv" else _Plain
    reader = csv.reader(io.StringIO(text, newline=""), dialect)
    try:
        numbered = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise errors.UserError(f"{table}:{reader.line_num}: {error}") from error
    rows = [(number, row) for number, row in numbered if any(row)]
    if rows and tuple(rows[0][1]) in (heading[:2], heading):
        rows = rows[1:]
    for number, row in rows:
        if len(row) not in (2, 3) or len(row) != len(rows[0][1]) or not all(row):
            columns = len(rows[0][1]) if len(rows[0][1]) in (2, 3) else 2
            raise errors.UserError(
                f"{table}:{number}: {len(row)} columns {row}; {columns} are needed, none of them empty: "
                f"{', '.join(heading[:columns])}"
            )
    return rows
