"""Calendar dates written in full in any two languages, with the true alignment of the two texts.

"Wednesday, March 3, 2021" is "2021. március 3., szerda" in Hungarian and "2021年3月3日星期三" in Chinese: the
names and the order of weekday, day, month and year are those of the Unicode CLDR, by Babel. Every number and
name has one place on the other side, so whether attention looks at the right one can be counted.

Dates of validation and test are the same for every seed and never trained on.
"""

import datetime
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import babel
from babel import dates as cldr

import errors
from data import streams
from data.splits import Splits
from data.text.types import Link, ParallelText

NUM_EXAMPLES = {"train": 4_000, "validation": 500, "test": 500}
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
_SHARED_SEED = 0

Range = tuple[int, int]  # characters from the first up to the second
# The fields of a pattern by the letters that stand for them, Unicode Technical Standard 35.
_FIELDS = {
    letter: field
    for field, letters in (("weekday", "Eec"), ("day", "d"), ("month", "ML"), ("year", "yYuUr"))
    for letter in letters
}


def splits(seed: int) -> Splits[list[datetime.date]]:
    """The dates of a data set, those of train drawn by `seed`."""
    order = streams.Stream(_SHARED_SEED, "dates").permutation((LAST - FIRST).days + 1)
    bounds = list(itertools.accumulate((NUM_EXAMPLES["validation"], NUM_EXAMPLES["test"]), initial=0))
    validation, test = (order[start:end] for start, end in itertools.pairwise(bounds))
    rest = order[bounds[-1] :]
    train = rest[streams.Stream(seed, "dates train").permutation(len(rest))[: NUM_EXAMPLES["train"]]]
    return Splits(
        *([FIRST + datetime.timedelta(int(day)) for day in days] for days in (train, validation, test))
    )


def written(days: Sequence[datetime.date], source: str, target: str) -> ParallelText:
    """Dates in two locales, with the links between them; see `alignment`."""
    made = [alignment(source, target, day) for day in days]
    return ParallelText(
        [text for text, _, _ in made], [text for _, text, _ in made], [links for *_, links in made]
    )


def write(date: datetime.date, locale: str) -> str:
    """A date in full, such as "Wednesday, March 3, 2021".

    Args:
        date: the date.
        locale: a locale of the CLDR, such as "en", "de_AT" or "zh_Hant".

    Raises:
        errors.UserError: there is no such locale.
    """
    return "".join(text for _, text in _fields(date, locale))


def alignment(source: str, target: str, date: datetime.date) -> tuple[str, str, list[Link]]:
    """A date in two languages, and which part of one is which of the other.

    Args:
        source: a locale.
        target: another.
        date: the date.

    Returns:
        The source, the target, and a link for each of weekday, day, month and year that both have, in the
        order of the target. What stands between them belongs to nothing.

    Raises:
        errors.UserError: there is no such locale.
    """
    texts, places = [], []
    for locale in (source, target):
        pieces = _fields(date, locale)
        ends = list(itertools.accumulate((len(text) for _, text in pieces), initial=0))
        texts.append("".join(text for _, text in pieces))
        places.append(
            {field: span for (field, _), span in zip(pieces, itertools.pairwise(ends), strict=True) if field}
        )
    there, here = places
    return texts[0], texts[1], [Link(span, there[field]) for field, span in here.items() if field in there]


def _fields(date: datetime.date, locale: str) -> list[tuple[str, str]]:
    """The pieces of a date in full, each with its field, "" of what stands between them."""
    tokens, parsed = _pattern(locale)
    fields = cldr.DateTimeFormat(date, parsed)
    return [
        ("", value) if what == "chars" else (_FIELDS.get(value[0], ""), fields[value[0] * value[1]])
        for what, value in tokens
    ]


@functools.cache
def _pattern(locale: str) -> tuple[list[tuple[str, Any]], babel.Locale]:
    """Pieces of the pattern of a date in full: what stands in it, or a letter and how often it does."""
    try:
        parsed = babel.Locale.parse(locale)
    except (ValueError, babel.UnknownLocaleError) as error:
        raise errors.UserError(
            f"{locale!r} is no locale; allowed are those of the CLDR, such as en, de, fr, hu, zh, ja"
        ) from error
    return cldr.tokenize_pattern(cldr.get_date_format("full", parsed).pattern), parsed
