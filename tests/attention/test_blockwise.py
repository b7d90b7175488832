from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import dot_product_attention, masks
from attention.blockwise import blockwise_attention
from tests.attention.mechanism import changed, draw

B, T, S, N, K, H, V = 3, 5, 7, 4, 2, 6, 8

dense = partial(dot_product_attention, implementation="dense")
blocks_of_2 = partial(blockwise_attention, block_size=2)


def inputs(T=T, S=S, dtype=jnp.float64):
    return draw((B, T, N, H), (B, S, K, H), (B, S, K, V), dtype=dtype)


def everything(attention, arrays, bias, second=False, **options):
    """Outputs and gradients of a form of both, or the gradients and a Hessian-vector product."""

    def loss(*arrays):
        out, lse = attention(*arrays[:3], bias=arrays[3], return_logsumexp=True, **options)
        return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.cos(jnp.where(lse == -np.inf, 0.0, lse))), (out, lse)

    gradient, arrays = jax.grad(loss, (0, 1, 2, 3), has_aux=True), (*arrays, bias)
    if second:
        return jax.tree.leaves(jax.jvp(lambda *x: gradient(*x)[0], arrays, arrays))
    return jax.tree.leaves(gradient(*arrays))


def assert_equal_to_dense(arrays, bias, **options):
    found, expected = jax.jit(
        lambda arrays, bias: [everything(f, arrays, bias, **options) for f in (blocks_of_2, dense)]
    )(arrays, bias)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-11, atol=1e-12)


def test_causal_equals_dense(x64):
    bias, *arrays = draw((1, N, 1, S), (B, S, N, H), (B, S, K, H), (B, S, K, V), dtype=jnp.float64)
    assert_equal_to_dense(arrays, bias, is_causal=True, second=True)


def test_window_and_lengths_equal_dense(x64):
    bias, *arrays = draw((1, N, 1, S), (B, T, N, H), (B, S, K, H), (B, S, K, V), dtype=jnp.float64)
    options = {
        "window": (1, 2),
        "query_offset": np.array([2, 0, -3]),
        "mask": masks.padding(np.array([7, 0, 4]), S),
    }
    assert_equal_to_dense(arrays, changed(bias, np.s_[0, 1, 0, 3], -np.inf), **options)


def test_gradient_of_a_bias_is_summed_over_its_broadcast_axes(x64):
    shapes = [(1, 1, 1, 1), (B, 1, T, 1), (1, N, 1, S)]
    arrays, mask = inputs(), masks.padding(np.array([7, 0, 4]), S)

    @jax.jit
    def gradients(biases):
        def loss(bias):
            return jnp.sum(jnp.sin(blocks_of_2(*arrays, bias=bias, mask=mask)))

        written_out = [jnp.broadcast_to(bias, (B, N, T, S)) for bias in biases]
        return [jax.grad(loss)(bias) for bias in biases], [jax.grad(loss)(bias) for bias in written_out]

    for gradient, full in zip(*gradients(draw(*shapes, dtype=jnp.float64)), strict=True):
        axes = tuple(axis for axis in range(4) if gradient.shape[axis] == 1)
        np.testing.assert_allclose(gradient, full.sum(axes, keepdims=True), rtol=1e-11, atol=1e-14)


def test_hidden_by_position_is_unseen(x64):
    """Garbage beyond a window does not show, and inside it shows only to those who see it."""

    @jax.jit
    def outputs(key, value):
        def loss(key, value):
            out = blocks_of_2(query, key, value, window=(1, 1))
            return jnp.sum(out[:, :3]), out

        return jax.grad(loss, (0, 1), has_aux=True)(key, value)

    query, key, value = inputs(T=S)
    clean_gradients, clean = outputs(key, value)
    for arrays in ((changed(key, np.s_[:, 5], np.nan), value), (key, changed(value, np.s_[:, 5], np.inf))):
        gradients, out = outputs(*arrays)
        np.testing.assert_array_equal(out[:, :4], clean[:, :4])
        assert np.isnan(out[:, 4:]).all()
        for gradient, expected in zip(gradients, clean_gradients, strict=True):
            np.testing.assert_array_equal(gradient, expected)


def test_larger_scores_in_later_blocks():
    """Each block's scores are 1000 above those of the one before: all of the weight is on the last."""
    query = np.ones((1, 1, 1, 1))
    key = 500.0 * np.arange(8.0).reshape(1, 8, 1, 1)
    out, lse = blocks_of_2(query, key, key, scale=1.0, return_logsumexp=True)
    assert (out.item(), lse.item()) == (3500.0, 3500.0)
    out, lse = blocks_of_2(query, key[:, ::-1], key, scale=1.0, return_logsumexp=True)
    assert (out.item(), lse.item()) == (0.0, 3500.0)


def test_equal_scores_average():
    value = np.arange(12.0).reshape(1, 6, 1, 2)
    out, lse = blockwise_attention(
        np.zeros((1, 6, 1, 3)),
        np.ones((1, 6, 1, 3)),
        value,
        block_size=4,
        is_causal=True,
        return_logsumexp=True,
    )
    np.testing.assert_allclose(out[0, :, 0], [[t, t + 1] for t in range(6)], rtol=1e-6)
    np.testing.assert_allclose(lse[0, 0], np.log(np.arange(1, 7)), rtol=1e-6)


def test_no_price_without_a_mask():
    arrays = inputs(dtype=jnp.float32)
    assert "is_finite" not in str(jax.make_jaxpr(blockwise_attention)(*arrays))
    masked = partial(blockwise_attention, mask=np.ones((1, 1, 1, 1), bool))
    assert "is_finite" in str(jax.make_jaxpr(masked)(*arrays))


FORMS = {
    "plain": lambda S: {},
    "causal, lengths and bias": lambda S: {
        "is_causal": True,
        "mask": masks.padding(jnp.array([5]), S),
        "bias": np.zeros((1, 2, 1, S)),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_memory_is_linear(form):
    """Of second derivatives, whose program has the forward and the backward pass in it."""

    def attention(*arrays):
        return jnp.sum(jnp.sin(blockwise_attention(*arrays, **FORMS[form](arrays[1].shape[1]))))

    def second(*arrays):
        return jax.jvp(jax.grad(attention, (0, 1, 2)), arrays, arrays)

    lengths, memory = [1024, 8192], []
    for T in lengths:
        arrays = [jax.ShapeDtypeStruct((1, T, 2, 16), jnp.float32)] * 3
        memory.append(jax.jit(second).lower(*arrays).compile().memory_analysis().temp_size_in_bytes)
    assert np.polyfit(np.log(lengths), np.log(memory), 1)[0] <= 1.1
    assert memory[-1] < 4 * 8192**2 / 5  # of the scores of one head


def test_heads_at_once_equal_one_after_the_other(monkeypatch, x64):
    """As an accelerator walks through them, and as `jax.vmap` does."""
    arrays, lengths, offset = inputs(), np.array([7, 0, 4]), np.array([2, 0, -3])

    def loss(query, key, value, lengths, offset):
        mask = masks.padding(lengths, S)
        return jnp.sum(
            jnp.sin(blocks_of_2(query, key, value, mask=mask, is_causal=True, query_offset=offset))
        )

    def mapped(*arguments):
        return jnp.sum(jax.vmap(loss)(*arguments))

    def results(loss):
        blockwise_attention.clear_cache()
        return jax.jit(jax.value_and_grad(loss, (0, 1, 2)))(*arrays, lengths, offset)

    expected = results(loss)
    found = [results(mapped)]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found.append(results(loss))
    blockwise_attention.clear_cache()
    for result in found:
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-13), result, expected)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"block_size": 0}, ValueError, "block_size must be at least 1, got 0"),
        ({"block_size": 2.0}, TypeError, "block_size must be a Python integer, got 2.0"),
        ({"is_causal": True}, ValueError, r"query_offset=0 .* query_offset=2 .* last 5 of 7"),
        ({"query_offset": 1}, ValueError, "query_offset places the queries for is_causal or window"),
        ({"is_causal": True, "query_offset": np.zeros(2, int)}, ValueError, r"element \(3,\), got \(2,\)"),
        ({"is_causal": True, "query_offset": 0.5}, TypeError, "query_offset must be integers, got float"),
        ({"window": 3}, TypeError, r"pair \(left, right\).* got 3"),
        ({"window": (-1, 0), "query_offset": 0}, ValueError, "negative"),
        ({"bias": np.zeros((5, 7))}, ValueError, r"bias \(5, 7\) has rank 2 but scores \(3, 4, 5, 7\)"),
    ],
)
def test_errors(options, error, message, untyped):
    with pytest.raises(error, match=message):
        blockwise_attention(*inputs(dtype=jnp.float32), **options)
