"""Recurrent encoders against loops in float64 that know no padding: each sequence by itself."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.encoders.recurrent import Recurrent, RecurrentLayer
from tests.models.parameters import arrays, filled, normal

B, T, D, H = 3, 5, 4, 3
LENGTHS = (5, 2, 0)
MASK = jnp.arange(T)[None] < jnp.asarray(LENGTHS)[:, None]


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


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", ["plain", "gru", "lstm"])
def test_a_layer_is_the_loop(cell, directions):
    layer = filled(RecurrentLayer, D, H, cell=cell, directions=directions)
    x, p = normal(B, T, D), arrays(layer)
    found = layer(jnp.where(MASK[..., None], x, 7.0), MASK)
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


def test_layers_read_one_another_and_are_mapped_back():
    encoder, x = filled(Recurrent, D, cell="gru", num_layers=2, hidden_dim=H), normal(B, T, D)
    states = encoder.layers[1](encoder.layers[0](jnp.where(MASK[..., None], x, 0), MASK), MASK)
    expected = jnp.where(MASK[..., None], encoder.output(states), 0)
    np.testing.assert_array_equal(encoder(x, MASK), expected)


@pytest.mark.parametrize("bidirectional, each", [(True, 3), (False, 6)])
def test_directions_share_the_width(bidirectional, each):
    encoder = nnx.eval_shape(lambda: Recurrent(6, bidirectional=bidirectional, rngs=nnx.Rngs(0)))
    assert encoder.layers[0].hidden_dim == each
    assert encoder.output is None


def test_dropout_is_between_layers_alone():
    x, rngs = normal(B, T, D), nnx.Rngs(dropout=0)
    one, two = (filled(Recurrent, D, cell="plain", num_layers=n, dropout_rate=0.5) for n in (1, 2))
    np.testing.assert_array_equal(one(x, MASK, rngs=rngs), one(x, MASK))
    assert (two(x, MASK, rngs=rngs) != two(x, MASK))[MASK].any()


def test_how_it_starts():
    layer = RecurrentLayer(2, 2, cell="lstm", directions=2, rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(layer.input.bias[...], 2 * [0, 0, 1, 1, 0, 0, 0, 0])
    for direction in layer.recurrent_kernel[...]:
        for gate in np.split(np.asarray(direction), 4, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(2), atol=1e-6)


@pytest.mark.parametrize(
    "dim, fields, message",
    [
        (4, {"cell": "rnn"}, r"cell is 'rnn'; it must be one of \('plain', 'gru', 'lstm'\)"),
        (5, {}, "dim 5 is not divisible by 2 directions; give hidden_dim"),
    ],
)
def test_what_makes_no_sense_is_refused(dim, fields, message):
    with pytest.raises(ValueError, match=message):
        Recurrent(dim, **fields, rngs=nnx.Rngs(0))
