"""Exact match and F1 of answers, by hand."""

import pytest

from tasks import answer_scores


@pytest.mark.parametrize(
    "answer, allowed, exact, f1",
    [
        ("The Cat.", ("cat",), 1, 1),
        ("a cat", ("the dog", "cat"), 1, 1),  # whichever is the nearest
        ("black cat sat", ("the black cat",), 0, 4 / 5),  # 2 of 3, and 2 of 2
        ("cat cat", ("cat",), 0, 2 / 3),  # a word counts as often as it is there
        ("the", ("",), 1, 1),
        ("", ("cat",), 0, 0),
        ("疯狂科学家。", ("疯狂的科学家",), 0, 10 / 11),  # 5 of 5 characters, and 5 of 6
        ("“1961–62”", ("1961–62",), 1, 1),
    ],
)
def test_scores(answer, allowed, exact, f1):
    assert answer_scores.exact_match(answer, allowed) == exact
    assert answer_scores.f1(answer, allowed) == pytest.approx(f1)
