"""A line per token with its tag in another column, a blank line after each sentence: the CoNLL shared tasks.

Columns are separated by tabs, or by spaces in files whose first line has no tab. A line of spaces and tabs
alone is blank. `-DOCSTART-` lines, which separate documents, are passed over.
"""

import re

import errors
from data.readers import lines
from data.text.types import TaggedSentences

_SPACES = re.compile(r"[ \t]+")
_DOCUMENT = "-DOCSTART-"


def decode(
    content: bytes,
    name: str,
    *,
    token_column: int = 0,
    tag_column: int = -1,
    encoding: lines.Encoding = "utf-8",
) -> TaggedSentences:
    """The tokens and tags of a file.

    Args:
        content: the file.
        name: what to call it in an error.
        token_column: where the token stands, from 0; negative counts from the last.
        tag_column: where its tag stands.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: a line has not the number of columns of the first, or a column is not there.
    """
    tokens: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    separator: str | None = None
    columns = 0
    for number, line in lines.numbered(content, name, encoding=encoding):
        if lines.is_blank(line) or line.startswith(_DOCUMENT):
            if tokens[-1]:
                tokens.append([])
                tags.append([])
            continue
        where = f"{name}:{number}"
        if separator is None:
            separator = "\t" if "\t" in line else " "
        if separator == "\t":
            fields = [field.strip(" ") for field in line.split("\t")]
        else:
            fields = _SPACES.split(line.strip(" \t"))
        if not columns:
            columns = _checked(len(fields), token_column, tag_column, where)
        if len(fields) != columns:
            sign = "tabs" if separator == "\t" else "spaces"
            raise errors.UserError(
                f"{where}: {len(fields)} column(s) between {sign}, but the lines before have {columns}"
            )
        for what, column, into in (("token", token_column, tokens), ("tag", tag_column, tags)):
            if not fields[column]:
                raise errors.UserError(f"{where}: the {what} is empty; a token and a tag are needed")
            into[-1].append(fields[column])
    if not tokens[-1]:
        tokens.pop()
        tags.pop()
    return TaggedSentences(tokens, tags)


def _checked(columns: int, token_column: int, tag_column: int, where: str) -> int:
    if columns < 2:
        raise errors.UserError(
            f"{where}: 1 column; a token and its tag are needed, with a tab or spaces between them"
        )
    for what, column in (("token", token_column), ("tag", tag_column)):
        if not -columns <= column < columns:
            raise errors.UserError(
                f"{where}: no {what} column {column}; with {columns} columns 0 to {columns - 1} are allowed, "
                f"or -1 to -{columns} from the last"
            )
    if token_column % columns == tag_column % columns:
        raise errors.UserError(f"{where}: column {token_column} cannot be both the token and the tag")
    return columns
