"""Recurrent layers against loops in float64 that know no padding: each sequence by itself."""

import jax
import numpy as np
import pytest
from flax import nnx

from models.layers.recurrent import RecurrentLayer
from tests.models.parameters import arrays, filled, normal, real, run

B, T, D, H = 3, 5, 4, 3
LENGTHS = (5, 2, 0)
MASK = real(*LENGTHS, of=T)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def advance(cell, h, c, x, U):
    """One step of one sequence: x is the input after its map, `[gates H]`."""
    if cell == "plain":
        return np.tanh(x + h @ U), c
    if cell == "gru":
        r, z = sigmoid(x[:H] + h @ U[:, :H]), sigmoid(x[H : 2 * H] + h @ U[:, H : 2 * H])
        return z * h + (1 - z) * np.tanh(x[2 * H :] + r * (h @ U[:, 2 * H :])), c
    i, f, g, o = np.split(x + h @ U, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def loop(cell, xs, W, b, U):
    """States of one sequence `[T D]` read from its first vector to its last."""
    h, c, states = np.zeros(H), np.zeros(H), []
    for x in xs:
        h, c = advance(cell, h, c, x @ W + b, U)
        states.append(h)
    return np.reshape(states, (-1, H))


@pytest.mark.parametrize("cell, directions", [("plain", 2), ("gru", 2), ("lstm", 2), ("lstm", 1)])
def test_a_layer_is_the_loop(cell, directions):
    layer = filled(RecurrentLayer, D, H, cell=cell, directions=directions)
    x, p = np.asarray(normal(B, T, D)), arrays(layer)
    found = run(layer, np.where(MASK[..., None], x, np.float32(7)), MASK)
    assert found.shape == (B, T, directions * H)
    kernels = np.split(p["input"]["kernel"], directions, axis=1)
    biases = np.split(p["input"]["bias"], directions)
    for row, length in enumerate(LENGTHS):
        xs = np.asarray(x[row, :length], np.float64)
        expected = [loop(cell, xs, kernels[0], biases[0], p["recurrent_kernel"][0])]
        if directions == 2:
            expected.append(loop(cell, xs[::-1], kernels[1], biases[1], p["recurrent_kernel"][1])[::-1])
        np.testing.assert_allclose(
            found[row, :length], np.concatenate(expected, axis=1), rtol=1e-5, atol=1e-6
        )


def test_how_it_starts():
    @jax.jit
    def made():
        layer = RecurrentLayer(2, 2, cell="lstm", directions=2, rngs=nnx.Rngs(0))
        return layer.input.bias[...], layer.recurrent_kernel[...]

    bias, kernel = made()
    np.testing.assert_array_equal(bias, 2 * [0, 0, 1, 1, 0, 0, 0, 0])
    for direction in kernel:
        for gate in np.split(np.asarray(direction), 4, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(2), atol=1e-6)
