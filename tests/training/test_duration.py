"""Durations in steps, epochs or examples."""

import pytest

from errors import UserError
from training import duration


def steps(text, batch_size=32, num_train=100):
    batches = num_train / batch_size
    return duration.steps(text, field="config.duration", batches_per_epoch=batches, num_train=num_train)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2000 steps", 2000),
        ("1 step", 1),
        ("  7steps ", 7),
        ("2.5e3 steps", 2500),
        ("0.5 steps", 1),
        ("0 steps", 0),
        (None, 0),
        ("1 epoch", 4),  # 100 / 32 = 3.125, rounded up
        ("8 epochs", 25),  # 800 / 32, exactly
        ("0.32 epochs", 1),
        ("0.33 epochs", 2),
        ("64 examples", 2),
        ("65 examples", 3),
        ("1e3 examples", 32),  # 31.25
    ],
)
def test_steps(text, expected):
    assert steps(text) == expected


def test_a_batch_larger_than_the_data_set():
    assert steps("10 epochs", batch_size=500, num_train=100) == 2
    assert steps("1 epochs", batch_size=500, num_train=1) == 1


def test_a_step_more_is_not_added_by_rounding():
    """0.1 * 3 examples in batches of 0.3 and the like: what is whole in decimals stays whole."""
    for epochs in range(1, 200):
        assert steps(f"{epochs / 10} epochs", batch_size=10, num_train=1000) == 10 * epochs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        10,
        "steps",
        "ten steps",
        "10 weeks",
        "-5 steps",
        "1..2 steps",
        "1e999 steps",
        "1 2 steps",
        "5 s",
    ],
)
def test_anything_else_is_one_line_with_the_field_and_what_is_allowed(text):
    with pytest.raises(UserError) as caught:
        steps(text)
    message = str(caught.value)
    assert message.startswith(
        f"config.duration is {text!r}; it must be a number of steps, epochs or examples"
    )
    assert "\n" not in message
