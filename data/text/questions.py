"""Questions about passages, answered by spans of them: `load(name)` is the one way in.

A token is a word or number, a punctuation mark, or one character of a script without spaces (Chinese
characters, Japanese kana). Words end at apostrophes and hyphens, since answers do.
"""

import dataclasses
import functools
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import errors
from data import builders, streams, subsets
from data.parts import Parts
from data.text import files, squad

GENERATED = builders.GENERATED["reading"]  # ready on a fresh machine
FILE = "file:"
_FOLDS = 10
_FOLD_SEED = 0

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


@dataclasses.dataclass(frozen=True)
class Text:
    """A text and where its tokens are.

    Attributes:
        text: as it was given.
        places: of each token the character it begins with, and the one after its last.
    """

    text: str
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> "Text":
        """Finds the tokens."""
        return cls(text, tuple(found.span() for found in _TOKEN.finditer(text)))

    @functools.cached_property
    def tokens(self) -> list[str]:
        """The tokens themselves."""
        return [self.text[begin:end] for begin, end in self.places]

    def span(self, first: int, last: int) -> str:
        """The text from token `first` to token `last`, both of them included."""
        return self.text[self.places[first][0] : self.places[last][1]]

    def cover(self, begin: int, end: int) -> tuple[int, int] | None:
        """The first and last of the tokens that share a character with `[begin, end)`; None if none does."""
        inside = [i for i, (b, e) in enumerate(self.places) if b < end and e > begin]
        return (inside[0], inside[-1]) if inside else None


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a passage.

    Attributes:
        passage: what holds the answer.
        question: what is asked.
        span: the first and last token of the first answer, or of the fewest tokens that cover it.
        answers: every text that counts as an answer.
        article: what the passage is from; questions on the same article are not parted.
    """

    passage: Text
    question: Text
    span: tuple[int, int]
    answers: tuple[str, ...]
    article: str


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return (*GENERATED, *builders.names("reading"))


def load(
    name: str, *, data_dir: str | None = None, validation_fraction: float = 0.1, seed: int = 0
) -> Parts[Sequence[Question]]:
    """Loads questions into memory.

    A data set with a published test has that; without one its validation is the test; and one of a single
    split, such as XQuAD, is parted into ten folds of articles, the same for every seed, of which the last is
    the test. A data set without validation has `validation_fraction` of the articles of train, chosen by
    `seed`. Answers that begin or end within a token are counted and told.

    Args:
        name: one of `names()`; or a data set with the features of SQuAD (`context`, `question`, `answers`)
            that TFDS has prepared as array_record under `data_dir`, such as "squad/v1.1"; or
            "file:TRAIN,VALIDATION,TEST", "file:TRAIN,TEST" or "file:ALL", JSON as of SQuAD.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        validation_fraction: share of articles to hold out, in (0, 1).
        seed: chooses what is held out; for generated sets, all of train.

    Returns:
        What to train, validate and test on.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or an answer
            is not in its passage.
        errors.RunError: files of a prepared data set are damaged.
    """
    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)
    splits = {split: _questions(rows, f"{name}, {split}") for split, rows in _read(name, data_dir, seed)}
    for split, found in splits.items():
        if not found:
            raise errors.UserError(f"{name}: nothing to read for {split}; at least one question is needed")
    every = [question for found in splits.values() for question in found]
    inexact = sum(question.passage.span(*question.span) != question.answers[0] for question in every)
    if inexact:
        logging.getLogger(__name__).warning(
            "%s: %s of %s answers are not whole tokens; the fewest tokens that cover them stand for them",
            name,
            f"{inexact:,}",
            f"{len(every):,}",
        )
    return _parts(splits, name, validation_fraction, seed)


def _read(name: str, data_dir: str | None, seed: int) -> Iterable[tuple[str, Iterable[Mapping[str, Any]]]]:
    """The records of every split there is."""
    if name in GENERATED:
        from data.text import facts

        return facts.splits(seed).items()
    if name.startswith(FILE) and name != FILE:
        listed = files.listed(name.removeprefix(FILE))
        return [(split, squad.decode(_content(path), str(path))) for split, path in listed.items()]

    from data import prepared  # takes longer to import than a small data set takes to load

    others = (*names(), f"{FILE}TRAIN,VALIDATION,TEST")
    builder = prepared.open_folder(
        prepared.folder(name, "reading", data_dir, others, also="set of questions as of SQuAD")
    )
    missing = {"context", "question", "answers"} - set(builder.info.features)
    if missing:
        raise errors.UserError(
            f"{builder.data_dir} lacks the feature(s) {', '.join(sorted(missing))} of a set as of SQuAD"
        )
    there = [split for split in ("train", "validation", "test") if split in builder.info.splits]
    return [(split, prepared.records(builder, split)) for split in there]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"file of questions {path} cannot be read: {error.strerror}") from error


def _questions(records: Iterable[Mapping[str, Any]], where: str) -> list[Question]:
    passages: dict[str, Text] = {}  # several questions are about each
    found = []
    for index, record in enumerate(records):
        context = record["context"]
        if context not in passages:
            passages[context] = Text.of(context)
        found.append(_question(passages[context], record, f"{where}: question {record.get('id') or index}"))
    return found


def _question(passage: Text, record: Mapping[str, Any], where: str) -> Question:
    answers = tuple(record["answers"]["text"])
    if not answers:
        raise errors.UserError(f"{where} has no answer; every question needs one, as in SQuAD 1.1")
    begin = int(record["answers"]["answer_start"][0])
    end = begin + len(answers[0])
    if begin < 0 or passage.text[begin:end] != answers[0]:
        raise errors.UserError(
            f"{where}: the answer {answers[0][:40]!r} does not begin at character {begin} of its passage"
        )
    span = passage.cover(begin, end)
    if span is None:
        raise errors.UserError(f"{where}: the answer {answers[0][:40]!r} has no token")
    article = record.get("title") or passage.text
    return Question(passage, Text.of(record["question"]), span, answers, article)


def _parts(
    splits: dict[str, list[Question]], name: str, fraction: float, seed: int
) -> Parts[Sequence[Question]]:
    if "validation" in splits and "test" in splits:
        return Parts(splits["train"], splits["validation"], splits["test"])
    if len(splits) == 1:
        ((split, every),) = splits.items()
        if len(_articles(every)) < _FOLDS:
            raise errors.UserError(
                f"{name}: {len(_articles(every))} article(s) and nothing but {split}; to part them into "
                f"folds, {_FOLDS} are needed"
            )
        order = streams.Stream(_FOLD_SEED, "question folds").permutation(len(_articles(every)))
        train, test = _divide(every, np.array_split(order, _FOLDS)[-1])
    else:
        train, test = splits["train"], splits["test"] if "test" in splits else splits["validation"]
    articles = len(_articles(train))
    if articles < 2:
        raise errors.UserError(f"{name}: 1 article to train on; to validate on one too, 2 are needed")
    _, chosen = subsets.train_and_validation(np.zeros(articles, np.int64), articles, fraction, seed)
    train, validation = _divide(train, chosen)
    return Parts(train, validation, test)


def _articles(questions: Iterable[Question]) -> list[str]:
    """Each article once, in order."""
    return list(dict.fromkeys(question.article for question in questions))


def _divide(questions: list[Question], chosen: np.ndarray) -> tuple[list[Question], list[Question]]:
    """The questions on other articles than the chosen, and those on the chosen."""
    articles = _articles(questions)
    inside = {articles[index] for index in chosen}
    return (
        [question for question in questions if question.article not in inside],
        [question for question in questions if question.article in inside],
    )
