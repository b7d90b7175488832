r"""Lines of text files as people have them: `\n` or `\r\n`, with or without a byte-order mark.

Nothing else ends a line. `str.splitlines` would also break at U+2028, U+0085, the form feed and others,
which occur inside sentences, and every line number after them would be wrong.
"""

import codecs
from collections.abc import Iterator
from typing import Literal, get_args

import errors

Encoding = Literal["utf-8", "latin-1"]
ENCODINGS = get_args(Encoding)


def numbered(content: bytes, name: str, *, encoding: Encoding = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a file, each with its number from 1, without what ends them.

    Args:
        content: the file.
        name: what to call it in an error.
        encoding: "utf-8"; or "latin-1" for files that are read as Latin-1 if they are no UTF-8.

    Raises:
        errors.UserError: the file is not in that encoding, the encoding is unknown, or lines end in a
            carriage return alone.
    """
    if encoding not in ENCODINGS:
        raise errors.unknown("encoding", encoding, ENCODINGS)
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            where = content.count(b"\n", 0, error.start) + 1
            raise errors.UserError(
                f"{name}:{where}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8, or "
                "read it with encoding=latin-1 if that is what it is"
            ) from error
        text = content.decode("latin-1")
    if "\r" in text and "\n" not in text:
        raise errors.UserError(f"{name}:1: lines end in a carriage return alone; end them in a line feed")
    every = text.split("\n")
    if not every[-1]:  # the last line has its end, or the file is empty
        every.pop()
    for number, line in enumerate(every, 1):
        yield number, line.removesuffix("\r")


def is_blank(line: str) -> bool:
    """Whether a line holds nothing but spaces and tabs."""
    return not line.strip(" \t")
