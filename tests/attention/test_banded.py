"""Banded attention: dense attention under the band's mask, at a cost linear in the length."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks
from attention.banded import banded_attention
from tests.attention.memory import memory_slope
from tests.attention.sparse import assert_equals_attend, gradients, who_sees


def test_by_hand():
    # Equal scores: the mean of a key and the one before it.
    q, v = np.zeros((1, 4, 1, 2)), jnp.array([1.0, 3.0, 7.0, 9.0]).reshape(1, 4, 1, 1)
    out = banded_attention(q, q, v, window=(1, 0))
    np.testing.assert_allclose(out.ravel(), [1, 2, 5, 8])
    out = banded_attention(q, q, v, window=(0, 1), mask=masks.padding(jnp.array([3]), 4))
    np.testing.assert_allclose(out.ravel(), [2, 5, 7, 0])


@pytest.mark.parametrize(
    ("T", "window", "block_size"),
    [(37, (3, 2), 8), (37, (9, 0), 4), (5, (10**12, 0), None), (70, (40, 50), None)],
)
def test_equals_attend_with_the_band(T, window, block_size, x64):
    call = partial(banded_attention, window=window, block_size=block_size)
    assert_equals_attend(call, masks.band(T, T, (min(window[0], T), window[1])), T)


@pytest.mark.parametrize(
    ("T", "S", "window", "offset"), [(5, 11, (99, 0), 6), (11, 5, (3, 1), np.array([2, -4]))]
)
def test_queries_anywhere_among_the_keys(T, S, window, offset, x64):
    call = partial(banded_attention, window=window, query_offset=jnp.asarray(offset), block_size=4)
    assert_equals_attend(call, masks.band(T, S, window, jnp.asarray(offset)), T, S)


def test_nan_outside_the_window_is_unseen():
    seen = who_sees(partial(banded_attention, window=(2, 1), block_size=4), 11, s=5)
    assert seen.nonzero()[0].tolist() == [4, 5, 6, 7]


def test_memory_grows_with_the_length():
    call = partial(banded_attention, window=(64, 64))
    assert memory_slope(call) <= 1.1
    assert memory_slope(gradients(call)) <= 1.1


def test_refusals(untyped):
    q = np.zeros((2, 5, 2, 3))
    k = np.zeros((2, 7, 2, 3))
    for window in (3, (1, 1, 1), (1.0, 0)):
        with pytest.raises(TypeError):
            banded_attention(q, q, q, window=window)
    with pytest.raises(ValueError, match="negative"):
        banded_attention(q, q, q, window=(-1, 0))
    with pytest.raises(ValueError, match=r"query_offset=0 .* query_offset=2"):
        banded_attention(q, k, k, window=(1, 0))
    with pytest.raises(ValueError, match=r"\(3,\) for scores \(2, 2, 5, 7\)"):
        banded_attention(q, k, k, window=(1, 0), query_offset=np.zeros(3, int))
    with pytest.raises(ValueError, match="block_size"):
        banded_attention(q, q, q, window=(1, 0), block_size=0)
