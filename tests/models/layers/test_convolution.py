"""The convolution by matrix products equals Flax's own, forward, backward and in forward mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.layers.convolution import Conv
from tests.models.parameters import filled, normal


@pytest.mark.parametrize(
    ("channels", "size", "stride"),
    [(1, 3, 1), (1, 5, 1), (1, 3, 2), (3, 1, 1), (3, 1, 2), (3, 3, 2)],
)
def test_it_is_flax_convolution(channels, size, stride):
    ours = filled(Conv, channels, 4, size, stride)
    flax = filled(nnx.Conv, channels, 4, (size, size), strides=stride, use_bias=False)
    x = normal(2, 7, 6, channels)

    def everything(layer, x):
        structure, kernel = nnx.split(layer)

        def value(kernel, x):
            y = nnx.merge(structure, kernel)(x)
            return jnp.sin(y).sum(), y

        (_, y), gradients = jax.value_and_grad(value, (0, 1), has_aux=True)(kernel, x)
        ones = jax.tree.map(jnp.ones_like, (kernel, x))
        return y, jax.tree.leaves(gradients), jax.jvp(lambda *at: value(*at)[0], (kernel, x), ones)[1]

    found, expected = jax.jit(lambda ours, flax, x: (everything(ours, x), everything(flax, x)))(ours, flax, x)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)
