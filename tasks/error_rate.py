"""How far texts are from what they should be, counted in words or in characters that must be changed."""

from collections.abc import Hashable, Sequence

import numpy as np


def distance(made: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The least number of insertions, deletions and substitutions that turn one sequence into the other.

    Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966; by rows, as
    Wagner and Fischer 1974.
    """
    numbers: dict[Hashable, int] = {}
    first, second = (
        np.array([numbers.setdefault(each, len(numbers)) for each in side], np.int64)
        for side in (made, right)
    )
    places = np.arange(len(second) + 1)
    row = places  # from nothing to each beginning of `right`
    for each in first:
        kept = np.concatenate([row[:1] + 1, np.minimum(row[1:] + 1, row[:-1] + (second != each))])
        # The least of all ways that end in insertions.
        row = np.minimum.accumulate(kept - places) + places
    return int(row[-1])


def word_error_rate(made: Sequence[str], right: Sequence[str]) -> float:
    """Words to change over words there should be, in all texts together; above 1 where much is added."""
    return _rate([text.split() for text in made], [text.split() for text in right])


def character_error_rate(made: Sequence[str], right: Sequence[str]) -> float:
    """The same of characters, spaces included."""
    return _rate(made, right)


def _rate(made: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    changes = sum(distance(*pair) for pair in zip(made, right, strict=True))
    return changes / max(sum(map(len, right)), 1)
