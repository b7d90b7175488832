import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import scores
from tests.attention import oracle

B, T, S, N, K, H, G, A = 3, 5, 7, 4, 2, 6, 9, 8  # G: the head dim of keys that are not queries' equals
SAME_WIDTH = [scores.dot, scores.scaled_dot, scores.cosine, scores.negative_squared_distance]


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
    # The kernel's columns are the scores of key 0, 3 - 4, and key 1, 2 * 4
    kernel = jnp.array([[[1.0, 0.0], [-1.0, 2.0]]])
    assert scores.location(q, k, kernel).tolist() == [[[-1.0, 8.0]]]
    # Differences (2, 4) and (3, 2)
    distances = scores.negative_squared_distance(q, k)
    np.testing.assert_allclose(distances, [[[-20 / 2**0.5, -13 / 2**0.5]]], rtol=1e-6)
    # 2 tanh(q0 - 4 k0 + 1) - tanh(q1 - 2 k1): hidden (0, 4) and (4, 0)
    additive = scores.additive(
        q,
        k,
        query_kernel=np.eye(2)[None],
        key_kernel=jnp.array([[[-4.0, 0.0], [0.0, -2.0]]]),
        bias=jnp.array([[1.0, 0.0]]),
        vector=jnp.array([[2.0, -1.0]]),
    )
    np.testing.assert_allclose(additive, [[[-np.tanh(4.0), 2 * np.tanh(4.0)]]], rtol=1e-6)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "negative_squared_distance"])
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
        ("concat", {"kernel": (N, H + G, A), "vector": (N, A)}),
    ],
)
def test_learned_equals_oracle(name, shapes, x64):
    q, k, *parameters = draw((B, T, N, H), (B, S, K, G), *shapes.values())
    score = getattr(oracle, name)(*parameters)
    expected = oracle.attend(q, k, k, score=score, normalize=oracle.identity)[1]
    arrays = dict(zip(shapes, map(jnp.asarray, parameters), strict=True))
    actual = getattr(scores, name)(jnp.asarray(q), jnp.asarray(k), **arrays)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("general", [(N, H, H)]),
        ("additive", [(N, H, A), (K, H, A), (N, A), (N, A)]),
        ("concat", [(N, H + H, A), (N, A)]),
        ("location", [(N, H, S)]),
    ],
)
def test_half_precision_alone(name, shapes):
    # Called by itself a score meets the compiler's products of two bfloat16 with a float32 result,
    # which on CPU exist for some layouts only.
    arrays = [jnp.asarray(x, jnp.bfloat16) for x in draw((B, T, N, H), (B, S, K, H), *shapes)]
    found = getattr(scores, name)(*arrays)
    assert found.dtype == jnp.float32
    wide = getattr(scores, name)(*(x.astype(jnp.float32) for x in arrays))
    np.testing.assert_allclose(found, wide, rtol=1e-4, atol=1e-4)


def test_concat_is_additive_with_a_split_kernel():
    # One key head for each query head, so that both have as many kernels.
    arrays = draw((B, T, N, H), (B, S, N, G), (N, H + G, A), (N, A))
    q, k, kernel, vector = (jnp.asarray(x, jnp.float32) for x in arrays)
    split = {"query_kernel": kernel[:, :H], "key_kernel": kernel[:, H:]}
    expected = scores.additive(q, k, **split, bias=np.zeros_like(vector), vector=vector)
    np.testing.assert_allclose(scores.concat(q, k, kernel, vector), expected, rtol=1e-5, atol=1e-5)


def test_location_sees_of_the_keys_only_how_many_they_are(untyped):
    q, k, other, kernel = map(jnp.asarray, draw((B, T, N, H), (B, S, K, G), (B, S, K, H), (N, H, S)))
    found = scores.location(q, k, kernel)
    np.testing.assert_array_equal(found, scores.location(q, np.full_like(other, np.nan), kernel))
    np.testing.assert_allclose(found, np.einsum("btnh,nhs->bnts", q, kernel), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"kernel .*\(4, 6, 6\) for .* got \(4, 6, 7\)"):
        scores.location(q, k[:, :-1], kernel)


def differences(q, k):
    """[T S N H]"""
    return q[:, None] - np.repeat(k, N // K, axis=1)[None]


def test_distance_of_near_points_far_from_the_origin():
    # Whole numbers near 10^4: their squares are not exact in float32, their differences are.
    q, k = (10_000 + np.round(3 * x) for x in draw((T, N, H), (S, K, H)))
    expected = -np.einsum("tsnh->nts", differences(q, k) ** 2) / H**0.5
    q, k = (jnp.asarray(x, jnp.float32) for x in (q, k))
    np.testing.assert_allclose(scores.negative_squared_distance(q, k), expected, rtol=1e-6)
    equal = scores.negative_squared_distance(q, q)
    assert (np.diagonal(equal, axis1=-2, axis2=-1) == 0).all()
    assert (equal <= 0).all()


def test_gradient_of_the_distance(x64):
    q, k, form = draw((T, N, H), (S, K, H), (N, T, S))
    pulls = -2 / H**0.5 * np.einsum("nts,tsnh->tsnh", form, differences(q, k))

    def loss(q, k):
        return jnp.sum(form * scores.negative_squared_distance(q, k))

    d_query, d_key = jax.jit(jax.grad(loss, (0, 1)))(q, k)
    np.testing.assert_allclose(d_query, pulls.sum(1), rtol=1e-12, atol=1e-12)
    of_group = pulls.sum(0).reshape(S, K, N // K, H).sum(2)
    np.testing.assert_allclose(d_key, -of_group, rtol=1e-12, atol=1e-12)
    at_equal = jax.jit(jax.grad(lambda q: scores.negative_squared_distance(q, q).sum()))(np.ones((1, 1, H)))
    assert (at_equal == 0).all()


def test_distance_stores_no_differences():
    L, width = 128, 64
    shape = jax.ShapeDtypeStruct((L, 1, width), jnp.float32)

    def loss(q, k):
        return jnp.sum(jnp.sin(scores.negative_squared_distance(q, k)))

    program = jax.jit(jax.grad(loss, (0, 1))).lower(shape, shape).compile()
    assert program.memory_analysis().temp_size_in_bytes < 8 * L * L * 4


def test_head_n_reads_key_head_n_over_group():
    # Key head m holds the number m in every feature; query head n asks which one it reads.
    key = np.broadcast_to(np.arange(3.0)[None, :, None], (1, 3, 1))
    assert scores.dot(np.ones((1, 6, 1)), key)[:, 0, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_half_precision_scores_are_float32():
    q, k = (jnp.asarray(x, jnp.bfloat16) for x in draw((2, 3, 4, H), (2, 5, 2, H)))
    wide = scores.scaled_dot(q.astype(jnp.float32), k.astype(jnp.float32))
    for score in SAME_WIDTH:
        assert score(q, k).dtype == jnp.float32
    # Products of bfloat16 numbers are exact in float32, so nothing but the sum may round.
    np.testing.assert_allclose(scores.scaled_dot(q, k), wide, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e30])
def test_cosine_of_any_length(size):
    q, k = size * jnp.array([[[3.0, 4.0]]]), jnp.array([[[0.0, 2.0]]])
    of = jax.jit(jax.value_and_grad(lambda q, k: scores.cosine(q, k)[0, 0, 0], (0, 1)))
    value, gradients = of(q, k)
    np.testing.assert_allclose(value, 0.8 if size else 0.0, rtol=1e-6)
    assert all(np.isfinite(g).all() for g in gradients)


def test_parameters_must_fit_the_heads(untyped):
    q, k = np.ones((B, T, N, H)), np.ones((B, S, K, G))
    with pytest.raises(ValueError, match=r"kernel .*\(4, 6, 9\).* got \(2, 6, 9\)"):
        scores.general(q, k, np.ones((K, H, G)))
    good = {
        "query_kernel": np.ones((N, H, A)),
        "key_kernel": np.ones((K, G, A)),
        "bias": np.ones((N, A)),
        "vector": np.ones((N, A)),
    }
    for name in good:
        wrong = np.ones((N + 1, *good[name].shape[1:]))
        with pytest.raises(ValueError, match=name):
            scores.additive(q, k, **good | {name: wrong})
    with pytest.raises(ValueError, match=r"kernel \[N Hq\+Hk A\] .*\(4, 15, 8\).* got \(4, 14, 8\)"):
        scores.concat(q, k, np.ones((N, H + G - 1, A)), np.ones((N, A)))
    with pytest.raises(ValueError, match=r"vector .*\(4, 8\).* got \(2, 8\)"):
        scores.concat(q, k, np.ones((N, H + G, A)), np.ones((K, A)))
    with pytest.raises(TypeError, match="kernel bfloat16"):
        scores.location(q, k, np.ones((N, H, S), jnp.bfloat16))
    with pytest.raises(TypeError, match="kernel bfloat16"):
        scores.general(q, k, np.ones((N, H, G), jnp.bfloat16))


@pytest.mark.parametrize("score", SAME_WIDTH)
def test_head_dims_must_be_equal(score, untyped):
    with pytest.raises(ValueError, match=r"head dims .*\(5, 4, 6\).*\(7, 2, 9\)"):
        score(np.ones((T, N, H)), np.ones((S, K, G)))


def test_parameters_are_differentiated_through_a_partial(x64):
    q, k, kernel = map(jnp.asarray, draw((T, N, H), (S, K, G), (N, H, G)))

    def loss(score):
        return jnp.sum(score(q, k) ** 2)

    gradient = jax.jit(jax.grad(loss))(Partial(scores.general, kernel=kernel)).keywords["kernel"]
    expected = jax.jit(jax.grad(lambda w: jnp.sum(scores.general(q, k, w) ** 2)))(kernel)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
