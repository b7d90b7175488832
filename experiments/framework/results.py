"""results.csv: one row for each run, written whole or not at all, read with every field checked."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from errors import UserError


class Kind(NamedTuple):
    """What the fields of a column hold.

    Attributes:
        type: str, int or float.
        low: the least that is right.
        high: the most.
    """

    type: type
    low: float = -math.inf
    high: float = math.inf


TEXT = Kind(str)
COUNT = Kind(int, 0)
POSITIVE = Kind(int, 1)
SHARE = Kind(float, 0, 1)
AMOUNT = Kind(float, 0)
NUMBER = Kind(float)


@dataclass(frozen=True)
class Column:
    """A column of results.csv.

    Attributes:
        name: in the header.
        kind: of its fields.
        optional: whether a field may be empty, which is read as None.
    """

    name: str
    kind: Kind = AMOUNT
    optional: bool = False


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV, whole or not at all."""
    part = path.with_suffix(".csv.part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in columns])
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def read_rows(path: Path | str, columns: Sequence[Column], key: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a results.csv, in the order of the file.

    Args:
        path: CSV with a header that names at least `columns`; further columns are left alone.
        columns: what to read.
        key: the columns that say which run it is, which may not stand twice; none where nothing does.

    Raises:
        UserError: The file can't be read, or a line is broken; the message names line and column.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.reader(file, strict=True), columns, key)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8") from None


def _read(path: Path, lines: Any, columns: Sequence[Column], key: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[object, ...], int] = {}
    header: list[str] = []
    needed = ", ".join(column.name for column in columns)
    try:
        for fields in lines:
            where = f"{path} line {lines.line_num}"
            if not header:
                header = fields
                missing = [column.name for column in columns if column.name not in header]
                if missing:
                    raise UserError(f"{where}: column {missing[0]!r} is missing. Needed: {needed}")
                if len(set(header)) < len(header):
                    raise UserError(f"{where}: a column name occurs twice")
                continue
            if not fields:
                continue
            if len(fields) != len(header):
                raise UserError(f"{where}: {len(fields)} fields, but the header has {len(header)} columns")
            texts = dict(zip(header, fields, strict=True))
            row = {column.name: _value(where, column, texts[column.name]) for column in columns}
            run = tuple(row[name] for name in key)
            if key and run in seen:
                said = ", ".join(f"{name} {row[name]}" for name in key)
                raise UserError(f"{where}: the run of {said} stands already on line {seen[run]}")
            seen[run] = lines.line_num
            rows.append(row)
    except csv.Error as error:
        raise UserError(f"{path} line {lines.line_num}: {error}") from None
    if not header:
        raise UserError(f"{path}: empty. Needed is a header with {needed}")
    return rows


def _value(where: str, column: Column, text: str) -> Any:
    """The value of one field, checked by its column."""
    kind, where = column.kind, f"{where}, column {column.name}"
    if column.optional and not text:
        return None
    if kind.type is str:
        if not text.strip():
            raise UserError(f"{where}: empty")
        return text
    try:
        value = kind.type(text)
    except ValueError:
        said = "a whole number" if kind.type is int else "a number"
        raise UserError(f"{where}: {text!r} is not {said}") from None
    if not math.isfinite(value):
        raise UserError(f"{where}: {text} is not finite")
    if not kind.low <= value <= kind.high:
        bounds = "too small" if kind.high == math.inf else f"outside {kind.low:g}..{kind.high:g}"
        raise UserError(f"{where}: {text} is {bounds}")
    return value
