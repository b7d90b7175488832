"""cosFormer: its weights by hand, positions of queries, memory."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from attention.cosformer import cosformer_attention
from tests.attention.mechanism import changed, draw
from tests.attention.memory import memory_slope


def test_weights_by_hand():
    # Relu products 1 and 2, distances 0 and 2 of L = 3: cos 0 = 1 and cos 60 degrees = 1/2.
    query = jnp.array([[[1.0, -5.0]]])
    key = jnp.array([[[1.0, -9.0]], [[-1.0, 1.0]], [[2.0, -1.0]]])
    value = jnp.array([[[6.0]], [[100.0]], [[2.0]]])
    out = cosformer_attention(query, key, value, max_length=3, query_offset=0)
    np.testing.assert_allclose(out, [[[(1 * 6 + 2 * 0.5 * 2) / 2]]], rtol=1e-6)


def test_nearer_keys_weigh_more():
    # Equal keys: the weights are the cosines alone.
    query, key, value = np.ones((5, 1, 2)), np.ones((5, 1, 2)), np.eye(5)[:, None, :]
    out = cosformer_attention(query, key, value, max_length=6)[:, 0]
    t = np.arange(5)
    expected = np.cos(np.pi / 2 * (t[:, None] - t) / 6)
    np.testing.assert_allclose(out, expected / expected.sum(-1, keepdims=True), rtol=1e-5)


def test_offset_places_the_queries_of_each_sequence():
    query, key, value = draw((2, 9, 4, 6), (2, 9, 2, 6), (2, 9, 2, 3))
    whole = cosformer_attention(query, key, value, max_length=16)
    last = cosformer_attention(query[:, 6:], key, value, max_length=16, query_offset=6)
    np.testing.assert_allclose(last, whole[:, 6:], rtol=1e-5, atol=1e-6)
    each = np.stack([query[0, 2:5], query[1, 4:7]])
    out = cosformer_attention(each, key, value, max_length=16, query_offset=jnp.array([2, 4]))
    np.testing.assert_allclose(out, np.stack([whole[0, 2:5], whole[1, 4:7]]), rtol=1e-5, atol=1e-6)


def test_without_positive_features_zero():
    query, key, value = draw((4, 1, 6), (4, 1, 6), (4, 1, 3))
    out = cosformer_attention(changed(query, np.s_[2], -1.0), key, value, max_length=4, is_causal=True)
    assert (out[2] == 0).all()
    assert np.isfinite(out).all()


def test_refusals(untyped):
    query, key, value = draw((2, 5, 4, 6), (2, 7, 2, 6), (2, 7, 2, 3))
    with pytest.raises(
        ValueError, match="with 5 queries and 7 keys the position of the queries is ambiguous"
    ):
        cosformer_attention(query, key, value, max_length=8)
    with pytest.raises(ValueError, match=r"max_length must be.*6.*\(2, 4, 5, 7\)"):
        cosformer_attention(query, key, value, max_length=6, query_offset=2)
    with pytest.raises(ValueError, match=r"one per batch element \(2,\), got int32 \(3,\)"):
        cosformer_attention(query, key, value, max_length=9, query_offset=np.arange(3))
    with pytest.raises(ValueError, match=r"causal cosformer is self-attention.*\(2, 4, 5, 7\)"):
        cosformer_attention(query, key, value, max_length=9, query_offset=2, is_causal=True)
    with pytest.raises(ValueError, match="causal cosformer has no query_offset"):
        cosformer_attention(query, key[:, :5], value[:, :5], max_length=9, query_offset=2, is_causal=True)


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_is_linear(is_causal):
    assert memory_slope(partial(cosformer_attention, max_length=8192, is_causal=is_causal)) <= 1.1
