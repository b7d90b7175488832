import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import attend, dot_product_attention, masks, scores
from tests.attention import oracle

B, T, S, N, K, H, V = 3, 5, 7, 4, 2, 6, 8


def draw(*shapes, dtype=jnp.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def inputs(T=T, S=S, dtype=jnp.float32):
    return draw((B, T, N, H), (B, S, K, H), (B, S, K, V), dtype=dtype)


def test_logsumexp(x64):
    query, key, value = inputs(dtype=jnp.float64)
    mask = masks.causal(T, S, -1)
    out, lse = dot_product_attention(query, key, value, mask=mask, return_logsumexp=True)
    table = np.where(mask, scores.scaled_dot(query, key), -np.inf)
    assert lse.shape == (B, N, T)
    assert (lse[..., 0] == -np.inf).all()
    np.testing.assert_allclose(lse[..., 1:], np.log(np.exp(table[..., 1:, :]).sum(-1)), rtol=1e-12)
    # Its gradient is the weights, where masked as well.
    gradient = jax.grad(
        lambda b: dot_product_attention(query, key, value, mask=mask, bias=b, return_logsumexp=True)[1].sum()
    )(np.zeros((B, N, T, S)))
    weights = dot_product_attention(query, key, value, mask=mask, return_weights=True)[1]
    np.testing.assert_allclose(gradient, weights, rtol=1e-12, atol=1e-15)
    assert out.shape == (B, T, N, V)


def test_returns_what_was_asked_for_in_order():
    arrays = inputs()
    out, weights, lse = dot_product_attention(*arrays, return_weights=True, return_logsumexp=True)
    assert (out.shape, weights.shape, lse.shape) == ((B, T, N, V), (B, N, T, S), (B, N, T))
    np.testing.assert_array_equal(out, dot_product_attention(*arrays))


@pytest.mark.parametrize("offset", [2, [0, 2, -1]])
def test_positions_equal_their_masks(offset):
    arrays, offset = inputs(), jnp.asarray(offset)
    padding = masks.padding(jnp.array([7, 3, 6]), S)
    causal = masks.causal(T, S, offset)
    cases = {
        (True, None): causal,
        (False, (3, 0)): masks.band(T, S, (3, 0), offset),
        (False, (1, 2)): masks.band(T, S, (1, 2), offset),
        (True, (1, 2)): causal & masks.band(T, S, (1, 2), offset),
    }

    def both(arrays, offset):
        for (is_causal, window), mask in cases.items():
            options = {"is_causal": is_causal, "window": window, "query_offset": offset}
            out = dot_product_attention(*arrays, mask=padding, **options)
            yield out, attend(*arrays, mask=padding & mask)

    for out, expected in jax.jit(lambda *x: list(both(*x)))(arrays, offset):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_auto_is_dense_where_there_are_few_scores():
    dense = dot_product_attention(*inputs(), implementation="dense")
    np.testing.assert_array_equal(dot_product_attention(*inputs(), implementation="auto"), dense)


@pytest.mark.parametrize(
    "shape, options, expected",
    [
        ((128, 50, 4, 16), {}, False),
        ((256, 128, 8, 32), {}, False),
        ((8, 256, 8, 64), {}, False),
        ((2, 577, 16, 64), {}, True),
        ((1, 8192, 4, 64), {"is_causal": True, "return_logsumexp": True}, True),
        ((1, 8192, 4, 64), {"return_weights": True}, False),
        ((1, 8192, 4, 64), {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}, False),
    ],
)
def test_auto_goes_block_by_block_where_there_are_many(shape, options, expected):
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32)] * 3
    program = jax.make_jaxpr(lambda *arrays: dot_product_attention(*arrays, **options))(*arrays)
    scores = (shape[0], shape[2], shape[1], shape[1])
    largest = max(math.prod(v.aval.shape) for e in program.jaxpr.eqns for v in e.outvars)
    assert (largest < math.prod(scores)) == expected


def test_blockwise_equals_dense():
    options = {"mask": masks.padding(jnp.array([7, 3, 6]), S), "scale": 0.3, "return_logsumexp": True}
    options |= {"bias": draw((1, N, 1, S))[0], "window": (2, 0), "query_offset": 1}
    found, expected = (
        dot_product_attention(*inputs(), implementation=i, **options) for i in ("blockwise", "dense")
    )
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)


def test_offset_may_be_traced():
    arrays = inputs()
    step = jax.jit(lambda offset: dot_product_attention(*arrays, is_causal=True, query_offset=offset))
    for offset in (0, 2):
        expected = dot_product_attention(*arrays, is_causal=True, query_offset=offset)
        np.testing.assert_allclose(step(offset), expected, rtol=1e-5, atol=1e-6)


def test_two_windows_give_two_results():
    arrays = inputs(T, T)
    narrow, wide = (dot_product_attention(*arrays, window=w) for w in ((0, 0), (2, 2)))
    assert not np.allclose(narrow, wide)
    np.testing.assert_allclose(narrow, np.repeat(arrays[2], N // K, axis=2), rtol=1e-5)


def test_scale(x64):
    query, key, value = inputs(dtype=jnp.float64)
    expected = oracle.attend(query, key, value, score=lambda *a: 0.3 * oracle.dot(*a))[0]
    out = dot_product_attention(query, key, value, scale=0.3)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_grouped_keys_are_not_repeated():
    """No array in the program is as large as keys repeated for every query head would be."""
    query, key, value = draw((2, 3, 8, 16), (2, 64, 1, 16), (2, 64, 1, 16))
    jaxpr = jax.make_jaxpr(dot_product_attention)(query, key, value)
    assert "repeat" not in str(jaxpr)
    largest = max(v.aval.size for e in jaxpr.jaxpr.eqns for v in e.outvars)
    assert largest < 8 * key.size


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"is_causal": True}, ValueError, r"query_offset=0 .* query_offset=2 .* last 5 of 7"),
        ({"window": (1, 1)}, ValueError, r"query_offset=0 .* query_offset=2 .* last 5 of 7"),
        ({"query_offset": 1}, ValueError, "query_offset places the queries for is_causal or window"),
        ({"is_causal": True, "query_offset": np.zeros(2, int)}, ValueError, r"element \(3,\), got \(2,\)"),
        ({"window": 3}, TypeError, r"pair \(left, right\).* got 3"),
        ({"window": (-1, 0), "query_offset": 0}, ValueError, "negative"),
        ({"implementation": "flash"}, ValueError, "unknown implementation 'flash'; allowed: auto, dense"),
        (
            {"implementation": "blockwise", "return_weights": True},
            ValueError,
            "'blockwise' cannot honour return_weights=True; use 'dense'",
        ),
        (
            {"implementation": "blockwise", "dropout_rate": 0.5, "dropout_key": jax.random.key(0)},
            ValueError,
            "'blockwise' cannot honour dropout_rate=0.5; use 'dense'",
        ),
    ],
)
def test_errors(options, error, message, untyped):
    with pytest.raises(error, match=message):
        dot_product_attention(*inputs(), **options)


def test_bfloat16_is_as_good_as_jax():
    query, key, value = draw((2, 64, 4, 32), (2, 96, 4, 32), (2, 96, 4, 32), dtype=jnp.bfloat16)
    exact = oracle.attend(query, key, value)[0]

    def error(out):
        return np.abs(np.asarray(out, np.float64) - exact).mean()

    with jax.numpy_dtype_promotion("standard"):
        reference = jax.nn.dot_product_attention(query, key, value)
    assert error(dot_product_attention(query, key, value)) <= 1.05 * error(reference)
