"""A config block against the arguments of what it makes: every mistake is one line that says where."""

import pytest
from models.fields import construct

from errors import UserError


def make(
    dim: int,
    *,
    size: int,
    hidden_dim: int = 0,
    wide: bool = False,
    word: str = "a",
    dropout_rate: float = 0.0,
):
    if word == "b":
        raise ValueError("word is 'b'; it must be 'a'")
    return dim, size, hidden_dim, wide, word, dropout_rate


class Made:
    def __init__(self, dim: int, *, window: tuple = (1, 2)):
        self.dim, self.window = dim, window


def test_fields_and_what_is_given_become_arguments():
    found = construct("config.model", make, {"size": 3, "wide": True, "dropout_rate": 0}, dim=2)
    assert found == (2, 3, 0, True, "a", 0)
    made = construct("config.model", Made, {"window": (0, 0)}, dim=5)
    assert (made.dim, made.window) == (5, (0, 0))


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"size": 1, "sise": 1}, "unknown field of config.model for kind 'x' 'sise'. Did you mean 'size'?"),
        ({"size": 1, "dim": 1}, "unknown field of config.model for kind 'x' 'dim'."),
        ({}, "config.model.size is missing for kind 'x'"),
        ({"size": 0}, "config.model.size is 0; it must be at least 1"),
        ({"size": "3"}, "config.model.size is '3'; it must be an integer"),
        ({"size": True}, "config.model.size is True; it must be an integer"),
        ({"size": 1, "wide": 1}, "config.model.wide is 1; it must be True or False"),
        ({"size": 1, "hidden_dim": -1}, "config.model.hidden_dim is -1; it must be at least 0"),
        ({"size": 1, "dropout_rate": 1.0}, "config.model.dropout_rate is 1.0; it must be in [0, 1)"),
        ({"size": 1, "dropout_rate": "no"}, "config.model.dropout_rate is 'no'; it must be a number"),
        ({"size": 1, "word": "b"}, "config.model: word is 'b'; it must be 'a'"),
    ],
)
def test_a_mistake_is_one_line(fields, message):
    with pytest.raises(UserError) as error:
        construct("config.model", make, fields, kind="x", dim=2)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
