from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import pooling
from tests.attention.mechanism import changed, draw, parameter

B, S, D, A, R = 3, 7, 5, 6, 2
LENGTHS = jnp.array([4, 0, 7])
MASK = np.arange(S)[None] < LENGTHS[:, None]


def self_attentive(x, **options):
    kernels = (
        jnp.asarray(parameter(name, *shape), x.dtype) for name, shape in (("W1", (D, A)), ("W2", (A, R)))
    )
    return pooling.self_attentive(x, *kernels, **options)


POOLINGS = {
    "last": pooling.last,
    "mean": pooling.mean,
    "maximum": pooling.maximum,
    "self_attentive": self_attentive,
}
every = pytest.mark.parametrize("pool", POOLINGS.values(), ids=POOLINGS)


def oracle(pool, steps):
    """Of the steps `[n D]` of one sequence."""
    if pool is self_attentive:
        W1, W2 = parameter("W1", D, A), parameter("W2", A, R)
        out = np.zeros((R, D))
        for r in range(R):
            powers = [np.exp(np.tanh(x @ W1) @ W2[:, r]) for x in steps]
            out[r] = sum((p / sum(powers) * x for p, x in zip(powers, steps, strict=True)), np.zeros(D))
        return out
    if not len(steps):
        return np.zeros(D)
    return {pooling.last: steps[-1], pooling.mean: steps.mean(0), pooling.maximum: steps.max(0)}[pool]


@partial(jax.jit, static_argnums=0)
def output_and_gradient(pool, x, mask):
    out, pull = jax.vjp(lambda x: pool(x, mask=mask), x)
    return out, pull(jnp.sin(out + 1))[0]


def evaluate(pool, x, mask):
    return [np.asarray(x) for x in output_and_gradient(pool, x, mask)]


def test_by_hand():
    x = jnp.array([[1.0, 8.0], [3.0, 2.0], [5.0, -4.0]])
    for lengths, expected in (
        (2, ([3, 2], [2, 5], [3, 8])),
        (3, ([5, -4], [3, 2], [5, 8])),
        (0, ([0, 0],) * 3),
    ):
        for pool, out in zip((pooling.last, pooling.mean, pooling.maximum), expected, strict=True):
            assert pool(x, lengths=jnp.asarray(lengths)).tolist() == out
    # Steps that exist need not be the first ones; mask and lengths are both obeyed.
    mask = jnp.array([True, False, True])
    assert pooling.last(x, mask=mask).tolist() == [5, -4]
    assert pooling.last(x, mask=mask, lengths=jnp.asarray(2)).tolist() == [1, 8]
    assert pooling.mean(x, mask=mask).tolist() == [3, 2]


def test_the_largest_may_be_negative():
    assert pooling.maximum(-np.ones((3, 2)), lengths=jnp.asarray(2)).tolist() == [-1, -1]


def test_hops_by_hand():
    # Hidden tanh(x), so that scores are +-tanh(1) and the weights of hop 1 are 1 / (1 + exp(-+2 tanh(1))).
    x = jnp.array([[1.0], [-1.0]])
    out, weights = pooling.self_attentive(x, np.ones((1, 1)), jnp.array([[1.0, 0.0]]), return_weights=True)
    high = 1 / (1 + np.exp(-2 * np.tanh(1)))
    np.testing.assert_allclose(weights, [[high, 1 - high], [0.5, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(out, [[2 * high - 1], [0]], atol=1e-6)
    overlap = high**2 + (1 - high) ** 2
    np.testing.assert_allclose(pooling.penalty(weights), (overlap - 1) ** 2 + 2 * 0.25 + 0.25, rtol=1e-6)


def test_penalty():
    assert pooling.penalty(np.eye(2, 3)) == 0  # each hop on a step of its own
    assert pooling.penalty(jnp.array([[1.0, 0.0], [1.0, 0.0]])) == 2  # both on the same one
    assert pooling.penalty(np.full((1, 4), 0.25)) == (1 / 4 - 1) ** 2
    assert pooling.penalty(np.zeros((4, 2, 0))).tolist() == [2] * 4
    (weights,) = draw((B, R, S))
    expected = [np.linalg.norm(w @ w.T - np.eye(R)) ** 2 for w in np.asarray(weights, float)]
    np.testing.assert_allclose(pooling.penalty(weights), expected, rtol=1e-5)


@every
def test_equals_loops_in_float64(pool, x64):
    (x,) = draw((B, S, D), dtype=jnp.float64)
    gaps = jnp.asarray(np.random.default_rng(1).random((B, S)) < 0.5)
    for mask in (MASK, gaps, None):
        shown = np.ones((B, S), bool) if mask is None else np.asarray(mask)
        expected = [oracle(pool, np.asarray(row)[keep]) for row, keep in zip(x, shown, strict=True)]
        np.testing.assert_allclose(pool(x, mask=mask), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(pool(x, lengths=LENGTHS), pool(x, mask=MASK))


@every
def test_steps_that_do_not_exist_are_unseen_and_empty_sequences_give_0(pool):
    (x,) = draw((B, S, D))
    clean = evaluate(pool, x, MASK)
    for garbage in (np.nan, np.inf, -np.inf, 1e9):
        for a, e in zip(evaluate(pool, jnp.where(MASK[..., None], x, garbage), MASK), clean, strict=True):
            np.testing.assert_array_equal(a, e)
            assert np.isfinite(a).all()
    out, gradient = clean
    assert (out[1] == 0).all()
    assert (gradient[~np.asarray(MASK)] == 0).all()


@every
def test_nan_stays_in_its_sequence(pool):
    (x,) = draw((B, S, D))
    clean, dirty = (np.asarray(pool(x, mask=None)) for x in (x, changed(x, np.s_[1, -1], np.nan)))
    assert np.isnan(dirty[1]).all()
    np.testing.assert_array_equal(dirty[[0, 2]], clean[[0, 2]])


@every
def test_batches_of_any_shape(pool):
    (x,) = draw((B, S, D))
    whole = pool(x, mask=MASK)
    np.testing.assert_array_equal(pool(changed(x, np.s_[1:], 7.0), mask=MASK)[0], whole[0])
    np.testing.assert_allclose(pool(x[0], mask=MASK[0]), whole[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pool(x[None], mask=MASK[None])[0], whole, rtol=1e-5, atol=1e-6)
    mapped = jax.jit(jax.vmap(lambda x, mask: pool(x, mask=mask)))(x, MASK)
    np.testing.assert_allclose(mapped, whole, rtol=1e-5, atol=1e-6)


@every
def test_empty_and_single(pool):
    assert not pool(np.zeros((B, 0, D), np.float32)).any()
    (x,) = draw((B, 1, D))
    out = pool(x)
    np.testing.assert_allclose(out, np.broadcast_to(x[:, 0] if out.ndim == 2 else x, out.shape), rtol=1e-6)


@every
def test_bfloat16(pool):
    (x,) = draw((B, S, D), dtype=jnp.bfloat16)
    out = pool(x, mask=MASK)
    assert out.dtype == jnp.bfloat16
    exact = pool(x.astype(jnp.float32), mask=MASK)
    # One rounding, of the output
    np.testing.assert_allclose(out.astype(jnp.float32), exact, rtol=2**-8)


@every
def test_second_derivatives_are_symmetric_and_finite(pool, x64):
    x, *directions = draw(*[(B, S, D)] * 3, dtype=jnp.float64)

    @jax.jit
    def product(left, right):
        gradient = jax.grad(lambda x: jnp.sum(jnp.sin(pool(x, mask=MASK))))
        return jnp.sum(left * jax.jvp(gradient, (x,), (right,))[1])

    uHv, vHu = product(*directions), product(*reversed(directions))
    assert abs(uHv) > 1e-3
    np.testing.assert_allclose(uHv, vHu, rtol=1e-10)


@every
def test_exports_for_accelerators(pool):
    shapes = jax.ShapeDtypeStruct((B, S, D), jnp.float32), jax.ShapeDtypeStruct((B,), jnp.int32)
    program = jax.jit(lambda x, lengths: pool(x, lengths=lengths))
    exported = jax.export.export(program, platforms=("cuda", "tpu"))(*shapes)
    assert exported.platforms == ("cuda", "tpu")


@every
@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"mask": np.ones((B, S))}, TypeError, ["boolean", "float32"]),
        ({"mask": np.ones((B, S + 1), bool)}, ValueError, [(B, S + 1), (B, S)]),
        ({"mask": np.ones((B, 1), bool)}, ValueError, [(B, 1), (B, S)]),
        ({"lengths": np.ones(B)}, TypeError, ["integers", "float32"]),
        ({"lengths": np.ones(S, int)}, ValueError, [(S,), (B, S, D)]),
    ],
)
def test_wrong_masks_and_lengths_are_refused(pool, options, error, words, untyped):
    with pytest.raises(error) as caught:
        pool(np.ones((B, S, D), np.float32), **options)
    assert all(str(word) in str(caught.value) for word in words)


def test_what_does_not_fit_is_refused(untyped):
    x = np.ones((B, S, D))
    pool = partial(pooling.self_attentive, x)
    with pytest.raises(ValueError, match=r"\(3, 7, 5\).*\(6, 6\)"):
        pool(np.ones((A, A)), np.ones((A, R)))
    with pytest.raises(ValueError, match=r"hop_kernel .*\(6, 2\).*\(5, 2\)"):
        pool(np.ones((D, A)), np.ones((D, R)))
    with pytest.raises(TypeError, match="bfloat16"):
        pool(np.ones((D, A), jnp.bfloat16), np.ones((A, R)))
    with pytest.raises(TypeError, match="int32"):
        pooling.mean(x.astype(int))
    with pytest.raises(ValueError, match=r"\(7,\)"):
        pooling.last(np.ones(S))
