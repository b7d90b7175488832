"""Gated convolutions: by hand, and that their size stays."""

import math

import jax
import numpy as np
import pytest
from flax import nnx

from models.layers.gated_convolution import GatedConvolution
from tests.models.parameters import filled, normal, run


def test_a_gated_convolution_by_hand():
    layer = filled(GatedConvolution, 1, 2)
    # The first column makes values, the second gates, 3^x / (3^x + 1) for the earlier x of two.
    layer.taps.kernel[...] = np.array([[1, math.log(3)], [10, 0]], np.float32)
    layer.taps.bias[...] = np.array([0.5, 0], np.float32)
    found = run(layer, np.array([1, 2, 3], np.float32).reshape(1, 3, 1))
    np.testing.assert_allclose(found.reshape(-1), [21.5 * 3 / 4, 32.5 * 9 / 10], rtol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_at_first_results_vary_as_much_as_inputs(rate):
    @jax.jit
    def squares(x):
        layer = GatedConvolution(40, 3, dropout_rate=rate, rngs=nnx.Rngs(0))
        return layer(nnx.Dropout(rate)(x, rngs=nnx.Rngs(1))) ** 2

    # Values of variance 4, by gates whose squares are 0.336 in the mean: more than the 1/4 of open-half ones.
    assert np.mean(squares(normal(1, 502, 40))) == pytest.approx(1.34, abs=0.1)
