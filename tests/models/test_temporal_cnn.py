"""Convolutions along time: by hand, how far they see, and statistics that padding is not part of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.encoders.temporal_cnn import MultiWidthCNN, TemporalCNN, TemporalConv
from tests.models.parameters import filled, normal


def test_a_convolution_by_hand():
    layer = filled(TemporalConv, 1, 1, 3)
    layer.taps.kernel[...] = jnp.array([[1.0], [10.0], [100.0]])
    layer.taps.bias[...] = jnp.array([0.5])
    found = layer(jnp.array([1.0, 2, 3]).reshape(1, 3, 1))
    np.testing.assert_allclose(found.reshape(-1), [210.5, 321.5, 32.5])


def test_an_even_size_looks_one_step_further_ahead():
    layer = filled(TemporalConv, 1, 1, 2)
    layer.taps.kernel[...] = jnp.array([[1.0], [10.0]])
    layer.taps.bias[...] = jnp.array([0.0])
    np.testing.assert_allclose(layer(jnp.array([1.0, 2]).reshape(1, 2, 1)).reshape(-1), [21, 2])


def test_flax_agrees():
    layer, x = filled(TemporalConv, 2, 3, 3, dilation=2), normal(2, 7, 2)
    flax = nnx.Conv(2, 3, (3,), kernel_dilation=2, rngs=nnx.Rngs(0))
    flax.kernel[...] = layer.taps.kernel[...].reshape(3, 2, 3)
    flax.bias[...] = layer.taps.bias[...]
    np.testing.assert_allclose(layer(x), flax(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dilation, reach", [(1, 2), (2, 3)])
def test_the_receptive_field(dilation, reach):
    encoder = filled(TemporalCNN, 3, num_layers=2, dilation=dilation, norm="none", positive=True)
    x, mask = jnp.abs(normal(1, 9, 3)), jnp.ones((1, 9), bool)
    slopes = jax.grad(lambda x: encoder(x, mask)[0, 4].sum())(x)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(slopes[0]).sum(-1)), np.arange(4 - reach, 5 + reach))


def test_in_training_padding_changes_neither_output_nor_statistics():
    x, mask = normal(2, 4, 3), jnp.array([[True] * 4, [True, True, False, False]])
    found = []
    for garbage in (0.0, 1e3):
        encoder = filled(TemporalCNN, 3, num_layers=2)
        before = encoder.norms[1].mean[...]
        y = encoder(jnp.where(mask[..., None], x, garbage), mask, train=True)
        found.append((y, [(norm.mean[...], norm.var[...]) for norm in encoder.norms]))
        assert (found[-1][1][1][0] != before).all()
    jax.tree.map(np.testing.assert_array_equal, *found)


def test_widths_side_by_side():
    encoder = filled(MultiWidthCNN, 5, widths=(1, 2))
    x, mask = normal(1, 4, 5), jnp.array([[True, True, True, False]])
    found = encoder(x, mask)
    assert [layer.taps.out_features for layer in encoder.convolutions] == [3, 2]
    shown = jnp.where(mask[..., None], x, 0)
    np.testing.assert_array_equal(found[0, :3, :3], jax.nn.relu(encoder.convolutions[0](shown))[0, :3])
    np.testing.assert_array_equal(found[0, :3, 3:], jax.nn.relu(encoder.convolutions[1](shown))[0, :3])
    np.testing.assert_array_equal(found[0, 3], 0)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda **r: TemporalCNN(4, norm="layer", **r),
            r"norm is 'layer'; it must be one of \('batch', 'none'\)",
        ),
        (
            lambda **r: MultiWidthCNN(2, widths=(3, 4, 5), **r),
            "widths is .3, 4, 5.; it must hold 1 to dim .2.",
        ),
        (lambda **r: MultiWidthCNN(2, widths=(0,), **r), "widths is"),
        (lambda **r: MultiWidthCNN(2, widths=(), **r), "widths is"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(rngs=nnx.Rngs(0))
