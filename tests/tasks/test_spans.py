"""Spans of strict IOB2, by hand."""

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


def test_which_labels_tag_spans():
    assert spans.are_iob2({"O", "B-A", "I-A"})
    assert not spans.are_iob2({"NOUN", "VERB"})
    assert not spans.are_iob2({"O", "B-A", "X"})
    assert not spans.are_iob2({"O"})


def test_scores():
    assert spans.scores(2, 4, 5) == {"precision": 0.5, "recall": 0.4, "f1": pytest.approx(4 / 9)}
    assert spans.scores(0, 0, 3) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}
