"""Entities as spans of tokens, read off IOB2 tags, and how many of them were found."""

from collections.abc import Iterable, Sequence

Span = tuple[int, int, str]  # first token, the one after the last, type


def read(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence, strictly: each begins with B-TYPE and goes on with I-TYPE of its type.

    An I-TYPE that continues nothing of its type belongs to no span (Ramshaw and Marcus 1995, in the form
    IOB2 of Tjong Kim Sang and Veenstra 1999).

    >>> sorted(read(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "B-LOC"]))
    [(0, 2, 'PER'), (4, 5, 'LOC'), (5, 6, 'LOC')]
    """
    spans = set()
    start, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, of = tag.partition("-")
        if kind and not (mark == "I" and of == kind):
            spans.add((start, place, kind))
            kind = ""
        if mark == "B":
            start, kind = place, of
    return spans


def are_iob2(labels: Iterable[str]) -> bool:
    """Whether a set of labels tags spans: O, and else B-TYPE and I-TYPE alone, with some B-TYPE."""
    names = set(labels)
    return any(name.startswith("B-") for name in names) and all(
        name == "O" or name[:2] in ("B-", "I-") for name in names
    )


def scores(correct: int, predicted: int, expected: int) -> dict[str, float]:
    """Precision, recall and their harmonic mean; 0 where nothing was found or there was nothing to find."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / expected if expected else 0.0
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }
