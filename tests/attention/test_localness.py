from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attention
from attention import localness, masks

B, T, S, N, K, H, A = 3, 5, 7, 4, 2, 6, 8


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape)) for shape in shapes]


def predicted(x, kernel, vector, length):
    """S sigmoid(v . tanh(W x)), one query and head at a time."""
    out = np.zeros((B, N, x.shape[1]))
    for b, n, t in np.ndindex(*out.shape):
        out[b, n, t] = length[b] / (1 + np.exp(-vector[n] @ np.tanh(x[b, t, n] @ kernel[n])))
    return out


def bump(centre, window):
    """-(s - P)^2 / (2 sigma^2) with sigma = D / 2."""
    sigma = np.broadcast_to(window, centre.shape) / 2
    return np.stack([-((s - centre) ** 2) / (2 * sigma**2) for s in range(S)], axis=-1)


def test_gaussian_by_hand():
    # sigma = 2, so a distance of 2 makes -1/2, and a distance of 4 makes -2.
    bias = localness.gaussian(jnp.array([[2.0]]), jnp.array([[4.0]]), 7)
    np.testing.assert_allclose(bias, [[[-1 / 2, -1 / 8, 0, -1 / 8, -1 / 2, -9 / 8, -2]]], rtol=1e-6)


def test_centred_by_hand():
    bias = localness.centred(2, 4, 1, window=2.0)
    np.testing.assert_array_equal(bias, [[[[-0.5, 0, -0.5, -2], [-2, -0.5, 0, -0.5]]]])
    rows = jax.jit(lambda offset: localness.centred(2, 4, offset, window=2.0))(jnp.array([0, 1]))
    np.testing.assert_array_equal(rows, [[[[0, -0.5, -2, -4.5], [-0.5, 0, -0.5, -2]]], bias[0]])
    per_head = localness.centred(2, 4, 1, window=jnp.array([2.0, 4.0]).reshape(2, 1), batch_dims=0)
    np.testing.assert_array_equal(per_head, [bias[0, 0], bias[0, 0] / 4])


def test_favours_the_neighbourhood():
    # Of equal scores the weights are a Gaussian, whose spread is half the window.
    zeros = jnp.zeros((41, 1, 1))
    bias = localness.centred(41, window=6.0, batch_dims=0)
    _, weights = attention.attend(zeros, zeros, zeros, bias=bias, return_weights=True)
    np.testing.assert_allclose(weights[0, 20] @ (jnp.arange(41.0) - 20) ** 2, 3.0**2, rtol=1e-3)


def test_windows_equal_their_formulas(x64):
    query, key, W, u, v, M = draw((B, T, N, H), (B, S, K, H), (N, H, A), (N, A), (N, A), (N, H, A))
    q, k, *_ = (np.asarray(x) for x in (query, key))
    for lengths in (None, jnp.array([S, 4, 1])):
        true = [S] * B if lengths is None else lengths.tolist()
        centre = predicted(q, W, u, true)
        common = {"kernel": W, "centre_vector": u, "lengths": lengths}

        fixed = localness.fixed_window(query, S, window=3.0, **common)
        np.testing.assert_allclose(fixed, bump(centre, 3.0), rtol=1e-12)

        of_query = localness.query_window(query, S, window_vector=v, **common)
        np.testing.assert_allclose(of_query, bump(centre, predicted(q, W, v, true)), rtol=1e-10)

        mean = np.stack([k[b, : true[b]].mean(0) for b in range(B)])[:, None].repeat(N // K, axis=2)
        window = predicted(mean, M, v, true)
        assert window.shape == (B, N, 1)
        of_layer = localness.layer_window(query, key, window_kernel=M, window_vector=v, **common)
        np.testing.assert_allclose(of_layer, bump(centre, window), rtol=1e-10)


def test_keys_after_the_end_do_not_make_the_window():
    query, key, W, u, v = (
        x.astype(jnp.float32) for x in draw((2, T, N, H), (2, S, K, H), (N, H, A), (N, A), (N, A))
    )
    made = {"kernel": W, "centre_vector": u, "window_kernel": W, "window_vector": v}

    @jax.jit
    def bias_and_gradients(query, key):
        def loss(query, key):
            bias = localness.layer_window(query, key, lengths=jnp.array([4, 0]), **made)
            return bias.sum(), bias

        return jax.grad(loss, (0, 1), has_aux=True)(query, key)

    clean = bias_and_gradients(query, key)
    for garbage in (np.nan, np.inf, 1e9):
        dirty = bias_and_gradients(query, key.at[0, 4:].set(garbage).at[1].set(garbage))
        for a, b in zip(jax.tree.leaves(dirty), jax.tree.leaves(clean), strict=True):
            np.testing.assert_array_equal(a, b)
            assert np.isfinite(a).all()
    # Padded further, the true positions are as they were.
    longer = jnp.pad(key, [(0, 0), (0, 3), (0, 0), (0, 0)])
    wider = localness.layer_window(query, longer, lengths=jnp.array([4, 0]), **made)
    np.testing.assert_allclose(wider[..., :S], clean[1], rtol=1e-5)


@pytest.mark.parametrize("size", [0.0, -200.0, 200.0])
def test_saturated_windows_are_finite(size):
    # A sigmoid that has closed makes a window of 0; then all weight is on the nearest key.
    query, key, value = jnp.ones((3, 1, 1)), jnp.zeros((5, 1, 1)), jnp.arange(5.0).reshape(5, 1, 1)

    @jax.jit
    @partial(jax.grad, argnums=(0, 1, 2), has_aux=True)
    def gradients(query, centre, window):
        made = {"kernel": jnp.full((1, 1, 1), 9.0), "centre_vector": centre, "window_vector": window}
        out = attention.attend(query, key, value, bias=localness.query_window(query, 5, **made))
        return out.sum(), out

    found, out = gradients(query, jnp.array([[0.3]]), jnp.array([[size]]))
    assert all(np.isfinite(x).all() for x in (*found, out))
    if size < 0:
        np.testing.assert_array_equal(out[:, 0, 0], [3, 3, 3])  # 5 sigmoid(0.3) = 2.87


def test_everything_learns():
    query, key, W, u, v, M = (
        x.astype(jnp.float32) for x in draw((B, T, N, H), (B, S, K, H), (N, H, A), (N, A), (N, A), (N, H, A))
    )

    def loss(parameters):
        bias = localness.layer_window(query, key, lengths=jnp.array([7, 3, 5]), **parameters)
        mask = masks.padding(jnp.array([7, 3, 5]), S)
        return jnp.sum(attention.attend(query, key, key, bias=bias, mask=mask) ** 2)

    parameters = {"kernel": W, "centre_vector": u, "window_kernel": M, "window_vector": v}
    for gradient in jax.jit(jax.grad(loss))(parameters).values():
        assert np.isfinite(gradient).all()
        assert (np.abs(gradient) > 1e-6).any(tuple(range(1, gradient.ndim))).all()


def test_errors(untyped):
    query, key, W, u = jnp.ones((B, T, N, H)), jnp.ones((B, S, K, H)), jnp.ones((N, H, A)), jnp.ones((N, A))
    with pytest.raises(ValueError, match="window must be positive, got 0"):
        localness.centred(3, window=0)
    with pytest.raises(ValueError, match=r"window .* got \(3,\) for 1 batch axes"):
        localness.centred(3, window=jnp.ones(3))
    with pytest.raises(ValueError, match=r"query_offset=0 .* query_offset=2"):
        localness.centred(3, 5, window=2.0)
    with pytest.raises(ValueError, match=r"\(3, 2, 5\) does not broadcast .*\(3, 4, 5\)"):
        localness.gaussian(jnp.ones((B, N, T)), jnp.ones((B, 2, T)), S)
    with pytest.raises(ValueError, match=r"kernel \[N H A\] must be \(4, 6, 8\).*got \(2, 6, 8\)"):
        localness.query_window(query, S, kernel=W[:2], centre_vector=u, window_vector=u)
    for lengths in (jnp.ones(2, int), jnp.ones((), int)):
        with pytest.raises(ValueError, match=r"lengths must be one per batch element \(3,\)"):
            localness.fixed_window(query, S, kernel=W, centre_vector=u, window=2.0, lengths=lengths)
    with pytest.raises(TypeError, match=r"lengths \(3,\) must be integers"):
        localness.layer_window(
            query,
            key,
            kernel=W,
            centre_vector=u,
            window_kernel=W,
            window_vector=u,
            lengths=jnp.ones(3),
        )
