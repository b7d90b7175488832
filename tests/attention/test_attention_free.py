"""Attention-free transformers: their sums by hand, both ways to be causal, ranges of exponents, memory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.attention_free import attention_free_full, attention_free_local
from tests.attention.mechanism import changed, draw


def inputs(T=9, S=9, dtype=jnp.float32):
    return draw((2, T, 4, 6), (2, S, 2, 6), (2, S, 2, 6), (T, S), dtype=dtype)


def test_two_keys_by_hand():
    # Weights e^(w + k): 2 * 1 and 1 * 3 in channel 0, 2 * 1 and 1 * 0.5 in channel 1; gates 1/2 and 3/4.
    query = jnp.array([[[0.0, np.log(3.0)]]])
    key = jnp.log(jnp.array([[[1.0, 1.0]], [[3.0, 0.5]]]))
    value = jnp.array([[[5.0, 10.0]], [[10.0, 20.0]]])
    w = jnp.log(jnp.array([[2.0, 1.0]]))
    out = attention_free_full(query, key, value, position_bias=w)
    expected = [0.5 * (2 * 5 + 3 * 10) / 5, 0.75 * (2 * 10 + 0.5 * 20) / 2.5]
    np.testing.assert_allclose(out, [[expected]], rtol=1e-6)


def test_without_bias_and_gate_a_softmax_over_the_keys_of_each_channel():
    query, key, value, w = inputs(T=3)
    out = attention_free_full(np.full_like(query, 50.0), key, value, position_bias=np.zeros_like(w))
    expected = jnp.sum(jax.nn.softmax(key, axis=1) * value, axis=1, keepdims=True)
    expected = np.repeat(np.broadcast_to(expected, (2, 3, 2, 6)), 2, axis=2)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_causal_by_minus_infinity_in_the_bias(x64):
    *arrays, w = inputs(dtype=jnp.float64)
    hidden = jnp.where(np.tri(9, dtype=bool), w, -np.inf)
    by_bias = attention_free_full(*arrays, position_bias=hidden)
    for size in (1, 4, 32):
        causal = attention_free_full(*arrays, position_bias=w, is_causal=True, block_size=size)
        np.testing.assert_allclose(causal, by_bias, rtol=1e-12, atol=1e-13)
    nothing = attention_free_full(*arrays, position_bias=changed(w, np.s_[2], -np.inf))
    assert (nothing[:, 2] == 0).all()


def test_local_bias_counts_in_its_window_and_all_keys_are_seen():
    *arrays, w = inputs()
    local = attention_free_local(*arrays, position_bias=w, window=(2, 1), block_size=4)
    ahead = np.arange(9) - np.arange(9)[:, None]
    windowed = jnp.where((ahead >= -2) & (ahead <= 1), w, 0.0)
    expected = attention_free_full(*arrays, position_bias=windowed, block_size=4)
    np.testing.assert_array_equal(local, expected)
    everywhere = attention_free_local(*arrays, position_bias=w, window=(8, 8))
    np.testing.assert_array_equal(everywhere, attention_free_full(*arrays, position_bias=w))
    # The last value, beyond every window but two, moves every query.
    query, key, value = arrays
    moved = attention_free_local(
        query, key, changed(value, np.s_[:, 8], 9.0), position_bias=w, window=(2, 1), block_size=4
    )
    assert (np.abs(moved - local) > 1e-5).all()
    # What the bias holds outside the window is not read.
    outside = jnp.where(windowed == 0, np.nan, w)
    np.testing.assert_array_equal(
        attention_free_local(*arrays, position_bias=outside, window=(2, 1), block_size=4), local
    )


def test_bias_is_learned(x64):
    *arrays, w = inputs(dtype=jnp.float64)
    (step,) = draw((9, 9), dtype=jnp.float64, seed=5)

    def loss(w, **options):
        return jnp.sum(jnp.sin(attention_free_full(*arrays, position_bias=w, **options)))

    for options in ({}, {"is_causal": True, "block_size": 4}):
        of = jax.jit(jax.value_and_grad(partial(loss, **options)))
        gradient = np.asarray(of(w)[1])
        rise = (of(w + 1e-5 * step)[0] - of(w - 1e-5 * step)[0]) / 2e-5
        np.testing.assert_allclose(np.sum(gradient * step), rise, rtol=1e-6)
    assert (gradient[np.triu_indices(9, 1)] == 0).all()  # the causal one


@pytest.mark.parametrize("shift", [-1e4, 300.0, 1e4])
def test_only_differences_of_exponents_matter(shift):
    # e^300 is beyond float32; a number added to all keys of a channel, or to a row of w, cancels.
    query, key, value, w = inputs()
    call = jax.jit(lambda key, w: attention_free_full(query, key, value, position_bias=w, is_causal=True))
    key, w = np.round(16 * key) / 16, np.round(16 * w) / 16
    expected = call(key, w)
    np.testing.assert_allclose(call(key + shift, w), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(call(key, changed(w, np.s_[3], w[3] + shift)), expected, rtol=1e-5, atol=1e-6)


def test_a_huge_future_leaves_the_past_alone():
    query, key, value, w = inputs(T=40, S=40)

    @jax.jit
    def call(key, value, w):
        return attention_free_full(query, key, value, position_bias=w, is_causal=True, block_size=16)

    clean = call(key, value, w)
    assert np.isfinite(clean).all()
    for add in (0.1, 1e3, 1e9):
        future = [x.copy() for x in (key, value, w)]
        for x in future:
            x[:, 21:] += add
        np.testing.assert_array_equal(call(*future)[:, :21], clean[:, :21])


def test_refusals(untyped):
    query, key, value, w = inputs(T=5, S=7)
    with pytest.raises(ValueError, match=r"channel by channel.*\(2, 5, 4, 6\).*\(2, 7, 2, 4\)"):
        attention_free_full(query, key, value[..., :4], position_bias=w)
    with pytest.raises(ValueError, match=r"position_bias \[T S\] must be \(5, 7\).*got \(7, 5\)"):
        attention_free_full(query, key, value, position_bias=w.T)
    with pytest.raises(TypeError, match="position_bias bfloat16"):
        attention_free_full(query, key, value, position_bias=w.astype(jnp.bfloat16))
    with pytest.raises(ValueError, match=r"causal attention_free_full is self-attention.*\(2, 4, 5, 7\)"):
        attention_free_full(query, key, value, position_bias=w, is_causal=True)
    with pytest.raises(ValueError, match=r"attention_free_local is self-attention.*\(2, 4, 5, 7\)"):
        attention_free_local(query, key, value, position_bias=w, window=(1, 1))
    query, key, value, w = inputs()
    with pytest.raises(TypeError, match="window must be a pair"):
        attention_free_local(query, key, value, position_bias=w, window=3)


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_is_linear_beside_the_bias(is_causal):
    found = []
    for T in (512, 4096):
        arrays = [jax.ShapeDtypeStruct((1, T, 2, 16), jnp.float32)] * 3
        w = jax.ShapeDtypeStruct((T, T), jnp.float32)
        call = jax.jit(lambda q, k, v, w: attention_free_full(q, k, v, position_bias=w, is_causal=is_causal))
        found.append(call.lower(*arrays, w).compile().memory_analysis().temp_size_in_bytes)
    # One more array [T T] alone would be 64 MiB, and [T T D] 2 GiB.
    assert np.log(found[1] / found[0]) / np.log(8) <= 1.1
    assert found[1] < 16 * 2**20
