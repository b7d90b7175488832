"""Convolutions along time: by hand, how far they see, and statistics that padding is not part of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.encoders.temporal_cnn import MultiWidthCNN, TemporalCNN, TemporalConv
from tests.models.parameters import arrays, filled, normal, run


@pytest.mark.parametrize(
    "kernel, expected",
    [([1, 10, 100], [210.5, 321.5, 32.5]), ([1, 10], [21.5, 32.5, 3.5])],  # an even one looks further ahead
)
def test_a_convolution_by_hand(kernel, expected):
    layer = filled(TemporalConv, 1, 1, len(kernel))
    layer.taps.kernel[...] = np.array(kernel, np.float32)[:, None]
    layer.taps.bias[...] = np.array([0.5], np.float32)
    found = run(layer, np.array([1, 2, 3], np.float32).reshape(1, 3, 1))
    np.testing.assert_allclose(found.reshape(-1), expected)


def test_flax_agrees():
    layer, x = filled(TemporalConv, 2, 3, 3, dilation=2), normal(2, 7, 2)
    flax = filled(nnx.Conv, 2, 3, (3,), kernel_dilation=2)
    flax.kernel[...] = np.asarray(layer.taps.kernel[...]).reshape(3, 2, 3)
    flax.bias[...] = layer.taps.bias[...]
    np.testing.assert_allclose(run(layer, x), run(flax, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dilation, reach", [(1, 2), (2, 3)])
def test_the_receptive_field(dilation, reach):
    encoder = filled(TemporalCNN, 3, num_layers=2, dilation=dilation, norm="none", positive=True)
    x, mask = np.abs(normal(1, 9, 3)), np.ones((1, 9), bool)
    slopes = jax.jit(jax.grad(lambda x: encoder(x, mask)[0, 4].sum()))(x)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(slopes[0]).sum(-1)), np.arange(4 - reach, 5 + reach))


def test_statistics_move_in_training():
    encoder, x = filled(TemporalCNN, 3, num_layers=2), normal(2, 4, 3)

    @jax.jit
    def train(encoder):
        encoder(x, jnp.ones((2, 4), bool), train=True)
        return [(norm.mean[...], norm.var[...]) for norm in encoder.norms]

    for norm, (mean, var) in zip(encoder.norms, train(encoder), strict=True):
        assert (mean != norm.mean[...]).all()
        assert (var != norm.var[...]).all()


def test_widths_side_by_side():
    encoder = filled(MultiWidthCNN, 5, widths=(1, 2))
    x, mask = np.asarray(normal(1, 4, 5)), np.array([[True, True, True, False]])
    assert [layer.taps.out_features for layer in encoder.convolutions] == [3, 2]
    p = [part["taps"] for part in arrays(encoder)["convolutions"].values()]
    ahead = np.concatenate([x[0, :3], np.stack([x[0, 1], x[0, 2], np.zeros(5)])], axis=1)
    expected = np.concatenate(
        [each @ taps["kernel"] + taps["bias"] for each, taps in zip((x[0, :3], ahead), p, strict=True)],
        axis=1,
    )
    found = run(encoder, x, mask)[0]
    np.testing.assert_allclose(found, [*np.maximum(expected, 0), np.zeros(5)], rtol=1e-5, atol=1e-6)
