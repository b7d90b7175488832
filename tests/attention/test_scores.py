import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import scores
from tests.attention import oracle

B, T, S, N, K, H, G, A = 3, 5, 7, 4, 2, 6, 9, 8  # G: the head dim of keys that are not queries' equals


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def test_by_hand():
    q, k = jnp.array([[[3.0, 4.0]]]), jnp.array([[[1.0, 0.0]], [[0.0, 2.0]]])
    assert scores.dot(q, k).tolist() == [[[3.0, 8.0]]]
    np.testing.assert_allclose(scores.scaled_dot(q, k), [[[3 / 2**0.5, 8 / 2**0.5]]], rtol=1e-6)
    np.testing.assert_allclose(scores.cosine(q, k), [[[0.6, 0.8]]], rtol=1e-6)
    # q W = (3 + 8, 4), so q W k = (11, 8)
    kernel = jnp.array([[[1.0, 0.0], [2.0, 1.0]]])
    assert scores.general(q, k, kernel).tolist() == [[[11.0, 8.0]]]
    # 2 tanh(q0 - 4 k0 + 1) - tanh(q1 - 2 k1): hidden (0, 4) and (4, 0)
    additive = scores.additive(
        q,
        k,
        query_kernel=jnp.eye(2)[None],
        key_kernel=jnp.array([[[-4.0, 0.0], [0.0, -2.0]]]),
        bias=jnp.array([[1.0, 0.0]]),
        vector=jnp.array([[2.0, -1.0]]),
    )
    np.testing.assert_allclose(additive, [[[-np.tanh(4.0), 2 * np.tanh(4.0)]]], rtol=1e-6)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine"])
def test_equals_oracle(name, x64):
    q, k = draw((B, T, N, H), (B, S, K, H))
    expected = oracle.attend(q, k, k, score=getattr(oracle, name), normalize=oracle.identity)[1]
    actual = getattr(scores, name)(jnp.asarray(q), jnp.asarray(k))
    assert actual.dtype == jnp.float64
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("general", {"kernel": (N, H, G)}),
        ("additive", {"query_kernel": (N, H, A), "key_kernel": (K, G, A), "bias": (N, A), "vector": (N, A)}),
    ],
)
def test_learned_equals_oracle(name, shapes, x64):
    q, k, *parameters = draw((B, T, N, H), (B, S, K, G), *shapes.values())
    score = getattr(oracle, name)(*parameters)
    expected = oracle.attend(q, k, k, score=score, normalize=oracle.identity)[1]
    arrays = dict(zip(shapes, map(jnp.asarray, parameters), strict=True))
    actual = getattr(scores, name)(jnp.asarray(q), jnp.asarray(k), **arrays)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_head_n_reads_key_head_n_over_group():
    # Key head m holds the number m in every feature; query head n asks which one it reads.
    key = jnp.broadcast_to(jnp.arange(3.0)[None, :, None], (1, 3, 1))
    assert scores.dot(jnp.ones((1, 6, 1)), key)[:, 0, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_half_precision_scores_are_float32():
    q, k = (jnp.asarray(x, jnp.bfloat16) for x in draw((2, 3, 4, H), (2, 5, 2, H)))
    wide = scores.scaled_dot(q.astype(jnp.float32), k.astype(jnp.float32))
    for score in (scores.dot, scores.scaled_dot, scores.cosine):
        assert score(q, k).dtype == jnp.float32
    # Products of bfloat16 numbers are exact in float32, so nothing but the sum may round.
    np.testing.assert_allclose(scores.scaled_dot(q, k), wide, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e30])
def test_cosine_of_any_length(size):
    q, k = size * jnp.array([[[3.0, 4.0]]]), jnp.array([[[0.0, 2.0]]])
    value, gradients = jax.value_and_grad(lambda q, k: scores.cosine(q, k)[0, 0, 0], (0, 1))(q, k)
    np.testing.assert_allclose(value, 0.8 if size else 0.0, rtol=1e-6)
    assert all(jnp.isfinite(g).all() for g in gradients)


def test_parameters_must_fit_the_heads(untyped):
    q, k = jnp.ones((B, T, N, H)), jnp.ones((B, S, K, G))
    with pytest.raises(ValueError, match=r"kernel .*\(4, 6, 9\).* got \(2, 6, 9\)"):
        scores.general(q, k, jnp.ones((K, H, G)))
    good = {
        "query_kernel": jnp.ones((N, H, A)),
        "key_kernel": jnp.ones((K, G, A)),
        "bias": jnp.ones((N, A)),
        "vector": jnp.ones((N, A)),
    }
    for name in good:
        wrong = jnp.ones((N + 1, *good[name].shape[1:]))
        with pytest.raises(ValueError, match=name):
            scores.additive(q, k, **good | {name: wrong})
    with pytest.raises(TypeError, match="kernel bfloat16"):
        scores.general(q, k, jnp.ones((N, H, G), jnp.bfloat16))


@pytest.mark.parametrize("score", [scores.dot, scores.scaled_dot, scores.cosine])
def test_head_dims_must_be_equal(score, untyped):
    with pytest.raises(ValueError, match=r"head dims .*\(5, 4, 6\).*\(7, 2, 9\)"):
        score(jnp.ones((T, N, H)), jnp.ones((S, K, G)))


def test_parameters_are_differentiated_through_a_partial(x64):
    q, k, kernel = map(jnp.asarray, draw((T, N, H), (S, K, G), (N, H, G)))

    def loss(score):
        return jnp.sum(score(q, k) ** 2)

    gradient = jax.grad(loss)(Partial(scores.general, kernel=kernel)).keywords["kernel"]
    expected = jax.grad(lambda w: jnp.sum(scores.general(q, k, w) ** 2))(kernel)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
