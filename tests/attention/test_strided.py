"""Sparse Transformer attention: dense attention under its mask, at a cost of T sqrt(T)."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks
from attention.banded import banded_attention
from attention.strided import dilated_attention, strided_attention
from tests.attention.mechanism import draw
from tests.attention.memory import memory_slope
from tests.attention.sparse import assert_equals_attend, gradients, who_sees


def test_by_hand():
    # Equal scores, stride 2: query 5 sees 5, 4, 3 and, every second one, 1.
    q, v = np.zeros((1, 6, 1, 2)), jnp.array([1.0, 2, 4, 8, 16, 32]).reshape(1, 6, 1, 1)
    out = strided_attention(q, q, v, stride=2)
    np.testing.assert_allclose(out.ravel()[-1], (32 + 16 + 8 + 2) / 4)
    out = dilated_attention(q, q, v, window=(1, 1), dilation=3)
    np.testing.assert_allclose(out.ravel(), [4.5, 9, 18, 4.5, 9, 18])


@pytest.mark.parametrize("stride", [1, 4, 99])
def test_strided_equals_attend_with_its_mask(stride, x64):
    T = 26
    assert_equals_attend(partial(strided_attention, stride=stride), masks.strided(T, stride=stride), T)


@pytest.mark.parametrize(("window", "dilation"), [((2, 1), 3), ((5, 0), 4), ((1, 1), 99)])
def test_dilated_equals_attend_with_its_mask(window, dilation, x64):
    T = 26
    call = partial(dilated_attention, window=window, dilation=dilation)
    assert_equals_attend(call, masks.dilated(T, T, window, dilation=dilation), T)


def test_dilation_1_is_a_band():
    arrays = draw((1, 9, 2, 3), (1, 9, 1, 3), (1, 9, 1, 4))
    out = dilated_attention(*arrays, window=(2, 1), dilation=1)
    np.testing.assert_allclose(out, banded_attention(*arrays, window=(2, 1)), rtol=1e-6)


def test_nan_between_the_strides_is_unseen():
    seen = who_sees(partial(strided_attention, stride=3), 14, s=2)
    assert seen.nonzero()[0].tolist() == [2, 3, 4, 5, 8, 11]
    seen = who_sees(partial(dilated_attention, window=(1, 1), dilation=3), 14, s=5)
    assert seen.nonzero()[0].tolist() == [2, 5, 8]


def test_memory_grows_as_the_cost():
    def strided(q, k, v):
        return strided_attention(q, k, v, stride=round(q.shape[1] ** 0.5))

    assert memory_slope(gradients(strided), lengths=(512, 8192)) <= 1.6
    assert (
        memory_slope(gradients(partial(dilated_attention, window=(16, 16), dilation=4)), lengths=(512, 8192))
        <= 1.1
    )


def test_refusals(untyped):
    q = np.zeros((2, 6, 2, 3))
    k = np.zeros((2, 7, 2, 3))
    with pytest.raises(ValueError, match="self-attention"):
        strided_attention(q, k, k, stride=2)
    with pytest.raises(ValueError, match="stride must be at least 1, got 0"):
        strided_attention(q, q, q, stride=0)
    with pytest.raises(ValueError, match="dilation must be at least 1, got 0"):
        dilated_attention(q, q, q, window=(1, 1), dilation=0)
    with pytest.raises(TypeError, match="window"):
        dilated_attention(q, q, q, window=3, dilation=1)
