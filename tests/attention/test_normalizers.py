from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import attend, normalizers
from tests.attention import oracle

ALL = {
    "softmax": normalizers.softmax,
    "relu": normalizers.relu,
    "relu_divided": partial(normalizers.relu, divide=True),
    "identity": normalizers.identity,
    "sigmoid": normalizers.sigmoid,
    "sparsemax": normalizers.sparsemax,
    "entmax": partial(normalizers.entmax, alpha=1.3),
    "top_k": partial(normalizers.top_k, k=2),
    "hardmax": normalizers.hardmax,
    "gumbel": partial(normalizers.gumbel_softmax, key=jax.random.key(0), temperature=0.5),
    "gumbel_hard": partial(normalizers.gumbel_softmax, key=jax.random.key(0), hard=True),
}
every = pytest.mark.parametrize("normalize", ALL.values(), ids=ALL)


def test_by_hand():
    logs = jnp.log(jnp.array([[[1.0, 2.0, 5.0]]]))
    mask = jnp.array([[[True, False, True]]])
    np.testing.assert_allclose(normalizers.softmax(logs), [[[1 / 8, 2 / 8, 5 / 8]]], rtol=1e-6)
    np.testing.assert_allclose(normalizers.softmax(logs, mask), [[[1 / 6, 0, 5 / 6]]], rtol=1e-6)
    scores = jnp.array([[[-1.0, 2.0, 4.0]]])
    assert normalizers.relu(scores).tolist() == [[[0, 2, 4]]]
    assert normalizers.relu(scores, mask).tolist() == [[[0, 0, 4]]]
    np.testing.assert_allclose(normalizers.relu(scores, divide=True), [[[0, 2 / 3, 4 / 3]]], rtol=1e-6)
    assert normalizers.relu(scores, mask, divide=True).tolist() == [[[0, 0, 2]]]
    assert normalizers.identity(scores, mask).tolist() == [[[-1, 0, 4]]]


def test_sparse_ones_by_hand():
    def rows(function, scores, mask=None, **options):
        mask = None if mask is None else jnp.array([[mask]], bool)
        return function(jnp.array([[scores]]), mask, **options)[0, 0].tolist()

    # The two that stay sum to 1.5, so each gives up 1/4.
    assert rows(normalizers.sparsemax, [1.0, 0.5, -1.0]) == [0.75, 0.25, 0]
    assert rows(normalizers.sparsemax, [1.0, 0.5, -1.0], [0, 1, 1]) == [0, 1, 0]
    # At alpha 3/2 weights are squares: of 0.8 and 0.6, half the scores, when the threshold is 0.
    np.testing.assert_allclose(rows(normalizers.entmax, [1.6, 1.2, 0.0]), [0.64, 0.36, 0], atol=1e-6)
    logs = np.log([1.0, 2.0, 5.0]).tolist()
    np.testing.assert_allclose(rows(normalizers.top_k, logs, k=2), [0, 2 / 7, 5 / 7], rtol=1e-6)
    np.testing.assert_allclose(rows(normalizers.top_k, logs, [1, 1, 0], k=2), [1 / 3, 2 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(rows(normalizers.top_k, logs, k=9), [1 / 8, 2 / 8, 5 / 8], rtol=1e-6)
    # Of equals the first
    assert rows(normalizers.top_k, [1.0, 1.0, 1.0], k=2) == [0.5, 0.5, 0]
    assert rows(normalizers.hardmax, [1.0, 3.0, 3.0]) == [0, 1, 0]
    assert rows(normalizers.hardmax, [1.0, 3.0, 3.0], [1, 0, 0]) == [1, 0, 0]
    np.testing.assert_allclose(rows(normalizers.sigmoid, logs[:2], [1, 1]), [1 / 2, 2 / 3], rtol=1e-6)


@every
def test_masked_scores_are_unseen(normalize):
    mask = jnp.array([[[True, False, True], [False, False, False]]])
    clean = np.array([[[0.5, 0.0, 2.0], [0.0, 0.0, 0.0]]], np.float32)

    @jax.jit
    @partial(jax.grad, has_aux=True)
    def gradient_and_weights(scores):
        weights = normalize(scores, mask)
        return jnp.sum(weights**2), weights

    expected = gradient_and_weights(clean)
    for result in expected:
        assert (np.asarray(result)[~np.asarray(mask)] == 0).all()
        assert np.isfinite(result).all()
    for garbage in (np.nan, np.inf, -np.inf, 1e9):
        found = gradient_and_weights(np.where(mask, clean, np.float32(garbage)))
        np.testing.assert_array_equal(found, expected)


@every
def test_mask_may_be_narrow(normalize):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
    narrow = [rng.random(shape) < 0.6 for shape in [(2, 1, 1, 5), (1, 3, 4, 1), (1, 1, 1, 1)]]
    wide = [np.broadcast_to(mask, scores.shape) for mask in narrow]
    program = jax.jit(lambda scores, masks: [normalize(scores, mask) for mask in masks])
    for a, b in zip(program(scores, narrow), program(scores, wide), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@every
def test_no_keys(normalize):
    nothing, mask = jnp.asarray(np.ones((2, 3, 0))), jnp.asarray(np.ones((1, 1, 0), bool))
    for weights in jax.jit(lambda: (normalize(nothing), normalize(nothing, mask)))():
        assert weights.shape == (2, 3, 0)


def test_softmax_is_shift_invariant():
    # Eighths, and at 1e7 whole numbers, are exact in float32.
    scores = np.round(8 * np.random.default_rng(0).normal(size=(2, 3, 7)).astype(np.float32)) / 8
    whole = np.round(scores)
    for shift in (-3.0, 100.0):
        np.testing.assert_array_equal(normalizers.softmax(scores + shift), normalizers.softmax(scores))
    for shift in (-1e7, 1e7):
        np.testing.assert_array_equal(normalizers.softmax(whole + shift), normalizers.softmax(whole))


def test_saturated_softmax_has_finite_gradients():
    program = jax.jit(lambda scores: (normalizers.softmax(scores), jax.jacrev(normalizers.softmax)(scores)))
    for size in (1e2, 1e4, 1e30):
        weights, jacobian = program(np.float32(size) * np.array([[[1.0, -1.0, 0.5]]], np.float32))
        np.testing.assert_allclose(weights, [[[1, 0, 0]]], atol=1e-20)
        np.testing.assert_allclose(jacobian, np.zeros(jacobian.shape), atol=1e-20)


def test_softmax_jacobian(x64):
    # d w_i / d a_j = w_i (delta_ij - w_j)
    scores = np.array([[[0.3, -1.2, 2.0]]])
    w = oracle.softmax(scores[0, 0])
    expected = np.diag(w) - np.outer(w, w)
    both = jax.jit(lambda scores: [of(normalizers.softmax)(scores) for of in (jax.jacfwd, jax.jacrev)])
    for jacobian in both(scores):
        np.testing.assert_allclose(np.asarray(jacobian)[0, 0, :, 0, 0, :], expected, rtol=1e-12)


@every
def test_works_in_float32_at_least(normalize):
    assert jax.eval_shape(normalize, jax.ShapeDtypeStruct((1, 2, 3), jnp.bfloat16)).dtype == jnp.float32


@every
def test_errors(normalize, untyped):
    scores = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match=r"mask \(3, 4\) .* scores \(2, 3, 4\)"):
        normalize(scores, np.ones((3, 4), bool))
    with pytest.raises(ValueError, match=r"mask \(2, 2, 4\) .*\(2, 3, 4\)"):
        normalize(scores, np.ones((2, 2, 4), bool))
    with pytest.raises(TypeError, match="float32"):
        normalize(scores, np.ones((2, 3, 4)))
    with pytest.raises(TypeError, match="int32"):
        normalize(np.ones((2, 3, 4), jnp.int32))


@every
def test_nan_is_not_hidden(normalize):
    scores = jnp.array([[[0.5, np.nan, 2.0], [0.0, 1.0, 3.0]]])
    weights = np.asarray(normalize(scores))
    assert np.isnan(weights[0, 0]).any()
    assert np.isfinite(weights[0, 1]).all()


SPARSE = {"sparsemax": normalizers.sparsemax} | {
    f"entmax-{alpha}": partial(normalizers.entmax, alpha=alpha) for alpha in (1.1, 1.5, 2)
}
sparse = pytest.mark.parametrize("normalize", SPARSE.values(), ids=SPARSE)


def by_sort(scores, power):
    """Exact sparsemax (power 1) or entmax at 3/2 (power 2) of one row, from all possible supports."""
    scores = np.asarray(scores, np.float64) / power
    ordered = np.sort(scores)[::-1]
    sizes = np.arange(1, len(scores) + 1)
    mean, square = np.cumsum(ordered) / sizes, np.cumsum(ordered**2) / sizes
    spread = np.maximum(1 / sizes - (square - mean**2), 0) ** 0.5 if power == 2 else 1 / sizes
    thresholds = mean - spread
    return np.maximum(scores - thresholds[np.sum(thresholds <= ordered) - 1], 0) ** power


@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 30.0])
def test_sparsemax_and_entmax_equal_their_closed_forms(scale, x64):
    scores = scale * np.random.default_rng(0).normal(size=(1, 3, 500))
    for alpha, power in ((2, 1), (1.5, 2)):
        expected = [[by_sort(row, power) for row in scores[0]]]
        weights = normalizers.entmax(jnp.asarray(scores), alpha=alpha)
        np.testing.assert_allclose(weights, expected, rtol=1e-11, atol=1e-12)
    expected = [[by_sort(row, 1) for row in scores[0]]]
    np.testing.assert_allclose(normalizers.sparsemax(jnp.asarray(scores)), expected, rtol=1e-11, atol=1e-12)


def test_many_keys_in_float32():
    scores = 0.5 * np.random.default_rng(0).normal(size=(1, 2, 30_000)).astype(np.float32)
    for alpha in (1.0, 1.2, 1.5, 2.0):
        normalize = oracle.softmax if alpha == 1 else partial(oracle.entmax, alpha=alpha)
        weights = normalizers.entmax(jnp.asarray(scores), alpha=alpha)
        expected = [normalize(row.astype(float)) for row in scores[0]]
        np.testing.assert_allclose(weights[0], expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(weights.sum(-1), [[1, 1]], rtol=1e-5)


def test_entmax_ends_in_softmax_and_sparsemax(x64):
    scores = jnp.asarray(2 * np.random.default_rng(0).normal(size=(2, 3, 9)))

    def all_of(normalize):
        gradient = jax.grad(lambda x: jnp.sum(jnp.sin(3 * normalize(x))))
        return normalize(scores), *jax.jvp(gradient, (scores,), (jnp.cos(scores),))

    entmax = jax.jit(lambda alpha: all_of(partial(normalizers.entmax, alpha=alpha)))
    for alpha, end in ((1.0, normalizers.softmax), (2.0, normalizers.sparsemax)):
        for a, e in zip(entmax(alpha), jax.jit(partial(all_of, end))(), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-11, atol=1e-12)
    near = normalizers.entmax(scores, alpha=1 + 1e-6)
    np.testing.assert_allclose(near, normalizers.softmax(scores), atol=1e-5)


def test_derivatives_of_entmax_in_scores_and_alpha(x64):
    scores, form, direction = np.random.default_rng(0).normal(size=(3, 2, 3, 6))

    def loss(scores, alpha):
        return jnp.sum(form * jnp.sin(3 * normalizers.entmax(scores, alpha=alpha)))

    @jax.jit
    def derivatives(alpha, step):
        point, towards = (scores + step * direction, alpha + step), (direction, 1.0)
        first_and_second = jax.jvp(lambda *a: jax.jvp(loss, a, towards), point, towards)
        return first_and_second, jax.grad(loss, (0, 1))(*point)

    for alpha in (1.001, 1.2, 1.5, 1.75, 1.95):
        ((_, first), (tangent, second)), (d_scores, d_alpha) = derivatives(alpha, 0.0)
        ((ahead, first_ahead), _), _ = derivatives(alpha, 1e-5)
        ((behind, first_behind), _), _ = derivatives(alpha, -1e-5)
        np.testing.assert_allclose(tangent, first, rtol=1e-12)
        np.testing.assert_allclose(first, (ahead - behind) / 2e-5, rtol=1e-6)
        np.testing.assert_allclose(second, (first_ahead - first_behind) / 2e-5, rtol=1e-5)
        np.testing.assert_allclose(np.sum(d_scores * direction) + d_alpha, first, rtol=1e-12)


def test_gradient_in_alpha_keeps_its_digits_near_softmax():
    scores = np.random.default_rng(0).normal(size=(1, 3, 40)).astype(np.float32)

    @jax.jit
    @jax.grad
    def gradient(alpha, scores):
        return jnp.sum(normalizers.entmax(scores, alpha=alpha) ** 2)

    for alpha in (1.0, 1 + 2**-20, 1 + 2**-10, 1.25, 1.5, 2.0):
        single = gradient(np.float32(alpha), scores)
        with jax.enable_x64(True):
            np.testing.assert_allclose(single, gradient(alpha, scores.astype(float)), rtol=1e-4)


def test_every_head_may_have_its_alpha(x64):
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=s) for s in [(2, 5, 3, 6), (2, 7, 3, 6), (2, 7, 3, 4)])
    alpha = np.array([1.0, 1.4, 2.0]).reshape(1, 3, 1, 1)

    @jax.jit
    def call(alpha):
        return attend(query, key, value, normalize=Partial(normalizers.entmax, alpha=alpha))

    whole = np.asarray(call(alpha))
    for n in range(3):
        alone = np.asarray(call(np.broadcast_to(alpha[:, n : n + 1], alpha.shape)))
        np.testing.assert_allclose(whole[:, :, n], alone[:, :, n], rtol=1e-11)
    jacobian = np.asarray(jax.jit(jax.jacrev(lambda a: jnp.sum(call(a) ** 2, (0, 1, 3))))(alpha))
    one, other = jacobian[:2, 0, :, 0, 0]
    assert one[0] * other[1] != 0
    assert (one[1:] == 0).all()


@sparse
def test_masked_keys_might_as_well_not_be_there(normalize):
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 6)))
    mask = jnp.asarray(np.arange(6) < 4).reshape(1, 1, 6)
    masked, alone = jax.jit(lambda: (normalize(scores, mask)[..., :4], normalize(scores[..., :4])))()
    np.testing.assert_allclose(masked, alone, atol=1e-6)


@sparse
def test_saturated_sparse_ones_have_finite_gradients(normalize):
    program = jax.jit(lambda scores: (normalize(scores), jax.jacrev(normalize)(scores)))
    for size in (1e4, 1e30):
        weights, jacobian = program(np.float32(size) * np.array([[[1.0, -1.0, 0.5]]], np.float32))
        assert weights.tolist() == [[[1, 0, 0]]]
        np.testing.assert_array_equal(jacobian, np.zeros((1, 1, 3, 1, 1, 3)))


@sparse
def test_equal_scores_share_alike(normalize):
    S = 100_000
    weights = normalize(jnp.asarray(np.full((1, 1, S), 7.0)))
    np.testing.assert_allclose(weights, np.full((1, 1, S), 1 / S), rtol=1e-5)


def test_hardmax_has_no_gradient():
    gradient = jax.jit(jax.grad(lambda s: jnp.sum(normalizers.hardmax(s) ** 2)))(np.array([[[1.0, 3.0]]]))
    assert gradient.tolist() == [[[0, 0]]]


def test_gumbel_draws_with_the_probabilities_of_softmax():
    logs = jnp.asarray(np.broadcast_to(np.log([1.0, 2.0, 5.0]), (1, 20_000, 3)))
    draw = partial(normalizers.gumbel_softmax, logs, key=jax.random.key(1))
    hard = np.asarray(draw(hard=True))
    assert set(np.unique(hard)) == {0, 1}
    # The largest standard deviation of a share of 20,000 is 0.0035.
    np.testing.assert_allclose(hard[0].mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.014)
    cold, warm, hot = (draw(temperature=t) for t in (0.01, 1, 100.0))
    np.testing.assert_array_equal(np.argmax(warm, -1), np.argmax(hard, -1))
    assert np.abs(cold - hard).mean() < 0.02
    assert np.abs(hot - 1 / 3).mean() < 0.02
    other = normalizers.gumbel_softmax(logs, key=jax.random.key(2))
    assert (np.argmax(other, -1) != np.argmax(warm, -1)).mean() > 0.3


def test_straight_through_has_the_gradient_of_the_soft_weights():
    scores = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    form = np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4)

    def gradients(hard):
        def loss(scores, temperature):
            options = {"key": jax.random.key(0), "temperature": temperature, "hard": hard}
            return jnp.sum(form * normalizers.gumbel_softmax(scores, **options))

        return jax.jit(jax.grad(loss, (0, 1)))(scores, 0.5)

    for a, e in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_array_equal(a, e)
        assert (a != 0).any()


def test_options_out_of_range(untyped):
    scores = np.ones((2, 3, 4))
    for alpha in (0.99, 2.01, float("nan"), jnp.array(3.0)):
        with pytest.raises(ValueError, match=r"alpha must be in \[1, 2\], got"):
            normalizers.entmax(scores, alpha=alpha)
    for shape in ((3,), (1, 1, 4), (1, 2, 1)):
        with pytest.raises(ValueError, match=r"alpha \(.*\) must .* \(2, 3, 1\)"):
            normalizers.entmax(scores, alpha=np.full(shape, 1.5))
    for k in (0, -1):
        with pytest.raises(ValueError, match=f"k must be at least 1, got {k}"):
            normalizers.top_k(scores, k=k)
    for k in (True, 1.0):
        with pytest.raises(TypeError, match=f"k must be an integer, got {k}"):
            normalizers.top_k(scores, k=k)
    noise = jax.random.key(0)
    for temperature in (0.0, -1):
        with pytest.raises(ValueError, match=f"temperature must be above 0, got {temperature}"):
            normalizers.gumbel_softmax(scores, key=noise, temperature=temperature)
    # Where the value is known too late for an error, it is not hidden either.
    late = jax.jit(
        lambda x: (
            normalizers.entmax(scores, alpha=x + 3),
            normalizers.gumbel_softmax(scores, key=noise, temperature=x - 1),
        )
    )
    assert all(np.isnan(weights).all() for weights in late(0.0))
