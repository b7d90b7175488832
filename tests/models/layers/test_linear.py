"""The linear layer is Flax's, derivatives of every order and direction included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.layers.linear import Linear
from tests.models.parameters import filled, normal, run


def test_it_equals_the_plain_layer():
    """In value, gradient, tangent, and the Hessian times a vector."""

    @jax.jit
    def everything(layer, x):
        structure, params = nnx.split(layer)

        def value(params, x):
            return jnp.sum(jnp.sin(nnx.merge(structure, params)(x)))  # curved in both

        direction = jax.tree.map(lambda p: normal(*p.shape, seed=3), (params, x))
        hessian = jax.jvp(jax.grad(value, (0, 1)), (params, x), direction)  # the gradient too
        return value(params, x), jax.jvp(value, (params, x), direction), hessian

    ours, plain = (
        jax.tree.leaves(everything(filled(kind, 4, 5), normal(2, 3, 4))) for kind in (Linear, nnx.Linear)
    )
    for one, two in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (1, 2, 3, 4), (0, 4)])
def test_any_number_of_leading_axes(shape):
    layer, x = filled(Linear, 4, 5), normal(*shape)
    expected = np.asarray(x) @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])
    np.testing.assert_allclose(run(layer, x), expected, rtol=1e-5, atol=1e-6)
