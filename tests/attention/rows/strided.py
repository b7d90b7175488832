"""Strided and dilated attention."""

from functools import partial

import numpy as np

from attention.strided import dilated_attention, strided_attention
from tests.attention.mechanism import Mechanism


def strided_pattern(T, S):
    seen = np.zeros((T, S), bool)
    for t in range(T):
        seen[t, max(t - 2, 0) : t + 1] = True
        seen[t, t % 2 : t + 1 : 2] = True
    return seen


def dilated_pattern(T, S):
    seen = np.zeros((T, S), bool)
    for t in range(T):
        for s in (t - 4, t - 2, t):
            if s >= 0:
                seen[t, s] = True
    return seen


strided = partial(strided_attention, stride=2)
dilated = partial(dilated_attention, window=(2, 0), dilation=2)


def row(name, call, pattern, **fields):
    return Mechanism(
        name,
        call,
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=pattern,
        causal=True,
        **fields,
    )


MECHANISMS = [
    row("strided", strided, strided_pattern),
    row(
        "dilated",
        dilated,
        dilated_pattern,
        with_window=lambda window: partial(dilated_attention, window=window, dilation=2),
    ),
]
