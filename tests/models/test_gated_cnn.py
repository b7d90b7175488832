"""Gated convolutions: by hand, how far they see, that their size stays, and that padding does not matter."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.encoders.gated_cnn import GatedCNN, GatedConvolution
from tests.models.parameters import filled, normal


def test_a_gated_convolution_by_hand():
    layer = filled(GatedConvolution, 1, 2)
    # The first column makes values, the second gates, 3^x / (3^x + 1) for the earlier x of two.
    layer.taps.kernel[...] = jnp.array([[1, math.log(3)], [10, 0]])
    layer.taps.bias[...] = jnp.array([0.5, 0])
    found = layer(jnp.array([1.0, 2, 3]).reshape(1, 3, 1))
    np.testing.assert_allclose(found.reshape(-1), [21.5 * 3 / 4, 32.5 * 9 / 10], rtol=1e-6)


def test_an_encoder_by_hand():
    encoder = filled(GatedCNN, 1, num_layers=1)
    encoder.input.kernel[...], encoder.input.bias[...] = jnp.array([[2.0]]), jnp.array([0.0])
    taps = encoder.convolutions[0].taps
    taps.kernel[...], taps.bias[...] = jnp.array([[1.0, 0]] * 3), jnp.zeros(2)  # half the sum of a window
    encoder.output.kernel[...], encoder.output.bias[...] = jnp.array([[math.sqrt(2)]]), jnp.array([1.0])
    found = encoder(jnp.array([1.0, 3, 99]).reshape(1, 3, 1), jnp.array([[True, True, False]]))
    np.testing.assert_allclose(found.reshape(-1), [2 + 4 + 1, 6 + 4 + 1, 0], rtol=1e-6)


@pytest.mark.parametrize("num_layers, kernel_size, seen", [(2, 3, range(2, 7)), (1, 4, range(3, 7))])
def test_the_receptive_field(num_layers, kernel_size, seen):
    encoder = filled(GatedCNN, 2, num_layers=num_layers, kernel_size=kernel_size, hidden_dim=3, positive=True)
    x, mask = jnp.abs(normal(1, 9, 2)), jnp.ones((1, 9), bool)
    slopes = jax.jit(jax.grad(lambda x: encoder(x, mask)[0, 4].sum()))(x)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(slopes[0]).sum(-1)), seen)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_at_first_results_vary_as_much_as_inputs(rate):
    layer = GatedConvolution(40, 3, dropout_rate=rate, rngs=nnx.Rngs(0))
    x = nnx.Dropout(rate)(normal(1, 502, 40), rngs=nnx.Rngs(1))
    # Values of variance 4, by gates whose squares are 0.336 in the mean: more than the 1/4 of open-half ones.
    assert jnp.mean(layer(x) ** 2) == pytest.approx(1.34, abs=0.1)


def test_what_padding_holds_and_how_much_there_is_changes_nothing():
    encoder = filled(GatedCNN, 4, num_layers=2, hidden_dim=5)
    x, lengths = normal(3, 6, 4), (6, 2, 0)
    mask = jnp.arange(6)[None] < jnp.array(lengths)[:, None]

    @jax.jit
    def encode(encoder, x, mask):
        return encoder(x, mask)

    @jax.jit
    def slopes(encoder, x, mask):
        return jax.grad(lambda encoder: jnp.sin(encoder(x, mask)).sum())(encoder)

    x, other = jnp.where(mask[..., None], x, jnp.nan), jnp.where(mask[..., None], x, 7)
    found = encode(encoder, x, mask)
    np.testing.assert_array_equal(found, encode(encoder, other, mask))
    np.testing.assert_array_equal(found[~mask], 0)
    alone = encode(encoder, x[1:2, :2], mask[1:2, :2])
    np.testing.assert_allclose(alone, found[1:2, :2], rtol=1e-5, atol=1e-6)
    slope = slopes(encoder, x, mask)
    jax.tree.map(np.testing.assert_array_equal, slope, slopes(encoder, other, mask))
    assert all((leaf != 0).any() and jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
