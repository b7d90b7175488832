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


@pytest.fixture(scope="module")
def layer():
    return filled(FeedForward, 4, 7, dropout_rate=0.5)


def test_it_is_the_formula(layer):
    x, p = normal(2, 3, 4), arrays(layer)
    hidden = gelu(np.asarray(x, np.float64) @ p["input"]["kernel"] + p["input"]["bias"])
    expected = hidden @ p["output"]["kernel"] + p["output"]["bias"]
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=1e-6)


def test_positions_are_mapped_alone(layer):
    x = normal(2, 3, 4)
    moved = layer(x.at[:, 1].add(1.0))
    np.testing.assert_array_equal(moved[:, [0, 2]], layer(x)[:, [0, 2]])
    assert (moved[:, 1] != layer(x)[:, 1]).all()


def test_dropout_zeroes_about_its_rate_of_outputs_and_needs_rngs(layer):
    x = normal(2, 200, 4)
    assert (layer(x) != 0).all()
    dropped = jax.jit(lambda seed: layer(x, rngs=nnx.Rngs(dropout=jax.random.key(seed))))
    one, same, other = dropped(0), dropped(0), dropped(1)
    assert abs((one == 0).mean() - 0.5) < 0.05
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
