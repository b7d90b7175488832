"""The convolution by matrix products equals Flax's own, forward, backward and in forward mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.layers.convolution import Conv


@pytest.mark.parametrize(
    ("channels", "size", "stride"),
    [(1, 3, 1), (1, 5, 1), (1, 3, 2), (3, 1, 1), (3, 1, 2), (3, 3, 1), (3, 3, 2)],
)
def test_it_is_flax_convolution(channels, size, stride):
    ours = Conv(channels, 4, size, stride, rngs=nnx.Rngs(0))
    flax = nnx.Conv(channels, 4, (size, size), strides=stride, use_bias=False, rngs=nnx.Rngs(1))
    x = jax.random.normal(jax.random.key(2), (2, 7, 6, channels))
    kernel = ours.kernel[...]

    def apply(layer):
        def function(kernel, x):
            inner = nnx.merge(*nnx.split(layer), copy=True)
            inner.kernel[...] = kernel
            return inner(x)

        return function

    def loss(layer):
        return lambda kernel, x: jnp.sin(apply(layer)(kernel, x)).sum()

    def everything(layer):
        ones = (jnp.ones_like(kernel), jnp.ones_like(x))
        gradients = jax.grad(loss(layer), (0, 1))(kernel, x)
        return apply(layer)(kernel, x), *gradients, jax.jvp(loss(layer), (kernel, x), ones)[1]

    found, expected = jax.jit(lambda: (everything(ours), everything(flax)))()
    for a, b, error in zip(found, expected, (1e-5, 1e-4, 1e-4, 1e-3), strict=True):
        np.testing.assert_allclose(a, b, rtol=error, atol=error)
