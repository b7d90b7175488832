import numpy as np
import pytest

from tasks.error_rate import character_error_rate, distance, word_error_rate


@pytest.mark.parametrize(
    "made, right, changes",
    [
        ("kitten", "sitting", 3),  # k to s, e to i, and a g more
        ("sunday", "saturday", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("abc", "abc", 0),
        ("abcd", "bcda", 2),  # not 4, as place by place
        ("aaab", "b", 3),
        ([3, 1, 4], [1, 4, 1, 5], 3),
    ],
)
def test_distance(made, right, changes):
    assert distance(made, right) == changes
    assert distance(right, made) == changes


def test_as_by_its_recursive_definition():
    def defined(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min(defined(a[1:], b) + 1, defined(a, b[1:]) + 1, defined(a[1:], b[1:]) + (a[0] != b[0]))

    random = np.random.default_rng(0)
    for _ in range(20):
        a, b = ("".join(random.choice(list("xyz"), random.integers(6))) for _ in range(2))
        assert distance(a, b) == defined(a, b)


def test_rates_are_of_all_texts_together():
    right = ["one two three", "four"]
    assert word_error_rate(["one three", "four"], right) == 1 / 4
    assert word_error_rate(["one two three", "five six"], right) == 2 / 4
    assert word_error_rate(["", ""], right) == 1
    assert character_error_rate(["one two three", "for"], right) == 1 / 17
    assert character_error_rate(["onetwo three", "four"], right) == 1 / 17  # a space is a character
    assert word_error_rate([" one  two three", "four "], right) == 0
