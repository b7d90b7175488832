"""Tables with named columns: TSV, CSV and JSONL, a row per text or per sentence.

TSV has a header and no quotes: a quotation mark there is a quotation mark. CSV has a header and quotes as
RFC 4180 has them. JSONL has an object on every line. Blank lines are passed over.
"""

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

import errors
from data.readers import lines
from data.text.types import TaggedSentences

# What a column is called where the caller does not say.
TEXT = ("text", "sentence")
LABEL = ("label",)
TOKENS = ("tokens", "words")
TAGS = ("tags",)

Row = tuple[int, dict[str, Any]]  # the number of the line it ends on, and its values by column


def labelled(
    content: bytes,
    name: str,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    encoding: lines.Encoding = "utf-8",
) -> tuple[list[str], list[str]]:
    """Texts and their labels.

    Args:
        content: the file.
        name: what it is called; its ending says which of `FORMATS` it is.
        text_column: the column of the text; None is one of `TEXT`.
        label_column: the column of the label; None is one of `LABEL`. Any word or number is a label.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: the file has no such column, a row another number of them, or a label is empty.
    """
    texts, labels = [], []
    for number, row in _rows(content, name, encoding):
        where = f"{name}:{number}"
        text = _value(row, text_column, TEXT, "text_column", where)
        label = _value(row, label_column, LABEL, "label_column", where)
        if not isinstance(text, str):
            raise errors.UserError(f"{where}: the text is {json.dumps(text)}; it must be a string")
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise errors.UserError(
                f"{where}: the label is {json.dumps(label)}; it must be a word or a whole number"
            )
        texts.append(text)
        labels.append(str(label).strip())
        if not labels[-1]:
            raise errors.UserError(f"{where}: the label is empty; a word or number is needed")
    return texts, labels


def tagged(
    content: bytes,
    name: str,
    *,
    token_column: str | None = None,
    tag_column: str | None = None,
    encoding: lines.Encoding = "utf-8",
) -> TaggedSentences:
    """Sentences whose tokens stand in one column and whose tags in another, as lists or between spaces.

    Args:
        content: the file.
        name: what it is called; its ending says which of `FORMATS` it is.
        token_column: the column of the tokens; None is one of `TOKENS`.
        tag_column: the column of the tags; None is one of `TAGS`.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: the file has no such column, or tokens and tags are not of the same number.
    """
    tokens, tags = [], []
    for number, row in _rows(content, name, encoding):
        where = f"{name}:{number}"
        tokens.append(_list(_value(row, token_column, TOKENS, "token_column", where), "tokens", where))
        tags.append(_list(_value(row, tag_column, TAGS, "tag_column", where), "tags", where))
        if len(tokens[-1]) != len(tags[-1]):
            raise errors.UserError(
                f"{where}: {len(tokens[-1])} tokens, but {len(tags[-1])} tags; every token needs one"
            )
    return TaggedSentences(tokens, tags)


def _value(row: dict[str, Any], column: str | None, names: tuple[str, ...], option: str, where: str) -> Any:
    chosen = next((name for name in ((column,) if column else names) if name in row), None)
    if chosen is None:
        raise errors.UserError(
            f"{where}: no column {column or ' or '.join(names)!r}; there are {', '.join(row) or 'none'}: "
            f"name one by {option}"
        )
    return row[chosen]


def _list(value: Any, what: str, where: str) -> list[str]:
    if isinstance(value, str):
        return [part for part in value.replace("\t", " ").split(" ") if part]
    if isinstance(value, list) and all(isinstance(part, str) and part for part in value):
        return value
    raise errors.UserError(f"{where}: {what} must be a list of words, or words with spaces between them")


def _rows(content: bytes, name: str, encoding: lines.Encoding) -> Iterator[Row]:
    ending = name[name.rfind(".") :].lower()
    if ending not in FORMATS:
        raise errors.UserError(f"{name}: a table must end in {' '.join(FORMATS)}")
    return FORMATS[ending](content, name, encoding)


def _tsv(content: bytes, name: str, encoding: lines.Encoding) -> Iterator[Row]:
    split = (
        (number, line.split("\t"))
        for number, line in lines.numbered(content, name, encoding=encoding)
        if line  # a row of empty values is a row
    )
    return _with_header(split, name)


def _csv(content: bytes, name: str, encoding: lines.Encoding) -> Iterator[Row]:
    # A quoted value may go on over several lines, so the reader gets them with their ends.
    reader = csv.reader(
        (line + "\n" for _, line in lines.numbered(content, name, encoding=encoding)), strict=True
    )

    def split() -> Iterator[tuple[int, list[str]]]:
        try:
            for fields in reader:
                if fields:
                    yield reader.line_num, fields
        except csv.Error as error:
            raise errors.UserError(f"{name}:{reader.line_num}: no CSV: {error}") from error

    return _with_header(split(), name)


def _with_header(split: Iterator[tuple[int, list[str]]], name: str) -> Iterator[Row]:
    number, header = next(split, (1, []))
    header = [column.strip() for column in header]
    for column in header:
        if header.count(column) > 1:
            raise errors.UserError(f"{name}:{number}: two columns are called {column!r}")
    for number, fields in split:
        if len(fields) != len(header):
            raise errors.UserError(
                f"{name}:{number}: {len(fields)} column(s), but the header has {len(header)}: "
                + ", ".join(header)
            )
        yield number, dict(zip(header, fields, strict=True))


def _jsonl(content: bytes, name: str, encoding: lines.Encoding) -> Iterator[Row]:
    for number, line in lines.numbered(content, name, encoding=encoding):
        if lines.is_blank(line):
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise errors.UserError(f"{name}:{number}: no JSON: {error.msg}, column {error.colno}") from error
        if not isinstance(row, dict):
            raise errors.UserError(f"{name}:{number}: a JSON object is needed, not {line[:40]}")
        yield number, row


# How each ending is read.
FORMATS: dict[str, Callable[[bytes, str, lines.Encoding], Iterator[Row]]] = {
    ".tsv": _tsv,
    ".csv": _csv,
    ".jsonl": _jsonl,
}
