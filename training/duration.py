"""Durations as a config writes them: `"2000 steps"`, `"10 epochs"` or `"1e6 examples"`."""

import math
import re

from errors import UserError

UNITS = ("steps", "epochs", "examples")
_PATTERN = re.compile(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]+?)s?\s*")


def steps(text: str | None, *, field: str, batches_per_epoch: float, num_train: int) -> int:
    """The number of training steps a duration stands for, rounded up; `"0 steps"` and None are 0.

    Args:
        text: a number and one unit.
        field: the config field, for the error message.
        batches_per_epoch: steps per epoch.
        num_train: examples per epoch.

    Raises:
        UserError: if the text is not a number followed by one of the units.
    """
    if text is None:
        return 0
    match = _PATTERN.fullmatch(str(text))
    unit = match and match[2] + "s"
    try:
        number = float(match[1]) if match else math.nan
    except ValueError:
        number = math.nan
    if unit not in UNITS or not math.isfinite(number):
        raise UserError(
            f"{field} is {text!r}; it must be a number of {', '.join(UNITS[:-1])} or {UNITS[-1]}, "
            "such as '2000 steps' or '10 epochs'"
        )
    each = {"steps": 1.0, "epochs": batches_per_epoch, "examples": batches_per_epoch / num_train}[unit]
    return math.ceil(round(number * each, 6))
