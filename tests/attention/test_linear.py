"""Linear attention: the kernel it is, its three forms, its memory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import masks
from attention.linear import elu_plus_one, linear_attention, linear_attention_start, linear_attention_step
from tests.attention.mechanism import changed, draw
from tests.attention.memory import memory_slope

ARRAYS = (2, 11, 4, 6), (2, 11, 2, 6), (2, 11, 2, 8)


def identity(x):
    return x


def squares(x):
    return x[..., :2] ** 2


def kernel_attention(query, key, value, visible):
    """The explicit kernel, in float64 numpy."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    key, value = (np.repeat(x, query.shape[2] // x.shape[2], axis=2) for x in (key, value))
    query, key = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (query, key))
    weights = np.einsum("btnh,bsnh->bnts", query, key) * visible
    return np.einsum("bnts,bsnv->btnv", weights / weights.sum(-1, keepdims=True), value)


def test_two_keys_by_hand():
    # Features (1, 2) and weights phi(q) . phi(k): 1*1 + 2*0 = 1 and 1*1 + 2*1 = 3.
    query, key = jnp.array([[[1.0, 2.0]]]), jnp.array([[[1.0, 0.0]], [[1.0, 1.0]]])
    value = jnp.array([[[8.0]], [[4.0]]])
    out = linear_attention(query, key, value, feature_map=identity)
    np.testing.assert_allclose(out, [[[(1 * 8 + 3 * 4) / 4]]], rtol=1e-6)


def test_elu_plus_one_by_hand():
    x = jnp.array([-200.0, -1.0, 0.0, 0.5, 200.0])
    np.testing.assert_allclose(elu_plus_one(x), [0, np.exp(-1), 1, 1.5, 201], rtol=1e-6, atol=1e-30)
    slopes = jax.grad(lambda x: jnp.sum(elu_plus_one(x)))(x)
    np.testing.assert_allclose(slopes, [0, np.exp(-1), 1, 1, 1], rtol=1e-6, atol=1e-30)


def test_causal_recurrent_and_explicit_forms_are_one(x64):
    arrays = draw(*ARRAYS, dtype=jnp.float64)
    expected = kernel_attention(*arrays, np.tri(11))
    parallel = linear_attention(*arrays, is_causal=True, block_size=4)
    np.testing.assert_allclose(parallel, expected, rtol=1e-12, atol=1e-13)
    for steps in ([1] * 11, [5, 0, 3, 1, 2]):
        state, outs = linear_attention_start(*(x[:, :0] for x in arrays[1:])), []
        for end in np.cumsum(steps):
            seen = sum(out.shape[1] for out in outs)
            out, state = linear_attention_step(state, *(x[:, seen:end] for x in arrays), block_size=2)
            outs.append(out)
            assert state.sums.shape == (2, 2, 6, 9)
        np.testing.assert_allclose(np.concatenate(outs, 1), expected, rtol=1e-12, atol=1e-13)
    whole = linear_attention_start(*arrays[1:])
    np.testing.assert_allclose(whole.sums, state.sums, rtol=1e-12)


def test_a_memory_is_asked_like_keys_before_the_first(x64):
    arrays, memory = draw(*ARRAYS, dtype=jnp.float64), draw(*ARRAYS[1:], dtype=jnp.float64, seed=1)
    mask = masks.padding(jnp.array([11, 4]), 11)
    state = linear_attention_start(*memory, mask=mask)
    out = linear_attention_step(state, *arrays)[0]
    both = [np.concatenate(pair, 1) for pair in zip(memory, arrays[1:], strict=True)]
    visible = np.concatenate([np.broadcast_to(mask, (2, 1, 11, 11)), np.tri(11) * np.ones((2, 1, 1, 1))], -1)
    np.testing.assert_allclose(out, kernel_attention(arrays[0], *both, visible), rtol=1e-12, atol=1e-13)


def test_steps_owe_nan_to_the_steps_after_them():
    query, key, value = draw(*ARRAYS)
    value = changed(value, np.s_[0, 3, 1], np.nan)
    state = linear_attention_start(key[:, :0], value[:, :0])
    outs = []
    for first in range(0, 10, 2):
        out, state = linear_attention_step(state, *(x[:, first : first + 2] for x in (query, key, value)))
        outs.append(out)
    spoilt = np.isnan(np.concatenate(outs, 1)).any(-1)
    expected = np.zeros((2, 10, 4), bool)
    expected[0, 3:, 2:] = True
    np.testing.assert_array_equal(spoilt, expected)


def test_garbage_in_padding_does_not_show_in_a_state():
    _, key, value = draw(*ARRAYS)
    mask = masks.padding(jnp.array([4, 9]), 11)
    shown = np.asarray(mask)[:, 0, 0, :, None, None]
    clean = linear_attention_start(key, value, mask=mask)
    dirty = linear_attention_start(*(jnp.where(shown, x, np.nan) for x in (key, value)), mask=mask)
    np.testing.assert_array_equal(dirty.sums, clean.sums)


def test_parameters_of_a_feature_map_are_learned():
    arrays = draw(*ARRAYS)

    def loss(kernel):
        feature_map = Partial(lambda x, kernel: jnp.exp(x @ kernel), kernel=kernel)
        return jnp.sum(linear_attention(*arrays, feature_map=feature_map) ** 2)

    (kernel,) = draw((6, 3))
    gradient = jax.jit(jax.grad(loss))(kernel)
    step = 1e-2 * gradient / jnp.linalg.norm(gradient)
    rise = (loss(kernel + step) - loss(kernel - step)) / 2e-2
    np.testing.assert_allclose(rise, jnp.linalg.norm(gradient), rtol=1e-2)


@pytest.mark.parametrize("is_causal", [False, True])
def test_weights_that_are_all_zero_give_zero(is_causal):
    query, key, value = draw(*ARRAYS)
    call = partial(linear_attention, feature_map=jax.nn.relu, is_causal=is_causal)

    @jax.jit
    def output_and_gradients(*arrays):
        out, pull = jax.vjp(call, *arrays)
        return out, *pull(jnp.ones_like(out))

    out, *gradients = output_and_gradients(changed(query, np.s_[:, 3], -1.0), key, value)
    assert (out[:, 3] == 0).all()
    assert all(np.isfinite(x).all() for x in (out, *gradients))


def test_refusals(untyped):
    query, key, value = draw(*ARRAYS)
    with pytest.raises(ValueError, match=r"causal linear attention is self-attention.*\(2, 4, 5, 11\)"):
        linear_attention(query[:, :5], key, value, is_causal=True)
    with pytest.raises(ValueError, match="block_size must be at least 1, got 0"):
        linear_attention(query, key, value, block_size=0)
    with pytest.raises(ValueError, match=r"last axis alone.*\(2, 11, 4\)"):
        linear_attention(query, key, value, feature_map=lambda x: x[..., 0])
    state = linear_attention_start(key, value)
    with pytest.raises(ValueError, match=r"\(2, 2, 6, 9\).*\(2, 11, 2, 7\)"):
        linear_attention_step(state, query, key, value[..., :7])
    with pytest.raises(ValueError, match="a step of linear attention is self-attention"):
        linear_attention_step(state, query[:, :5], key, value)
    with pytest.raises(ValueError, match=r"state.*features"):
        linear_attention_step(state, query, key, value, feature_map=squares)


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_is_linear(is_causal):
    assert memory_slope(partial(linear_attention, is_causal=is_causal)) <= 1.1


def test_memory_of_the_gradient_is_linear():
    def gradients(*arrays):
        return jax.grad(lambda *a: jnp.sum(linear_attention(*a, is_causal=True) ** 2), (0, 1, 2))(*arrays)

    assert memory_slope(gradients, (512, 8192)) <= 1.1
