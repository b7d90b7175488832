"""Folded batch normalisation equals Flax's own, in output, gradient and running averages."""

import jax
import numpy as np
from flax import nnx

from models.layers.batch_norm import BatchNorm
from tests.models.parameters import filled, normal

X = 3 + 2 * np.asarray(normal(4, 5, 2, 3))


def test_it_is_flax_in_training_and_after_it():
    """Twice in training, so that the averages run; then by these; and the gradient."""
    weights = normal(*X.shape, seed=2)

    @jax.jit
    def use(layer, x):
        def loss(x):
            return (nnx.clone(layer)(x, use_running_average=False) * weights).sum()

        slope = jax.grad(loss)(x)
        trained = [layer(x, use_running_average=False) for _ in range(2)]
        return *trained, layer.mean[...], layer.var[...], layer(x, use_running_average=True), slope

    ours, flax = (filled(BatchNorm, 3), filled(nnx.BatchNorm, 3, momentum=0.9))
    for one, two in zip(use(ours, X), use(flax, X), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


def fresh(bias=0.0):
    layer = filled(BatchNorm, 1)
    for array, value in ((layer.mean, 0), (layer.var, 1), (layer.scale, 1), (layer.bias, bias)):
        array[...] = np.array([value], np.float32)
    return layer


@jax.jit
def train(layer, x, mask):
    return layer(x, use_running_average=False, mask=mask), layer


def test_one_step_by_hand_and_a_constant_is_not_nan():
    found, layer = train(fresh(), np.array([[1], [3]], np.float32), None)
    np.testing.assert_allclose(found, [[-1.0], [1.0]], atol=1e-4)
    np.testing.assert_allclose(layer.mean[...], [0.2], rtol=1e-5)  # 0.9 * 0 + 0.1 * 2
    np.testing.assert_allclose(layer.var[...], [1.0], rtol=1e-5)  # 0.9 * 1 + 0.1 * 1
    assert np.isfinite(train(fresh(), np.full((2, 1), 1e4, np.float32), None)[0]).all()


def test_padding_counts_in_no_statistic_and_comes_out_as_zero():
    x = np.array([[[1], [3], [100]], [[5], [np.nan], [np.inf]]], np.float32)
    mask = np.array([[True, True, False], [True, False, False]])
    found, layer = train(fresh(bias=5), x, mask)
    step = 1.5**0.5  # of 1, 3, 5 the mean is 3, the variance 8 / 3
    np.testing.assert_allclose(found[..., 0], [[5 - step, 5, 0], [5 + step, 0, 0]], rtol=1e-4)
    for _ in range(2):
        np.testing.assert_allclose(layer.mean[...], [0.3], rtol=1e-5)  # 0.9 * 0 + 0.1 * 3
        np.testing.assert_allclose(layer.var[...], [0.9 + 0.8 / 3], rtol=1e-5)
        _, layer = train(layer, x, np.zeros_like(mask))  # padding alone teaches nothing
    expected = 5 + (3 - 0.3) / (0.9 + 0.8 / 3) ** 0.5
    evaluate = jax.jit(lambda layer, x, mask: layer(x, use_running_average=True, mask=mask))
    np.testing.assert_allclose(evaluate(layer, x, mask)[0, :, 0][1:], [expected, 0], rtol=1e-4)
