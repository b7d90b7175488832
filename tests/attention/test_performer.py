"""Performer: how near its random features come to the softmax, and that they look at query and key."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.dot_product import dot_product_attention
from attention.performer import log_positive_features, orthogonal_projection, performer_attention
from tests.attention.mechanism import changed, draw
from tests.attention.memory import memory_slope

H = 8
FEATURES = (8, 32, 128)


def test_projection_is_orthogonal_in_blocks_and_normal_in_length():
    rows = np.asarray(orthogonal_projection(jax.random.key(0), 20, H))
    assert rows.shape == (20, H)
    for block in (rows[:8], rows[8:16], rows[16:]):
        products = block @ block.T
        np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-5)
    # Each row is a standard normal vector: mean 0, covariance 1, and so mean square length H.
    draws = jax.vmap(lambda key: orthogonal_projection(key, 3, H))(jax.random.split(jax.random.key(1), 4000))
    covariance = np.einsum("imh,img->mhg", draws, draws) / 4000
    np.testing.assert_allclose(covariance, np.broadcast_to(np.eye(H), (3, H, H)), atol=0.12)
    np.testing.assert_allclose(np.mean(draws, 0), 0, atol=0.08)


@pytest.fixture(scope="module")
def estimates():
    """Estimates of `exp(x . y)` for every number of features M, what they estimate, how they may vary."""
    x, y = draw((16, H), (16, H), seed=3)
    x, y = x / 4, y / 4

    def estimate(features, key):
        w = orthogonal_projection(key, features, H)
        return jnp.sum(jnp.exp(log_positive_features(x, w) + log_positive_features(y, w)), axis=-1)

    keys = jax.random.split(jax.random.key(2), 400)
    found = {m: np.asarray(jax.jit(jax.vmap(partial(estimate, m)))(keys)) for m in FEATURES}
    # Independent features would have this relative variance, times 1 / M; orthogonal ones have less.
    variance = np.expm1(np.sum(np.asarray(x + y) ** 2, -1))
    return found, np.exp(np.sum(np.asarray(x) * np.asarray(y), -1)), variance


def test_kernel_estimate_is_unbiased(estimates):
    found, exact, _ = estimates
    for draws in found.values():
        error = draws.std(0) / len(draws) ** 0.5
        # Sixteen pairs, so that 4 standard errors are met by chance once in a thousand times.
        assert (np.abs(draws.mean(0) - exact) < 4 * error).all()


def test_error_of_the_kernel_falls_as_one_over_root_m(estimates):
    found, exact, variance = estimates
    errors = [np.sqrt(np.mean((draws / exact - 1) ** 2)) for draws in found.values()]
    slope = np.polyfit(np.log(FEATURES), np.log(errors), 1)[0]
    assert -0.55 < slope < -0.45
    for m, error in zip(FEATURES, errors, strict=True):
        assert 0.8 < error / np.sqrt(np.mean(variance) / m) < 1.1


@pytest.mark.parametrize("is_causal", [False, True])
def test_error_against_softmax_attention(is_causal):
    query, key, value = draw((2, 24, 2, H), (2, 24, 2, H), (2, 24, 2, 4), seed=4)
    keys = jax.random.split(jax.random.key(5), 16)

    @partial(jax.jit, static_argnums=0)
    def approximate(features, size):
        def one(key_of_draw):
            projection = orthogonal_projection(key_of_draw, features, H)
            arrays = size * query, size * key, value
            return performer_attention(*arrays, projection=projection, is_causal=is_causal)

        return jax.vmap(one)(keys)

    def error(out, size):
        """Relative, by medians, since a few long queries and keys would be most of a mean."""
        exact = np.asarray(dot_product_attention(size * query, size * key, value, is_causal=is_causal))
        return float(np.median(np.abs(np.asarray(out) - exact)) / np.median(np.abs(exact)))

    # Short vectors: sixteen times the features, a quarter of the error.
    few, many = (error(approximate(m, 0.3), 0.3) for m in (32, 512))
    assert few / many == pytest.approx(4, rel=0.25)
    assert many < 0.05
    # Longer ones: far from what attention that never looks at query and key would score, the mean.
    visible = np.tri(24) if is_causal else np.ones((24, 24))
    mean = np.einsum("ts,bsnv->btnv", visible / visible.sum(-1, keepdims=True), np.asarray(value))
    seeing, blind = error(approximate(512, 0.6), 0.6), error(mean, 0.6)
    assert seeing < 0.15
    assert seeing < blind / 2.5


@pytest.mark.parametrize("is_causal", [False, True])
def test_finds_the_key_that_matches(is_causal):
    # Key s points along axis s, and every query along axis 1: attention must go to key 1 for the most part.
    key = 3.0 * np.eye(4, H)[:, None, :]
    query = np.broadcast_to(key[1], (4, 1, H))
    value = np.eye(4)[:, None, :]
    projection = orthogonal_projection(jax.random.key(6), 2048, H)
    out = performer_attention(query, key, value, projection=projection, is_causal=is_causal)[:, 0]
    exact = dot_product_attention(query, key, value, is_causal=is_causal)[:, 0]
    np.testing.assert_allclose(out, exact, atol=0.06)
    assert (np.argmax(out, -1)[1:] == 1).all()
    assert out[-1, 1] > 0.8


def test_gradients_reach_query_key_and_projection():
    arrays = draw((1, 9, 2, H), (1, 9, 2, H), (1, 9, 2, 4))
    projection = orthogonal_projection(jax.random.key(7), 16, H)

    @jax.jit
    @partial(jax.grad, argnums=(0, 1, 3))
    def gradients(query, key, value, projection):
        return jnp.sum(performer_attention(query, key, value, projection=projection, is_causal=True) ** 2)

    d_query, d_key, d_projection = gradients(*arrays, projection)
    # The first query sees one key, whose weight is 1 whatever they are.
    assert (np.abs(d_query[:, 1:]).max(-1) > 1e-3).all()
    assert (np.abs(d_key).max(-1) > 1e-4).all()
    assert np.abs(d_projection).max() > 1e-3


@pytest.mark.parametrize("size", [30.0, 1000.0])
def test_large_keys_and_queries_stay_finite(size):
    query, key, value = draw((1, 40, 2, H), (1, 40, 2, H), (1, 40, 2, 4))
    projection = orthogonal_projection(jax.random.key(8), 16, H)

    def loss(*arrays):
        out = performer_attention(*arrays, projection=projection, is_causal=True, block_size=8)
        return jnp.sum(out**2), out

    # Features of the future are e^100000 times larger or smaller than those of the past.
    evaluated = jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))
    late = np.arange(40)[None, :, None, None] >= 20
    for rows in (late, ~late, True):
        large = np.where(rows, key * np.float32(size), key)
        gradients, out = evaluated(query, large, value)
        assert all(np.isfinite(x).all() for x in (out, *gradients))
        # The first query's one visible key has all the weight, however small its features are.
        np.testing.assert_allclose(out[:, 0], value[:, 0], rtol=1e-5)


def test_a_huge_future_leaves_the_past_alone():
    query, key, value = draw((1, 40, 2, H), (1, 40, 2, H), (1, 40, 2, 4))
    projection = orthogonal_projection(jax.random.key(9), 16, H)
    call = partial(performer_attention, projection=projection, is_causal=True, block_size=16)
    clean = call(query, key, value)
    for factor in (0.0, 1.001, 3.0, 1e4):
        future = call(*(changed(x, np.s_[:, 21:], x[:, 21:] * factor) for x in (query, key, value)))
        np.testing.assert_array_equal(future[:, :21], clean[:, :21])


def test_refusals(untyped):
    query, key, value = draw((2, 7, 4, H), (2, 7, 2, H), (2, 7, 2, 5))
    projection = orthogonal_projection(jax.random.key(0), 16, H)
    with pytest.raises(ValueError, match=r"projection must be \[M H\] with H 8, got \(16, 6\)"):
        performer_attention(query, key, value, projection=projection[:, :6])
    with pytest.raises(TypeError, match="projection bfloat16"):
        performer_attention(query, key, value, projection=projection.astype(jnp.bfloat16))
    with pytest.raises(ValueError, match=r"causal performer is self-attention.*\(2, 4, 5, 7\)"):
        performer_attention(query[:, :5], key, value, projection=projection, is_causal=True)


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_is_linear(is_causal):
    call = partial(performer_attention, projection=np.ones((16, 16)), is_causal=is_causal)
    assert memory_slope(call) <= 1.1
