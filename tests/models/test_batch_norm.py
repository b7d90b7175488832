"""Folded batch normalisation equals Flax's own, in output, gradient and running averages."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.layers.batch_norm import BatchNorm


def layers():
    ours, flax = BatchNorm(3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, momentum=0.9, rngs=nnx.Rngs(0))
    for layer in (ours, flax):
        layer.scale[...] = jnp.array([1.0, 2.0, -0.5])
        layer.bias[...] = jnp.array([0.1, -0.2, 0.3])
    return ours, flax


X = 3.0 + 2.0 * jax.random.normal(jax.random.key(1), (4, 5, 2, 3))


def test_training_and_running_averages():
    ours, flax = layers()
    for _ in range(2):
        expected = flax(X, use_running_average=False)
        np.testing.assert_allclose(ours(X, use_running_average=False), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.mean[...], flax.mean[...], rtol=1e-5)
    np.testing.assert_allclose(ours.var[...], flax.var[...], rtol=1e-4)
    np.testing.assert_allclose(
        ours(X, use_running_average=True), flax(X, use_running_average=True), rtol=1e-4, atol=1e-5
    )


def test_one_step_by_hand():
    ours = BatchNorm(1, rngs=nnx.Rngs(0))
    found = ours(jnp.array([[1.0], [3.0]]), use_running_average=False)
    np.testing.assert_allclose(found, [[-1.0], [1.0]], atol=1e-4)
    np.testing.assert_allclose(ours.mean[...], [0.2], rtol=1e-5)  # 0.9 * 0 + 0.1 * 2
    np.testing.assert_allclose(ours.var[...], [1.0], rtol=1e-5)  # 0.9 * 1 + 0.1 * 1


def test_gradients():
    ours, flax = layers()
    weights = jax.random.normal(jax.random.key(2), X.shape)

    def gradient(layer, **mode):
        def loss(x):
            return (nnx.merge(*nnx.split(layer), copy=True)(x, **mode) * weights).sum()

        return jax.grad(loss)(X)

    found = gradient(ours, use_running_average=False)
    np.testing.assert_allclose(found, gradient(flax, use_running_average=False), rtol=1e-3, atol=1e-4)


def test_a_constant_channel_is_not_nan():
    ours, _ = layers()
    assert jnp.isfinite(ours(jnp.full((8, 3), 1e4), use_running_average=False)).all()


def test_padding_counts_in_no_statistic_and_comes_out_as_zero():
    ours = BatchNorm(1, rngs=nnx.Rngs(0))
    ours.bias[...] = jnp.array([5.0])
    x = jnp.array([[[1.0], [3.0], [100.0]], [[5.0], [jnp.nan], [jnp.inf]]])
    mask = jnp.array([[True, True, False], [True, False, False]])
    found = ours(x, use_running_average=False, mask=mask)
    step = 1.5**0.5  # of 1, 3, 5 the mean is 3, the variance 8 / 3
    np.testing.assert_allclose(found[..., 0], [[5 - step, 5, 0], [5 + step, 0, 0]], rtol=1e-4)
    np.testing.assert_allclose(ours.mean[...], [0.3], rtol=1e-5)  # 0.9 * 0 + 0.1 * 3
    np.testing.assert_allclose(ours.var[...], [0.9 + 0.8 / 3], rtol=1e-5)
    ours(x, use_running_average=False, mask=jnp.zeros_like(mask))
    np.testing.assert_allclose(ours.mean[...], [0.3], rtol=1e-5)  # padding alone teaches nothing
    np.testing.assert_allclose(ours.var[...], [0.9 + 0.8 / 3], rtol=1e-5)
    expected = 5 + (3 - 0.3) / (0.9 + 0.8 / 3) ** 0.5
    found = ours(x, use_running_average=True, mask=mask)
    np.testing.assert_allclose(found[0, :, 0][1:], [expected, 0], rtol=1e-4)
