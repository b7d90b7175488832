"""Entities as spans of tokens, read off IOB2 tags, and how many of them were found.

Counted here rather than by seqeval, with the same numbers (tests/tasks/test_spans.py): its last release, of
2020, is source alone, whose building fetches packages that no lock file names; importing it takes 1.4 s, and
3,000 sentences 0.67 s in place of 0.04 s; and it wants all of them at once, where an evaluation has batches.
"""

from collections.abc import Iterable, Sequence

Span = tuple[int, int, str]  # first token, the one after the last, type


def read(tags: Sequence[str], *, strict: bool = True) -> set[Span]:
    """The spans of one sentence.

    Args:
        tags: O, B-TYPE and I-TYPE.
        strict: whether a span begins with B-TYPE alone, so that an I-TYPE which continues nothing of its type
            belongs to none (Ramshaw and Marcus 1995, in the form IOB2 of Tjong Kim Sang and Veenstra 1999).
            Else such an I-TYPE begins one, as the script conlleval of the CoNLL shared tasks has it.

    >>> sorted(read(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "B-LOC"]))
    [(0, 2, 'PER'), (4, 5, 'LOC'), (5, 6, 'LOC')]
    >>> sorted(read(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "B-LOC"], strict=False))
    [(0, 2, 'PER'), (3, 4, 'LOC'), (4, 5, 'LOC'), (5, 6, 'LOC')]
    """
    spans = set()
    start, kind = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, of = tag.partition("-")
        if mark == "I" and of == kind:
            continue
        if kind:
            spans.add((start, place, kind))
            kind = ""
        if mark == "B" or (mark == "I" and not strict):
            start, kind = place, of
    return spans


def are_iob2(labels: Iterable[str]) -> bool:
    """Whether a set of labels tags spans: O, and else B-TYPE and I-TYPE alone, with some B-TYPE."""
    names = set(labels)
    return any(name.startswith("B-") for name in names) and all(
        name == "O" or name[:2] in ("B-", "I-") for name in names
    )


class Counts:
    """How many spans were found, chosen and due over all sentences added, in both ways of reading them."""

    def __init__(self) -> None:
        self._counts = {strict: [0, 0, 0] for strict in (True, False)}

    def add(self, right: Sequence[str], chosen: Sequence[str]) -> None:
        """One more sentence: the tags it should have, and those that a model chose."""
        for strict, counts in self._counts.items():
            due, found = read(right, strict=strict), read(chosen, strict=strict)
            for index, number in enumerate((len(due & found), len(found), len(due))):
                counts[index] += number

    def scores(self) -> dict[str, float]:
        """`precision`, `recall` and `f1` of strict spans, and the same of conlleval's under `_conlleval`."""
        return {
            f"{name}{'' if strict else '_conlleval'}": value
            for strict, counts in self._counts.items()
            for name, value in scores(*counts).items()
        }


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
