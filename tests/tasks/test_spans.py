"""Spans of IOB2, strict and as conlleval has them, by hand; and counted as seqeval counts."""

import random

import pytest

from tasks import spans


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("", set()),
        ("O O", set()),
        ("B-A", {(0, 1, "A")}),
        ("B-A I-A O B-B I-B I-B", {(0, 2, "A"), (3, 6, "B")}),
        ("B-A B-A", {(0, 1, "A"), (1, 2, "A")}),
        ("I-A O", set()),  # it continues nothing
        ("O I-A I-A", set()),
        ("B-A I-B I-A", {(0, 1, "A")}),  # another type ends it, and is none itself
        ("B-A-1 I-A-1", {(0, 2, "A-1")}),
    ],
)
def test_spans_begin_with_b_and_go_on_with_i_of_their_type(tags, expected):
    assert spans.read(tags.split()) == expected


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("B-A I-A O B-B", {(0, 2, "A"), (3, 4, "B")}),
        ("I-A O", {(0, 1, "A")}),  # it begins where nothing goes before it
        ("O I-A I-A", {(1, 3, "A")}),
        ("B-A I-B I-A", {(0, 1, "A"), (1, 2, "B"), (2, 3, "A")}),  # or another type does
    ],
)
def test_conlleval_lets_a_span_begin_with_i_too(tags, expected):
    assert spans.read(tags.split(), strict=False) == expected


def test_which_labels_tag_spans():
    assert spans.are_iob2({"O", "B-A", "I-A"})
    assert not spans.are_iob2({"NOUN", "VERB"})
    assert not spans.are_iob2({"O", "B-A", "X"})
    assert not spans.are_iob2({"O"})


def test_scores():
    assert spans.scores(2, 4, 5) == {"precision": 0.5, "recall": 0.4, "f1": pytest.approx(4 / 9)}
    assert spans.scores(0, 0, 3) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


# What seqeval 1.2.2 says of the four sentences together: mode="strict", scheme=IOB2, and its default.
RIGHT = ("B-A I-A O I-B", "O I-A B-A I-B I-A", "B-B I-B I-B O B-A", "I-A I-A I-B")
CHOSEN = ("B-A I-A O B-B", "O B-A B-A I-B I-A", "B-B I-B O O I-A", "I-A I-A B-B")
STRICT, CONLLEVAL = (1 / 3, 1 / 2, 2 / 5), (9 / 10, 9 / 10, 9 / 10)


def counted(right, chosen):
    counts = spans.Counts()
    for one, other in zip(right, chosen, strict=True):
        counts.add(one, other)
    return counts.scores()


def test_both_ways_of_counting_over_sentences():
    found = counted(map(str.split, RIGHT), map(str.split, CHOSEN))
    names = [f"{name}{way}" for way in ("", "_conlleval") for name in ("precision", "recall", "f1")]
    assert found == {
        name: pytest.approx(value) for name, value in zip(names, STRICT + CONLLEVAL, strict=True)
    }


def test_seqeval_counts_the_same():
    metrics = pytest.importorskip("seqeval.metrics", reason="seqeval is in the extra 'bench'")
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOB2

    draw = random.Random(0)
    for _ in range(50):
        right = [draw.choices(("O", "B-A", "I-A", "B-B", "I-B"), k=draw.randint(1, 9)) for _ in range(4)]
        chosen = [[tag if draw.random() < 0.6 else draw.choice(right[0]) for tag in of] for of in right]
        strict = precision_recall_fscore_support(right, chosen, average="micro", scheme=IOB2, zero_division=0)
        lenient = (
            score(right, chosen, zero_division=0)
            for score in (metrics.precision_score, metrics.recall_score, metrics.f1_score)
        )
        assert list(counted(right, chosen).values()) == pytest.approx([*strict[:3], *lenient])
