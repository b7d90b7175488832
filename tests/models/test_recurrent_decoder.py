"""Recurrent decoders: single steps with a pencil, whole sequences against a loop in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.decoders.decoder import Memory
from models.decoders.recurrent import RecurrentDecoder
from tests.models.decoder_contract import check_decoder
from tests.models.parameters import arrays, filled, normal

B, T, S, D, H = 3, 4, 6, 2, 5
LENGTHS = (6, 3, 1)
MASK = jnp.arange(S)[None] < jnp.asarray(LENGTHS)[:, None]
LUONG = {"order": "luong", "attention": {"kind": "dot"}}
LN3 = math.log(3)


def memory(vectors=None):
    vectors = normal(B, S, D, seed=2) if vectors is None else vectors
    return Memory(jnp.where(MASK[..., None], vectors, jnp.nan), MASK, vectors)


def of_width_one(values, **fields):
    """A decoder with D = H = 1 and a plain cell, its parameters as given, 0 where not."""
    decoder = nnx.eval_shape(lambda: RecurrentDecoder(1, cell="plain", **fields, rngs=nnx.Rngs(0)))
    state = nnx.to_pure_dict(nnx.state(decoder))
    flat, tree = jax.tree_util.tree_flatten_with_path(state)
    named = {"/".join(str(part.key) for part in path): leaf for path, leaf in flat}
    assert set(values) <= set(named), named.keys()
    leaves = [
        jnp.asarray(values.get(name, np.zeros(leaf.shape)), jnp.float32).reshape(leaf.shape)
        for name, leaf in named.items()
    ]
    nnx.update(decoder, jax.tree.unflatten(tree, leaves))
    return decoder


def pair(*vectors):
    """A memory of one sequence of vectors of width 1."""
    x = jnp.asarray(vectors, jnp.float32).reshape(1, -1, 1)
    return Memory(x, jnp.ones(x.shape[:2], bool), x)


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
            "cells/0/input/kernel": [3, 4],  # of y and of the context
            "cells/0/input/bias": 0.5,
            "cells/0/recurrent_kernel": -6,
            "output/kernel": [[10, 0], [0, 0], [0, 1]],  # of state, y and context, two numbers for one
            "output/bias": [-4, 0],
        }
    )
    h = math.atanh(0.6)  # 0.693
    found = decoder(jnp.full((1, 1, 1), 0.2), pair(h, -h), return_weights=True)
    np.testing.assert_allclose(found.weights[0], [[[[0.75, 0.25]]]], rtol=1e-6)
    context = 0.75 * h - 0.25 * h
    state = math.tanh(3 * 0.2 + 4 * context + 0.5 - 6 * 0.5)
    assert 10 * state - 4 < context
    np.testing.assert_allclose(found.vectors, [[[context]]], rtol=1e-6)
    decoder.output.bias[...] = jnp.asarray([4.0, 0.0])
    found = decoder(jnp.full((1, 1, 1), 0.2), pair(h, -h))
    np.testing.assert_allclose(found.vectors, [[[max(10 * state + 4, context)]]], rtol=1e-5)


def test_a_step_in_the_order_of_luong():
    decoder = of_width_one(
        HALF
        | {
            "cells/0/input/kernel": [1, -1],  # of y and of the vector before, 0 at first
            "cells/0/recurrent_kernel": 2,
            "output/kernel": [2, -1],  # of state and context
            "output/bias": 0.25,
        },
        **LUONG,
    )
    y = [math.atanh(0.5) - 1, 0.3]  # so that the first state made is tanh(y + 2 (1/2)) = 1/2
    found = decoder(jnp.asarray(y, jnp.float32).reshape(1, 2, 1), pair(2 * LN3, 0), return_weights=True)
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
        attention={"kind": "general"},
        order=order,
        input_feeding=feeding,
        gate=True,
    )
    y, seen = normal(B, T, D), memory()
    found = decoder(y, seen, return_weights=True)
    for row, length in enumerate(LENGTHS):
        h = np.asarray(seen.vectors[row, :length], np.float64)
        vectors, weights = loop(arrays(decoder), order, feeding, np.asarray(y[row], np.float64), h)
        np.testing.assert_allclose(found.vectors[row], vectors, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.weights[0][row, 0, :, :length], weights, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(found.weights[0][row, 0, :, length:], 0)


CASES = {
    "bahdanau": {"cell": "lstm", "hidden_dim": 3, "gate": True},
    "luong": {"order": "luong", "attention": {"kind": "local_p", "radius": 2}, "num_layers": 2},
    "all at once": {
        "order": "luong",
        "attention": {"kind": "local_m", "radius": 1, "score": "general"},
        "input_feeding": False,
        "cell": "plain",
    },
    "hard": {"choice": "hard", "summary": "mean"},
    "none": {"attention": {"kind": "none"}},
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_a_decoder(case):
    check_decoder(filled(RecurrentDecoder, 6, **CASES[case]), 6, attends=case != "none")


@pytest.mark.parametrize("case", ["bahdanau", "luong"])
def test_dropout(case):
    y, seen = normal(B, T, D), memory()
    sure, decoder = (filled(RecurrentDecoder, D, **CASES[case], dropout_rate=rate) for rate in (0.0, 0.5))
    rngs = nnx.Rngs(dropout=0)
    quiet = decoder(y, seen, train=True).vectors
    np.testing.assert_array_equal(sure(y, seen, train=True, rngs=rngs).vectors, quiet)
    loud = decoder(y, seen, rngs=rngs).vectors
    assert ((loud != quiet) & jnp.isfinite(loud)).any(axis=-1).all()


def test_the_window_of_local_m_walks_with_the_target():
    """Equal vectors, so equal weights; at the fourth place a source of one vector lies behind."""
    decoder = filled(RecurrentDecoder, D, **CASES["all at once"])
    found = decoder(normal(B, T, D), memory(jnp.ones((B, S, D))), return_weights=True)
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
    decoder = filled(RecurrentDecoder, D, choice="hard", order=order, input_feeding=order == "bahdanau")
    # The context, last of what the output reads, comes out as it is, or its tanh.
    shown = np.zeros(decoder.output.kernel.shape, np.float32)
    shown[-D:] = np.repeat(np.eye(D), shown.shape[1] // D, axis=1)
    decoder.output.kernel[...], decoder.output.bias[...] = jnp.asarray(shown), decoder.output.bias[...] * 0
    y, seen = normal(B, T, D), memory(3 * normal(B, S, D, seed=2))
    values = np.asarray(seen.vectors if order == "bahdanau" else np.tanh(seen.vectors))

    def position(found):
        """Which vector of the memory was looked at, `[B, T]`, each being one that has a weight."""
        same = np.abs(np.asarray(found.vectors)[:, :, None] - values[:, None]).max(axis=-1) < 1e-6
        assert (same.sum(axis=-1) == 1).all()
        return same.argmax(axis=-1)

    run = jax.jit(lambda key: decoder(y, seen, train=True, rngs=nnx.Rngs(dropout=key), return_weights=True))
    quiet = decoder(y, seen, rngs=nnx.Rngs(dropout=0), return_weights=True)
    loud = [run(jax.random.key(seed)) for seed in range(3)]
    np.testing.assert_array_equal(position(quiet), quiet.weights[0][:, 0].argmax(axis=-1))
    assert (position(loud[0]) != position(loud[1])).any()
    for found in (quiet, *loud):
        weights = np.asarray(found.weights[0][:, 0])
        looked = np.take_along_axis(weights, position(found)[..., None], axis=-1)[..., 0]
        np.testing.assert_allclose(found.draws.log_probability, np.log(looked), atol=1e-5)
        safe = np.where(weights > 0, weights, 1)
        np.testing.assert_allclose(found.draws.entropy, -(safe * np.log(safe)).sum(axis=-1), atol=1e-5)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"cell": "rnn"}, ValueError, r"cell is 'rnn'; it must be one of \('plain', 'gru', 'lstm'\)"),
        ({"input_feeding": False}, ValueError, "order 'bahdanau' feeds the context to the cells"),
        ({"attention": {"kind": "none"}, "gate": True}, ValueError, "kind 'none' has no options, no gate"),
        ({"attention": {"kind": "banded", "window": (1, 1)}}, UserError, "unknown attention kind of decoder"),
        ({"attention": {"kind": "local_m", "radius": 1, "score": "add"}}, ValueError, "score is 'add'"),
        ({"soft_steps": 3}, ValueError, "soft_steps is 3 and choice 'soft'"),
        ({"choice": "hard", "attention": {"kind": "dot", "normalize": "relu"}}, UserError, "must sum to 1"),
        ({"choice": "hard", "attention": {"kind": "local_p", "radius": 1}}, UserError, "renormalize=True"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        nnx.eval_shape(lambda: RecurrentDecoder(D, **fields, rngs=nnx.Rngs(0)))


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_hard_attention_takes_the_mean_in_the_first_steps_of_training(order):
    fields = {"order": order, "input_feeding": order == "bahdanau"}
    y, seen = normal(B, T, D, seed=3), memory()
    soft = filled(RecurrentDecoder, D, **fields)(y, seen).vectors
    decoder = filled(RecurrentDecoder, D, choice="hard", soft_steps=2, **fields)
    decoder.steps[...] = jnp.zeros(())  # `filled` makes up every array
    decoder(y, seen)  # is no step of training
    rngs = nnx.Rngs(dropout=0)
    first, second, third = (decoder(y, seen, train=True, rngs=rngs) for _ in range(3))
    for found in (first, second):
        np.testing.assert_allclose(found.vectors[:2], soft[:2], atol=1e-6)
        assert not found.draws.log_probability.any()
    assert third.draws.log_probability[:2].all()
