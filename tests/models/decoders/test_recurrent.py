"""Recurrent decoders: single steps with a pencil, whole sequences against a loop in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.decoders import DECODERS
from models.decoders.decoder import Memory
from models.decoders.recurrent import RecurrentDecoder
from tests.models.decoders.decoder_contract import check_decoder
from tests.models.parameters import arrays, filled, normal, paths, program, real, run, shaped

B, T, S, D, H = 3, 4, 6, 2, 5
LENGTHS = (6, 3, 1)
MASK = real(*LENGTHS, of=S)
LUONG = {"order": "luong", "attention": "dot"}
LN3 = math.log(3)


def memory(vectors=None):
    vectors = np.asarray(normal(B, S, D, seed=2)) if vectors is None else vectors
    return Memory(np.where(MASK[..., None], vectors, np.float32(np.nan)), MASK, vectors)


def of_width_one(values, **fields):
    """A decoder with D = H = 1 and a plain cell, its parameters as given, 0 where not."""
    decoder = shaped(RecurrentDecoder, 1, cell="plain", hidden_dim=1, **fields)
    shapes = paths(decoder)
    assert set(values) <= set(shapes), shapes.keys()

    def new(path, leaf):
        name = "/".join(str(part.key) for part in path)
        return jnp.asarray(np.broadcast_to(values.get(name, 0), leaf.shape), np.float32)

    nnx.update(decoder, jax.tree_util.tree_map_with_path(new, nnx.to_pure_dict(nnx.state(decoder))))
    return decoder


def pair(*vectors):
    """A memory of one sequence of vectors of width 1."""
    x = np.asarray(vectors, np.float32).reshape(1, -1, 1)
    return Memory(x, np.ones(x.shape[:2], bool), x)


# The first state, tanh of this, is 1/2.
HALF = {"first/bias": LN3 / 2}


def test_a_step_in_the_order_of_bahdanau():
    decoder = of_width_one(
        HALF
        | {  # scores of the state before, 1/2: v tanh(2 (1/2) + 1 h - 1) = v tanh(h), ln 3 apart
            "mechanism/query_kernel": 2,
            "mechanism/key_kernel": 1,
            "mechanism/bias": -1,
            "mechanism/vector": LN3 / 1.2,
            "cells/0/input/kernel": [[3], [4]],  # of y and of the context
            "cells/0/input/bias": 0.5,
            "cells/0/recurrent_kernel": -6,
            "output/kernel": [[10, 0], [0, 0], [0, 1]],  # of state, y and context, two numbers for one
            "output/bias": [-4, 0],
        },
        attention={"kind": "additive", "hidden_dim": 1},
    )
    h = math.atanh(0.6)  # 0.693
    decode = jax.jit(lambda decoder, y, memory: decoder(y, memory, return_weights=True))
    y = np.full((1, 1, 1), 0.2, np.float32)
    found = decode(decoder, y, pair(h, -h))
    np.testing.assert_allclose(found.weights[0], [[[[0.75, 0.25]]]], rtol=1e-6)
    context = 0.75 * h - 0.25 * h
    state = math.tanh(3 * 0.2 + 4 * context + 0.5 - 6 * 0.5)
    assert 10 * state - 4 < context
    np.testing.assert_allclose(found.vectors, [[[context]]], rtol=1e-6)
    decoder.output.bias[...] = np.array([4, 0], np.float32)
    found = decode(decoder, y, pair(h, -h))
    np.testing.assert_allclose(found.vectors, [[[max(10 * state + 4, context)]]], rtol=1e-5)


def test_a_step_in_the_order_of_luong():
    decoder = of_width_one(
        HALF
        | {
            "cells/0/input/kernel": [[1], [-1]],  # of y and of the vector before, 0 at first
            "cells/0/recurrent_kernel": 2,
            "output/kernel": [[2], [-1]],  # of state and context
            "output/bias": 0.25,
        },
        **LUONG,
    )
    y = [math.atanh(0.5) - 1, 0.3]  # so that the first state made is tanh(y + 2 (1/2)) = 1/2
    found = run(decoder, np.asarray(y, np.float32).reshape(1, 2, 1), pair(2 * LN3, 0), return_weights=True)
    context = 0.75 * 2 * LN3  # scores ln 3 and 0
    first = math.tanh(2 * 0.5 - context + 0.25)
    state = math.tanh(0.3 - first + 2 * 0.5)
    weight = 1 / (1 + math.exp(-2 * LN3 * state))
    second = math.tanh(2 * state - weight * 2 * LN3 + 0.25)
    np.testing.assert_allclose(found.weights[0][0, 0], [[0.75, 0.25], [weight, 1 - weight]], rtol=1e-5)
    np.testing.assert_allclose(found.vectors, [[[first], [second]]], rtol=1e-5)


def loop(p, order, feeding, y, h):
    """Vectors and weights of one sequence, `y [T D]`, by two LSTM cells, a gate and general scores."""

    def linear(name, *x):
        found = np.concatenate(x) @ p[name]["kernel"]
        return found + p[name]["bias"] if "bias" in p[name] else found

    def attend(state):
        scores = h @ (linear("query", state) @ p["mechanism"]["kernel"][0])
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        return weights @ h / (1 + np.exp(-linear("gate", state))), weights

    states = np.tanh(linear("first", h[-1], h[0])).reshape(2, 2, H)  # cells, (h, c)
    vector, vectors, looks = np.zeros(D), [], []
    for x in y:
        inputs = [x]
        if order == "bahdanau":
            context, weights = attend(states[1, 0])
            inputs.append(context)
        elif feeding:
            inputs.append(vector)
        for cell in range(2):
            layer = p["cells"][cell]
            gates = np.concatenate(inputs) @ layer["input"]["kernel"] + layer["input"]["bias"]
            i, f, g, o = np.split(gates + states[cell, 0] @ layer["recurrent_kernel"][0], 4)
            c = states[cell, 1] / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            states[cell] = np.tanh(c) / (1 + np.exp(-o)), c
            inputs = [states[cell, 0]]
        state = states[1, 0]
        if order == "bahdanau":
            vector = linear("output", state, x, context).reshape(D, 2).max(axis=1)
        else:
            context, weights = attend(state)
            vector = np.tanh(linear("output", state, context))
        vectors.append(vector)
        looks.append(weights)
    return np.stack(vectors), np.stack(looks)


@pytest.mark.parametrize("order, feeding", [("bahdanau", True), ("luong", True), ("luong", False)])
def test_a_decoder_is_the_loop(order, feeding):
    decoder = filled(
        RecurrentDecoder,
        D,
        cell="lstm",
        num_layers=2,
        hidden_dim=H,
        attention="general",
        order=order,
        input_feeding=feeding,
        gate=True,
    )
    y, seen = normal(B, T, D), memory()
    found = run(decoder, y, seen, return_weights=True)
    for row, length in enumerate(LENGTHS):
        h = np.asarray(seen.vectors[row, :length], np.float64)
        vectors, weights = loop(arrays(decoder), order, feeding, np.asarray(y[row], np.float64), h)
        np.testing.assert_allclose(found.vectors[row], vectors, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.weights[0][row, 0, :, :length], weights, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(found.weights[0][row, 0, :, length:], 0)


CASES = {
    "bahdanau": {"cell": "lstm", "hidden_dim": 3, "gate": True},
    "luong": {
        "order": "luong",
        "attention": {"kind": "local_p", "radius": 2, "hidden_dim": 4},
        "num_layers": 2,
    },
    "all at once": {
        "order": "luong",
        "attention": {"kind": "local_m", "radius": 1},
        "map_keys": True,
        "input_feeding": False,
        "cell": "plain",
    },
    "hard": {"choice": "hard", "summary": "mean"},
    "none": {"attention": "none"},
}


def make(case, dim, **fields):
    return filled(RecurrentDecoder, dim, **{"hidden_dim": dim, **CASES.get(case, {}), **fields})


@pytest.mark.parametrize("case", CASES)
def test_it_is_a_decoder(case):
    check_decoder(make(case, 6), 6, attends=case != "none")


@pytest.mark.parametrize("layers, drawn", [(1, 1), (2, 2)])
def test_dropout_is_between_cells_and_before_the_output(layers, drawn):
    y, seen = normal(B, T, D), memory()
    sure, decoder = (
        shaped(RecurrentDecoder, D, hidden_dim=D, num_layers=layers, dropout_rate=rate) for rate in (0.0, 0.5)
    )
    assert program(sure, y, seen, train=True) == program(decoder, y, seen, train=True)
    assert "random_bits" not in program(sure, y, seen, train=True, seed=0)
    assert program(decoder, y, seen, seed=0).count("random_bits") == drawn


def test_the_window_of_local_m_walks_with_the_target():
    """Equal vectors, so equal weights; at the fourth place a source of one vector lies behind."""
    seen = memory(np.ones((B, S, D), np.float32))
    found = run(make("all at once", D), normal(B, T, D), seen, return_weights=True)
    half, third = 1 / 2, 1 / 3
    expected = [
        [
            [half, half, 0, 0, 0, 0],
            [third, third, third, 0, 0, 0],
            [0, third, third, third, 0, 0],
            [0, 0, third, third, third, 0],
        ],
        [
            [half, half, 0, 0, 0, 0],
            [third, third, third, 0, 0, 0],
            [0, half, half, 0, 0, 0],
            [0, 0, 1, 0, 0, 0],
        ],
        [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]],
    ]
    np.testing.assert_allclose(found.weights[0][:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_a_hard_look_is_drawn_in_training_and_the_likeliest_else(order):
    """And in the first steps of training, if asked for, it is the mean."""
    fields = {"order": order, "input_feeding": order == "bahdanau"}
    decoder = make("hard look", D, choice="hard", soft_steps=2, **fields)
    decoder.steps[...] = np.float32(2)  # `filled` makes up every array
    # The context, last of what the output reads, comes out as it is, or its tanh.
    shown = np.zeros(decoder.output.kernel.shape, np.float32)
    shown[-D:] = np.repeat(np.eye(D), shown.shape[1] // D, axis=1)
    decoder.output.kernel[...], decoder.output.bias[...] = shown, np.zeros(shown.shape[1], np.float32)
    y, seen = normal(B, T, D), memory(3 * np.asarray(normal(B, S, D, seed=2)))
    values = seen.vectors if order == "bahdanau" else np.tanh(seen.vectors)

    def position(found):
        """Which vector of the memory was looked at, `[B, T]`, each being one that has a weight."""
        same = np.abs(np.asarray(found.vectors)[:, :, None] - values[:, None]).max(axis=-1) < 1e-6
        assert (same.sum(axis=-1) == 1).all()
        return same.argmax(axis=-1)

    @jax.jit
    def learn(decoder, seed):
        rngs = nnx.Rngs(dropout=jax.random.key(seed))
        return decoder(y, seen, train=True, rngs=rngs, return_weights=True), decoder

    @jax.jit
    def evaluate(decoder):
        return decoder(y, seen, rngs=nnx.Rngs(dropout=0), return_weights=True), decoder.steps[...]

    quiet, steps = evaluate(decoder)
    assert steps == 2  # it was no step of training
    loud = [learn(decoder, seed)[0] for seed in range(3)]
    np.testing.assert_array_equal(position(quiet), quiet.weights[0][:, 0].argmax(axis=-1))
    assert (position(loud[0]) != position(loud[1])).any()
    for found in (quiet, *loud):
        weights = np.asarray(found.weights[0][:, 0])
        looked = np.take_along_axis(weights, position(found)[..., None], axis=-1)[..., 0]
        np.testing.assert_allclose(found.draws.log_probability, np.log(looked), atol=1e-5)
        safe = np.where(weights > 0, weights, 1)
        np.testing.assert_allclose(found.draws.entropy, -(safe * np.log(safe)).sum(axis=-1), atol=1e-5)

    soft = make("soft look", D, **fields)
    soft.output.kernel[...], soft.output.bias[...] = shown, decoder.output.bias[...]
    expected = run(soft, y, seen).vectors
    decoder.steps[...] = np.float32(0)
    for _ in range(2):
        found, decoder = learn(decoder, 0)
        np.testing.assert_allclose(found.vectors[:2], expected[:2], atol=1e-6)
        assert not np.asarray(found.draws.log_probability).any()
    assert learn(decoder, 0)[0].draws.log_probability[:2].all()


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"cell": "rnn"}, "decoder.cell is 'rnn'; it must be one of gru, lstm, plain"),
        ({"input_feeding": False}, "decoder: order 'bahdanau' feeds the context to the cells"),
        ({"attention": "none", "gate": True}, "decoder: attention kind 'none' has no keys to map, no gate"),
        ({"attention": "none", "map_keys": True}, "decoder: attention kind 'none' has no keys to map"),
        ({"attention": "banded"}, "unknown attention of a recurrent decoder in decoder.attention 'banded'"),
        (
            {"attention": {"kind": "local_m", "score": "add"}},
            "unknown field of decoder.attention with kind 'local_m' 'score'. Allowed: radius",
        ),
        ({"soft_steps": 3}, "decoder: soft_steps is 3 and choice 'soft'"),
        ({"choice": "hard", "attention": {"kind": "dot", "normalize": "relu"}}, "weights that sum to 1"),
        ({"choice": "hard", "attention": "local_p"}, "renormalize=True"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, message):
    with pytest.raises(UserError) as error:
        shaped(DECODERS.build, {"kind": "rnn", **fields}, "decoder", dim=D)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mechanism_is_as_wide_as_the_vectors():
    decoder = shaped(DECODERS.build, {"kind": "rnn", "hidden_dim": 3, "attention": "local_p"}, dim=6)
    assert paths(decoder)["mechanism/kernel"].shape == (1, 6, 6)
    assert paths(decoder)["query/kernel"].shape == (3, 6)
