"""CoNLL-U, the format of the Universal Dependencies treebanks.

A line per word with ten fields between tabs, comments that begin with `#`, a blank line after each
sentence. Surface tokens of several words (`1-2`) and empty nodes (`1.1`) are passed over: what is
labelled are the syntactic words. Nivre et al., "Universal Dependencies v2", LREC 2020.

Not by the package `conllu` (6.0.0), for these measured reasons: it takes lines of 4 or of 11 fields, empty
words, and ids that repeat or leave some out, all in silence; its errors tell neither file nor line, and a
byte-order mark is one; and it needs 6.9 s for the 12,543 training sentences of EWT, 2.8 s with its parsing of
fields switched off, where this module needs 1.1 s.
"""

import dataclasses
import re
from collections.abc import Iterator

import errors
from data.readers import lines
from data.text.types import NO_TAG, TaggedSentences

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_UNSPECIFIED = "_"
_MAY_BE_UNSPECIFIED = ("upos", "xpos", "deprel")  # elsewhere `_` is a value: no features, or the word `_`

_WORD = re.compile(r"[0-9]+")
_PASSED_OVER = re.compile(r"[0-9]+[-.][0-9]+")
_TEXT = re.compile(r"#\s*text\s*=\s*(.*)")


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a treebank.

    Attributes:
        words: the ten fields of each word, at least one word.
        text: the sentence as it was written, "" where the treebank does not say.
    """

    words: list[list[str]]
    text: str

    def field(self, name: str) -> list[str]:
        """One of `FIELDS` of every word."""
        index = FIELDS.index(name)
        return [word[index] for word in self.words]


def sentences(
    content: bytes,
    name: str,
    *,
    encoding: lines.Encoding = "utf-8",
) -> Iterator[Sentence]:
    """The sentences of a treebank; those without a word are passed over.

    Args:
        content: the file.
        name: what to call it in an error.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: a line has another number of fields, or ids do not count up from 1.
    """
    words: list[list[str]] = []
    text = ""
    for number, line in lines.numbered(content, name, encoding=encoding):
        if lines.is_blank(line):
            if words:
                yield Sentence(words, text)
            words, text = [], ""
        elif line.startswith("#"):
            if match := _TEXT.fullmatch(line):
                text = match[1]
        elif word := _word(line, len(words) + 1, f"{name}:{number}"):
            words.append(word)
    if words:
        yield Sentence(words, text)


def decode(
    content: bytes,
    name: str,
    *,
    field: str = "upos",
    encoding: lines.Encoding = "utf-8",
) -> TaggedSentences:
    """The words of a treebank and one field of each as its tag.

    Args:
        content: the file.
        name: what to call it in an error.
        field: one of `FIELDS`. `_` in upos, xpos or deprel is no tag.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: the field is unknown, or the file is not as `sentences` needs it.
    """
    if field not in FIELDS:
        raise errors.unknown("field of CoNLL-U", field, FIELDS)
    missing = _UNSPECIFIED if field in _MAY_BE_UNSPECIFIED else None
    treebank = list(sentences(content, name, encoding=encoding))
    return TaggedSentences(
        [sentence.field("form") for sentence in treebank],
        [[NO_TAG if tag == missing else tag for tag in sentence.field(field)] for sentence in treebank],
    )


def _word(line: str, expected: int, where: str) -> list[str] | None:
    """The fields of the word that a line holds; None where it holds a range or an empty node."""
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        raise errors.UserError(
            f"{where}: {len(fields)} fields between tabs; CoNLL-U has {len(FIELDS)}: {' '.join(FIELDS)}"
        )
    if not fields[1]:
        raise errors.UserError(f"{where}: the word is empty; CoNLL-U writes _ for what is not known")
    if _PASSED_OVER.fullmatch(fields[0]):
        return None
    if not _WORD.fullmatch(fields[0]):
        raise errors.UserError(f"{where}: id {fields[0]!r}; allowed are 1, 1-2 and 1.1")
    if int(fields[0]) != expected:
        raise errors.UserError(
            f"{where}: word {fields[0]} where word {expected} was expected; ids count up from 1, and a "
            "blank line ends a sentence"
        )
    return fields
