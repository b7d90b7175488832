"""The vocabulary: from tokens, tags and labels to the numbers that models take, measured on train alone.

Beside its word, a token has *affixes*, so that a word never seen is not blind: its prefixes and suffixes of
one to four characters, its shape, and whether it has a digit or a hyphen, each with a table of its own.
Ratnaparkhi, "A maximum entropy model for part-of-speech tagging", EMNLP 1996; Collobert et al., "Natural
language processing (almost) from scratch", JMLR 2011.
"""

import collections
import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

import errors
from data.examples import Examples
from data.ragged import Ragged
from data.text import tokenisation
from data.text.types import NO_TAG, Corpus, LabelledTexts, TaggedSentences, Tokens

PADDING, UNKNOWN = 0, 1  # in words and affixes; what is known counts from 2
FIRST = 2
UNLABELLED = -1  # a token without a tag: no part of loss or metrics
UNSEEN = -2  # a tag or label that train does not have: no part of the loss, always wrong in metrics

Unit = Literal["words", "bytes"]
UNITS = get_args(Unit)
_LENGTHS = (1, 2, 3, 4)


def shape(word: str) -> str:
    """How a word is written: X for capitals, x for small letters, d for digits, runs of them as one.

    `shape("McDonald-2000")` is "XxXx-d". Letters without case, as in Chinese, are c.
    """
    return "".join(form for form, _ in itertools.groupby(map(_character, word)))


def _character(character: str) -> str:
    if character.isdigit():
        return "d"
    if character.isalpha():
        return "X" if character.isupper() else "x" if character.islower() else "c"
    return character


# Prefixes and suffixes ignore case, which the shape tells; a shorter word is its own prefix and suffix.
AFFIXES: dict[str, Callable[[str], str]] = {
    **{f"prefix_{n}": lambda word, n=n: word.lower()[:n] for n in _LENGTHS},  # type: ignore[misc]
    **{f"suffix_{n}": lambda word, n=n: word.lower()[-n:] for n in _LENGTHS},  # type: ignore[misc]
    "shape": shape,
    "digit": lambda word: "yes" if any(map(str.isdigit, word)) else "no",
    "hyphen": lambda word: "yes" if "-" in word else "no",
}


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """What turns text into numbers and labels back into words; made by `fit` or `from_json`.

    Attributes:
        unit: what a vector of the set stands for, one of `UNITS`.
        words: the words, the first of which has index `FIRST`; none with unit "bytes".
        affixes: of each kind of `AFFIXES` those there are; empty where affixes are not used.
        label_names: the tags or labels, by their number.
        lower: whether words are looked up in lower case.
        fold_digits: whether every digit of a word is read as 0.
        max_length: words or bytes that a labelled text is cut to; None never cuts.
        tokenisation: how text becomes tokens; see data/text/tokenisation.py.
    """

    unit: Unit
    words: tuple[str, ...]
    affixes: tuple[tuple[str, ...], ...]
    label_names: tuple[str, ...]
    lower: bool = False
    fold_digits: bool = False
    max_length: int | None = None
    tokenisation: str = "whitespace"

    @classmethod
    def fit(
        cls,
        train: Corpus,
        *,
        unit: Unit = "words",
        min_count: int = 1,
        max_size: int | None = None,
        lower: bool = False,
        fold_digits: bool = False,
        affixes: bool = True,
        affix_min_count: int = 2,
        max_length: int | None = None,
    ) -> "Vocabulary":
        """The vocabulary of a training set.

        Args:
            train: what to learn from, and nothing else.
            unit: words, or bytes of the UTF-8 of the text, its tokens joined by spaces; labelled texts alone.
            min_count: occurrences in train for a word to be known; 1 teaches nothing about unknown words.
            max_size: words to know at most, the most frequent; None: all.
            lower: look words up in lower case.
            fold_digits: read every digit of a word as 0.
            affixes: give each word its prefixes, suffixes and shape too.
            affix_min_count: occurrences in train for an affix to be known.
            max_length: words or bytes that a labelled text is cut to; None: never cut.

        Raises:
            errors.UserError: an argument is not allowed, or train has no label at all.
        """
        if unit not in UNITS:
            raise errors.unknown("unit", unit, UNITS)
        limits = {"min_count": min_count, "affix_min_count": affix_min_count}
        for name, value in (limits | {"max_size": max_size, "max_length": max_length}).items():
            if value is not None and value < 1:
                raise errors.UserError(f"{name} {value} is not allowed: at least 1 is needed")
        if isinstance(train, TaggedSentences) and (max_length is not None or unit == "bytes"):
            option = "unit 'bytes'" if max_length is None else f"max_length {max_length}"
            raise errors.UserError(f"{option} is not allowed for tagged sentences: every token needs its tag")
        if isinstance(train, TaggedSentences):
            label_set, how = set(itertools.chain.from_iterable(train.tags)), "whitespace"
        else:
            label_set, how = set(train.label), train.tokenisation
        names = _in_order(label_set - {NO_TAG})
        if not names:
            raise errors.UserError("the training data has no label: at least one is needed")
        empty = cls(unit, (), (), names, lower, fold_digits, max_length, how)
        if unit == "bytes":
            return empty
        forms = collections.Counter(itertools.chain.from_iterable(train.tokens))
        words = _counted((empty._normal(form), count) for form, count in forms.items())
        tables = [
            _frequent(_counted((affix(form), count) for form, count in forms.items()), affix_min_count)
            for affix in (AFFIXES.values() if affixes else ())
        ]
        chosen = _frequent(words, min_count)
        return dataclasses.replace(empty, words=chosen[:max_size], affixes=tuple(tables))

    @property
    def size(self) -> int:
        """How many indices `words` or `bytes` may hold, padding and unknown included."""
        return FIRST - 1 + 256 if self.unit == "bytes" else FIRST + len(self.words)

    @property
    def affix_sizes(self) -> tuple[int, ...]:
        """How many indices each column of `affixes` may hold."""
        return tuple(FIRST + len(table) for table in self.affixes)

    def known(self, word: str) -> bool:
        """Whether a word has an index of its own."""
        return self._normal(word) in self._index

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, as those of train were made."""
        return tokenisation.tokens(text, self.tokenisation)

    def encode(self, data: Corpus | Sequence[Tokens]) -> Examples:
        """Numbers for sentences or texts; a tag or label that train does not have is logged once.

        Args:
            data: with tags or labels; or tokens alone, to predict from.

        Returns:
            Columns for each vector:
                words: int32, `PADDING` never among them, `UNKNOWN` for words without an index;
                known: bool, whether it has one;
                affixes: int32 `[F]`, where they are used;
                bytes: int32, 1 to 256, in place of these with unit "bytes";
                tags: int32 of tagged sentences, `UNLABELLED` or `UNSEEN` below 0.
            And a field: label: int32 of labelled texts, `UNSEEN` below 0.
        """
        sentences = data.tokens if isinstance(data, Corpus) else data
        vectors: dict[str, Ragged] = {}
        fields: dict[str, np.ndarray] = {}
        if self.unit == "bytes":
            vectors["bytes"] = self._bytes(sentences)
        else:
            if not isinstance(data, TaggedSentences):
                sentences = [tokens[: self.max_length] for tokens in sentences]
            vectors |= self._words(sentences)
        if isinstance(data, TaggedSentences):
            tags = self._labels(itertools.chain.from_iterable(data.tags), "tag")
            vectors["tags"] = Ragged(tags, vectors["words"].offsets)
        elif isinstance(data, LabelledTexts):
            fields["label"] = self._labels(data.label, "label")
        return Examples(fields, vectors)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can write it, in the form of the first runs, which are resumed by it."""
        return {**dataclasses.asdict(self), "max_length": self.max_length or 0}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Vocabulary":
        """What `to_json` gave, also after it was written and read."""
        return cls(
            **{
                **stored,
                "words": tuple(stored["words"]),
                "affixes": tuple(map(tuple, stored["affixes"])),
                "label_names": tuple(stored["label_names"]),
                "max_length": stored["max_length"] or None,
            }
        )

    def _normal(self, word: str) -> str:
        word = word.lower() if self.lower else word
        return "".join("0" if c.isdigit() else c for c in word) if self.fold_digits else word

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words, FIRST)}

    @functools.cached_property
    def _affix_index(self) -> list[tuple[Callable[[str], str], dict[str, int]]]:
        return [
            (affix, {entry: index for index, entry in enumerate(table, FIRST)})
            for affix, table in zip(AFFIXES.values(), self.affixes, strict=bool(self.affixes))
        ]

    def _words(self, sentences: Sequence[Tokens]) -> dict[str, Ragged]:
        offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        # Each form is looked up once, however often it occurs.
        forms: dict[str, int] = {}
        where = np.fromiter(
            (forms.setdefault(token, len(forms)) for tokens in sentences for token in tokens),
            np.int64,
            int(offsets[-1]),
        )
        words = np.asarray([self._index.get(self._normal(form), UNKNOWN) for form in forms], np.int32)[where]
        columns = {"words": Ragged(words, offsets), "known": Ragged(words != UNKNOWN, offsets)}
        if self.affixes:
            table = [
                [index.get(affix(form), UNKNOWN) for affix, index in self._affix_index] for form in forms
            ]
            rows = np.asarray(table, np.int32).reshape(-1, len(self.affixes))
            columns["affixes"] = Ragged(rows[where], offsets)
        return columns

    def _bytes(self, sentences: Sequence[Tokens]) -> Ragged:
        texts = [" ".join(tokens).encode()[: self.max_length] for tokens in sentences]
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return Ragged(np.frombuffer(b"".join(texts), np.uint8).astype(np.int32) + 1, offsets)

    def _labels(self, given: Iterable[str], what: str) -> np.ndarray:
        index = {NO_TAG: UNLABELLED} | {name: number for number, name in enumerate(self.label_names)}
        words = list(given)
        unseen = collections.Counter(word for word in words if word not in index)
        if unseen:
            logging.getLogger(__name__).warning(
                "%s of %s %ss do not occur in train and count as wrong: %s",
                f"{unseen.total():,}",
                f"{len(words):,}",
                what,
                ", ".join(sorted(unseen)),
            )
        return np.asarray([index.get(word, UNSEEN) for word in words], np.int32)


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    """By number where all are numbers, such as -1 and +1; else by character."""
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))


def _counted(pairs: Iterable[tuple[str, int]]) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    for entry, count in pairs:
        counts[entry] += count
    return counts


def _frequent(counts: Mapping[str, int], least: int) -> tuple[str, ...]:
    """Those that occur `least` times, the most frequent first; ties by character."""
    chosen = [entry for entry, count in counts.items() if count >= least]
    return tuple(sorted(chosen, key=lambda entry: (-counts[entry], entry)))
