"""From a text to its tokens, in the few simple ways that the data sets here ask for."""

import re
from typing import Literal

import errors

# Words keep their apostrophes ("don't"); any other character but space is a token of its own.
_WORD_OR_SIGN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)  # as web pages leave them behind
_SPACES = re.compile(r"[ \t\r\n]+")

Tokenisation = Literal["whitespace", "punctuation", "none"]

# What each is.
TOKENISATIONS: dict[Tokenisation, str] = {
    "whitespace": "text that is tokenised already: split at spaces and tabs, and nowhere else",
    "punctuation": "raw text: words, and every punctuation mark by itself; <br /> is a space",
    "none": "the whole text as one token, for bytes",
}


def check(how: str) -> Tokenisation:
    """Returns `how`, or raises the one-line error for an unknown tokenisation."""
    for known in TOKENISATIONS:
        if how == known:
            return known
    raise errors.unknown("tokenisation", how, TOKENISATIONS)


def tokens(text: str, how: str) -> list[str]:
    """The tokens of a text.

    Args:
        text: any text; one of spaces alone has no tokens.
        how: "whitespace", "punctuation" or "none"; see `TOKENISATIONS`.

    Raises:
        errors.UserError: `how` is unknown.
    """
    check(how)
    if how == "punctuation":
        return _WORD_OR_SIGN.findall(_LINE_BREAK.sub(" ", text))
    if how == "whitespace":
        return [token for token in _SPACES.split(text) if token]
    return [text] if text else []
