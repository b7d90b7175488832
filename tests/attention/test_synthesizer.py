from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import attend, masks, synthesizer
from tests.attention.mechanism import Sizes, draw

B, T, S, N, K, H, V = Sizes()


def test_by_hand():
    query, key = jnp.array([[[1.0, -2.0]]]), np.zeros((3, 1, 1))
    # relu(q + b1) = (1.5, 0), so (1.5, 1.5, -1.5) + b2
    dense = synthesizer.dense(
        query,
        key,
        hidden_kernel=np.eye(2)[None],
        hidden_bias=jnp.array([[0.5, 1.0]]),
        kernel=jnp.array([[[1.0, 1.0, -1.0], [7.0, 7.0, 7.0]]]),
        bias=jnp.array([[0.0, 1.0, 2.0]]),
    )
    assert dense.tolist() == [[[1.5, 2.5, 0.5]]]
    matrix = jnp.array([[[3.0, 1.0, 2.0]]])
    assert synthesizer.random(query, key, matrix).tolist() == matrix.tolist()
    factors = jnp.array([[[2.0, 1.0]]]), jnp.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    assert synthesizer.factorized_random(query, key, *factors).tolist() == [[[2.0, 1.0, 3.0]]]


def test_everything_that_attend_can_do():
    """Weights exist, so that a mask per query, a bias, dropout and the weights themselves do as well."""
    query, key, value, matrix, bias = draw(*Sizes().arrays, (N, T, S), (1, 1, 1, S))
    mask = masks.causal(T, S, 1)
    call = partial(attend, score=Partial(synthesizer.random, matrix=matrix), mask=mask, bias=bias)
    out, weights = call(query, key, value, return_weights=True)
    expected = jax.nn.softmax(jnp.where(mask, matrix[None] + bias, -np.inf))
    np.testing.assert_allclose(weights, np.broadcast_to(expected, weights.shape), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(out, call(7 * query, 7 * key, value))
    dropped = call(query, key, value, dropout_rate=0.5, dropout_key=jax.random.key(0))
    assert np.abs(dropped - out).max() > 0.1


def test_factors_are_a_matrix_of_low_rank(x64):
    query, key, left, right = draw((B, T, N, H), (B, S, K, H), (N, T, 2), (N, S, 2), dtype=jnp.float64)
    whole = synthesizer.random(query, key, left @ jnp.swapaxes(right, 1, 2))
    np.testing.assert_allclose(synthesizer.factorized_random(query, key, left, right), whole, rtol=1e-12)


@pytest.mark.parametrize(
    "name, shapes, words",
    [
        ("random", [(N, S, T)], "matrix"),
        ("random", [(T, S)], "matrix"),
        ("factorized_random", [(N, T, 2), (N, S, 3)], "key_factor"),
        ("factorized_random", [(N, S, 2), (N, S, 2)], "query_factor"),
        ("dense", [(N, H, 9), (N, 9), (N, 9, T), (N, T)], "kernel"),
        ("dense", [(K, H, 9), (N, 9), (N, 9, S), (N, S)], "hidden_kernel"),
    ],
)
def test_parameters_of_another_length_are_refused(name, shapes, words, untyped):
    query, key, *parameters = draw((B, T, N, H), (B, S, K, H), *shapes)
    with pytest.raises(ValueError, match=words):
        getattr(synthesizer, name)(query, key, *parameters)
