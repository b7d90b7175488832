"""Recurrent encoders: layers that read one another; see tests/models/layers for what one computes."""

import jax
import numpy as np

from models.encoders.recurrent import Recurrent
from tests.models.parameters import filled, normal, real

B, T, D, H = 3, 5, 4, 3
MASK = real(5, 2, 0, of=T)


def test_layers_read_one_another_and_are_mapped_back():
    encoder, x = filled(Recurrent, D, cell="gru", num_layers=2, hidden_dim=H), normal(B, T, D)

    @jax.jit
    def both(encoder, x):
        states = encoder.layers[1](encoder.layers[0](x, MASK), MASK)
        return encoder.output(states), encoder(x, MASK)

    expected, found = both(encoder, x)
    np.testing.assert_array_equal(found, np.where(MASK[..., None], expected, 0))
