"""How far texts are from what they should be, counted in words or in characters that must be changed.

Distances are those of rapidfuzz. jiwer, which counts by it too, strips the blanks at either end of a text
before it counts characters; here they are characters like all others.
"""

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein


def word_error_rate(made: Sequence[str], right: Sequence[str]) -> float:
    """Words to change over words there should be, in all texts together; above 1 where much is added."""
    return _rate([text.split() for text in made], [text.split() for text in right])


def character_error_rate(made: Sequence[str], right: Sequence[str]) -> float:
    """The same of characters, spaces included."""
    return _rate(made, right)


def _rate(made: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    """Insertions, deletions and substitutions, the least there can be, over the length of what is right."""
    changes = sum(Levenshtein.distance(*pair) for pair in zip(made, right, strict=True))
    return changes / max(sum(map(len, right)), 1)
