"""The feed-forward layer against its formula."""

import jax
import numpy as np
import pytest
from flax import nnx

from models.layers.feed_forward import FeedForward
from tests.models.parameters import arrays, filled, normal


def gelu(x):
    """Hendrycks and Gimpel 2016, in the form with tanh."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "relu": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_is_the_formula_and_drops_about_its_rate_of_outputs(activation):
    layer, x = filled(FeedForward, 4, 7, activation=activation, dropout_rate=0.5), normal(2, 200, 4)
    p = arrays(layer)
    hidden = np.asarray(x, np.float64) @ p["input"]["kernel"] + p["input"]["bias"]
    expected = ACTIVATIONS[activation](hidden) @ p["output"]["kernel"] + p["output"]["bias"]

    @jax.jit
    def both(layer, x, seed):
        return layer(x), layer(x, rngs=nnx.Rngs(dropout=jax.random.key(seed)))

    (sure, one), (_, same), (_, other) = (both(layer, x, seed) for seed in (0, 0, 1))
    np.testing.assert_allclose(sure, expected, rtol=1e-4, atol=1e-5)
    assert abs((one == 0).mean() - 0.5) < 0.05
    assert (np.abs(one - 2 * expected) > 1e-2)[one != 0].any()  # the hidden vector is dropped too
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
