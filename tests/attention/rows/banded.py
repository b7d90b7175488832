"""Banded attention, causal and not."""

import dataclasses
from functools import partial

import numpy as np

from attention.banded import banded_attention
from tests.attention.mechanism import Mechanism


def band(left, right):
    """Who sees whom, query by query."""

    def pattern(T, S):
        seen = np.zeros((T, S), bool)
        for t in range(T):
            seen[t, max(t - left, 0) : t + right + 1] = True
        return seen

    return pattern


def row(name, window, **options):
    call = partial(banded_attention, window=window, **options)
    return Mechanism(
        name,
        call,
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=band(*window),
        causal=window[1] == 0,
        with_window=lambda window: partial(banded_attention, window=window),
    )


def any_block_size(row):
    call = partial(banded_attention, window=(2, 1))
    return dataclasses.replace(row, with_block_size=lambda size: partial(call, block_size=size))


MECHANISMS = [
    any_block_size(row("banded", (2, 1), block_size=4)),
    row("banded-causal", (3, 0), block_size=2),
]
