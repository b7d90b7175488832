"""Errors a user can mend."""

import pytest

from errors import RunError, UserError, unknown


@pytest.mark.parametrize(
    "word, allowed, message",
    [
        ("vti", ["vit", "cnn"], "unknown model 'vti'. Did you mean 'vit'? Allowed: cnn, vit"),
        ("resnet", ["vit", "cnn"], "unknown model 'resnet'. Allowed: cnn, vit"),
        (3, {"b": 1, "a": 2}, "unknown model 3. Allowed: a, b"),
    ],
)
def test_an_unknown_word_is_named_with_the_nearest_and_all_allowed(word, allowed, message):
    error = unknown("model", word, allowed)
    assert isinstance(error, UserError)
    assert str(error) == message


def test_exit_codes():
    assert UserError("wrong argument").exit_code == 2
    assert RunError("full disk").exit_code == 1
    assert issubclass(RunError, UserError)
