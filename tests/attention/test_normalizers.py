from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import normalizers

ALL = {
    "softmax": normalizers.softmax,
    "relu": normalizers.relu,
    "relu_divided": partial(normalizers.relu, divide=True),
    "identity": normalizers.identity,
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


@every
@pytest.mark.parametrize("garbage", [jnp.nan, jnp.inf, -jnp.inf, 1e9])
def test_masked_scores_are_unseen(normalize, garbage):
    mask = jnp.array([[[True, False, True], [False, False, False]]])
    clean = jnp.array([[[0.5, 0.0, 2.0], [0.0, 0.0, 0.0]]])
    dirty = jnp.where(mask, clean, garbage)
    np.testing.assert_array_equal(normalize(dirty, mask), normalize(clean, mask))
    assert (normalize(dirty, mask)[~mask] == 0).all()
    gradient = jax.grad(lambda s: jnp.sum(normalize(s, mask) ** 2))
    np.testing.assert_array_equal(gradient(dirty), gradient(clean))
    assert (gradient(dirty)[~mask] == 0).all()


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
    assert normalize(jnp.ones((2, 3, 0))).shape == (2, 3, 0)
    assert normalize(jnp.ones((2, 3, 0)), jnp.ones((1, 1, 0), bool)).shape == (2, 3, 0)


def test_softmax_is_shift_invariant():
    # Eighths, and at 1e7 whole numbers, are exact in float32.
    scores = jnp.round(8 * jax.random.normal(jax.random.key(0), (2, 3, 7))) / 8
    whole = jnp.round(scores)
    for shift in (-3.0, 100.0):
        np.testing.assert_array_equal(normalizers.softmax(scores + shift), normalizers.softmax(scores))
    for shift in (-1e7, 1e7):
        np.testing.assert_array_equal(normalizers.softmax(whole + shift), normalizers.softmax(whole))


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_saturated_softmax_has_finite_gradients(size):
    scores = size * jnp.array([[[1.0, -1.0, 0.5]]])
    jacobian = jax.jacrev(normalizers.softmax)(scores)
    np.testing.assert_allclose(normalizers.softmax(scores), [[[1, 0, 0]]], atol=1e-20)
    np.testing.assert_allclose(jacobian, np.zeros(jacobian.shape), atol=1e-20)


def test_softmax_jacobian(x64):
    # d w_i / d a_j = w_i (delta_ij - w_j)
    scores = jnp.array([[[0.3, -1.2, 2.0]]])
    w = np.asarray(normalizers.softmax(scores))[0, 0]
    expected = np.diag(w) - np.outer(w, w)
    for jacobian in (jax.jacfwd, jax.jacrev):
        actual = jacobian(normalizers.softmax)(scores)[0, 0, :, 0, 0, :]
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@every
def test_works_in_float32_at_least(normalize):
    assert normalize(jnp.ones((1, 2, 3), jnp.bfloat16)).dtype == jnp.float32


@every
def test_errors(normalize, untyped):
    scores = jnp.ones((2, 3, 4))
    with pytest.raises(ValueError, match=r"mask \(3, 4\) .* scores \(2, 3, 4\)"):
        normalize(scores, jnp.ones((3, 4), bool))
    with pytest.raises(ValueError, match=r"mask \(2, 2, 4\) .*\(2, 3, 4\)"):
        normalize(scores, jnp.ones((2, 2, 4), bool))
    with pytest.raises(TypeError, match="float32"):
        normalize(scores, jnp.ones((2, 3, 4)))
    with pytest.raises(TypeError, match="int32"):
        normalize(jnp.ones((2, 3, 4), jnp.int32))
