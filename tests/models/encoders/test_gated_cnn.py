"""The encoder of gated convolutions: by hand, and how far it sees."""

import math

import jax
import numpy as np
import pytest

from models.encoders.gated_cnn import GatedCNN
from tests.models.parameters import filled, normal, run


def test_an_encoder_by_hand():
    encoder = filled(GatedCNN, 1, num_layers=1, hidden_dim=1)
    taps = encoder.convolutions[0].taps
    for layer, kernel, bias in (
        (encoder.input, [[2]], [0]),
        (taps, 3 * [[1, 0]], [0, 0]),  # half the sum of a window
        (encoder.output, [[math.sqrt(2)]], [1]),
    ):
        layer.kernel[...], layer.bias[...] = np.array(kernel, np.float32), np.array(bias, np.float32)
    x = np.array([1, 3, 99], np.float32).reshape(1, 3, 1)
    found = run(encoder, x, np.array([[True, True, False]]))
    np.testing.assert_allclose(found.reshape(-1), [2 + 4 + 1, 6 + 4 + 1, 0], rtol=1e-6)


@pytest.mark.parametrize("num_layers, kernel_size, seen", [(2, 3, range(2, 7)), (1, 4, range(3, 7))])
def test_the_receptive_field(num_layers, kernel_size, seen):
    encoder = filled(GatedCNN, 2, num_layers=num_layers, kernel_size=kernel_size, hidden_dim=3, positive=True)
    x, mask = np.abs(normal(1, 9, 2)), np.ones((1, 9), bool)
    slopes = jax.jit(jax.grad(lambda x: encoder(x, mask)[0, 4].sum()))(x)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(slopes[0]).sum(-1)), seen)
