"""How far an answer is the one that was wanted: exact match and F1, as SQuAD measures them.

Both compare what is left of the texts without case, punctuation, articles and spaces: words, and each
character of scripts without spaces by itself. Punctuation is that of all scripts, as in MLQA, where SQuAD's
own script knows that of ASCII alone.

Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text"; Lewis et al. (2020),
"MLQA: evaluating cross-lingual extractive question answering".
"""

import collections
import re
import string
import unicodedata
from collections.abc import Sequence

from data.text.types import Text

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalised(answer: str) -> list[str]:
    """What is compared.

    >>> normalised("The  Cat's hat, 疯狂.")
    ['cats', 'hat', '疯', '狂']
    """
    kept = "".join(character for character in answer.lower() if not _is_punctuation(character))
    return Text.of(_ARTICLES.sub(" ", kept)).tokens


def exact_match(answer: str, allowed: Sequence[str]) -> float:
    """1 if the answer is one of those allowed, else 0."""
    found = normalised(answer)
    return float(any(found == normalised(text) for text in allowed))


def f1(answer: str, allowed: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of words, with whichever allowed answer is the nearest."""
    return max(_overlap(normalised(answer), normalised(text)) for text in allowed)


def _overlap(found: list[str], wanted: list[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    shared = (collections.Counter(found) & collections.Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted))


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")
