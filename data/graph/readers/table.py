"""Rows of a CSV or TSV file with a header, each with where it stands in the file."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import errors
from data.readers import lines


class Row(NamedTuple):
    """A row.

    Attributes:
        values: by column.
        where: file and line.
    """

    values: Mapping[str, str]
    where: str


def header(content: bytes, name: str, delimiter: str = ",") -> list[str]:
    """The columns of a table."""
    return next(_fields(content, name, delimiter), ([], ""))[0]


def rows(content: bytes, name: str, needed: Sequence[str], delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table; blank lines are passed over.

    Args:
        content: the file.
        name: what to call it in an error.
        needed: columns it must have.
        delimiter: what stands between fields.

    Raises:
        errors.UserError: a column is missing, or a row has another number of fields than the header.
    """
    read = _fields(content, name, delimiter)
    columns, _ = next(read, ([], ""))
    for column in needed:
        if column not in columns:
            raise errors.unknown(f"column of {name}", column, columns)
    for fields, where in read:
        if len(fields) != len(columns):
            raise errors.UserError(
                f"{where}: {len(fields)} fields, but the header has {len(columns)}: {', '.join(columns[:9])}"
            )
        yield Row(dict(zip(columns, fields, strict=True)), where)


def number(row: Row, column: str) -> float:
    """The finite number in a field.

    Raises:
        errors.UserError: it is none.
    """
    try:
        value = float(row.values[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise errors.UserError(f"{row.where}: {column} is {row.values[column]!r}; a number is needed")
    return value


def _fields(content: bytes, name: str, delimiter: str) -> Iterator[tuple[list[str], str]]:
    # A quoted field may hold line ends, so the reader gets lines with theirs.
    text = (line + "\n" for _, line in lines.numbered(content, name))
    # In TSV a quotation mark is a quotation mark.
    if delimiter == "\t":
        reader = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(text, delimiter=delimiter)
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield fields, f"{name}:{reader.line_num}"
    except csv.Error as error:
        raise errors.UserError(f"{name}:{reader.line_num}: {error}") from error
