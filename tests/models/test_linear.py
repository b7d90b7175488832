"""The linear layer is Flax's, derivatives of every order and direction included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.layers.linear import Linear
from tests.models.parameters import filled, normal

X = normal(2, 3, 4)


def function(kind):
    """`(params, x) -> number`, curved in both."""
    structure, params = nnx.split(filled(kind, 4, 5))

    def value(params, x):
        return jnp.sum(jnp.sin(nnx.merge(structure, params)(x)))

    return value, params


def output(kind):
    value, params = function(kind)
    return value(params, X)


def gradient(kind):
    value, params = function(kind)
    return jax.grad(value, argnums=(0, 1))(params, X)


def tangent(kind):
    value, params = function(kind)
    direction = jax.tree.map(lambda p: normal(*p.shape, seed=3), params)
    return jax.jvp(value, (params, X), (direction, normal(2, 3, 4, seed=4)))


def hessian_times_vector(kind):
    value, params = function(kind)
    direction = jax.tree.map(lambda p: normal(*p.shape, seed=3), params)
    return jax.jvp(jax.grad(value), (params, X), (direction, normal(2, 3, 4, seed=4)))


@pytest.mark.parametrize("derivative", [output, gradient, tangent, hessian_times_vector])
def test_it_equals_the_plain_layer(derivative):
    ours, plain = (jax.tree.leaves(derivative(kind)) for kind in (Linear, nnx.Linear))
    assert len(ours) == len(plain)
    for one, two in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (1, 2, 3, 4), (0, 4)])
def test_any_number_of_leading_axes(shape):
    layer = filled(Linear, 4, 5)
    x = normal(*shape)
    expected = np.asarray(x) @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)
