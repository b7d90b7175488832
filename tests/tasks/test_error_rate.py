import pytest

from tasks.error_rate import character_error_rate, word_error_rate


@pytest.mark.parametrize(
    "made, right, changes",
    [
        ("kitten", "sitting", 3),  # k to s, e to i, and a g more
        ("", "abc", 3),
        ("abcd", "bcda", 2),  # not 4, as place by place
        ("aaab", "b", 3),
        (" ab ", "ab", 2),  # blanks at the ends are characters too
    ],
)
def test_changes_of_characters_over_the_characters_due(made, right, changes):
    assert character_error_rate([made], [right]) == pytest.approx(changes / len(right))


def test_rates_are_of_all_texts_together():
    right = ["one two three", "four"]
    assert word_error_rate(["one three", "four"], right) == 1 / 4
    assert word_error_rate(["one two three", "five six"], right) == 2 / 4
    assert word_error_rate(["", ""], right) == 1
    assert character_error_rate(["one two three", "for"], right) == 1 / 17
    assert character_error_rate(["onetwo three", "four"], right) == 1 / 17  # a space is a character
    assert word_error_rate([" one  two three", "four "], right) == 0
    assert word_error_rate(["one", "a b"], ["", ""]) == 3  # nothing is due
