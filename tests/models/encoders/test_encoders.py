"""Every encoder by config word: padding and company change nothing; sizes; mistakes are one line."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.encoders import ENCODERS
from tests.models.parameters import filled, normal, paths, program, real, shaped

T, D = 6, 6
LENGTHS = (5, 3, 0)
MASK = real(*LENGTHS, of=T)

CASES = {
    "none": {"kind": "none"},
    "window_fc": {"kind": "window_fc", "window": (1, 2), "hidden_dim": 7},
    "cnn": {"kind": "cnn", "num_layers": 2, "dilation": 2},
    "cnn without norm": {"kind": "cnn", "num_layers": 1, "kernel_size": 4, "norm": "none"},
    "multi_width_cnn": {"kind": "multi_width_cnn", "widths": (2, 3)},
    "gated_cnn": {"kind": "gated_cnn", "num_layers": 2, "kernel_size": 4, "hidden_dim": 7},
    "rnn": {"kind": "rnn", "num_layers": 2, "hidden_dim": 4},
    "transformer": {"kind": "transformer", "num_heads": 2, "hidden_dim": 7, "num_layers": 2},
    "rotary": {
        "kind": "transformer",
        "num_layers": 1,
        "num_heads": 3,
        "norm": "post",
        "positions": "rotary",
        "attention": {"kind": "banded", "window": (1, 1)},
    },
}


def make(case):
    return filled(ENCODERS.build, CASES[case], dim=D)


def test_every_encoder_is_tried():
    assert {block["kind"] for block in CASES.values()} == set(ENCODERS)


@pytest.mark.parametrize("case", CASES)
def test_padding_and_company_change_nothing(case):
    """NaN there neither, in values or gradients, which reach every parameter; alone is as in a batch.

    Rows have all amounts of padding: one is all of it, and alone there is none.
    """
    structure, params, statistics = nnx.split(make(case), nnx.Param, ...)
    x = normal(len(LENGTHS), T, D)

    @jax.jit
    def encode(params, x, mask):
        return nnx.merge(structure, params, statistics)(x, mask)

    @jax.jit
    def learn(params, x):
        def loss(params):
            encoder = nnx.merge(structure, params, statistics, copy=True)
            y = encoder(x, MASK, train=True)
            return jnp.sin(y).sum(), (y, nnx.split(encoder, nnx.Param, ...)[2])

        return jax.grad(loss, has_aux=True)(params)

    dirty = jnp.where(MASK[..., None], x, jnp.nan)
    for one, two in zip(*(jax.tree.leaves(learn(params, given)) for given in (x, dirty)), strict=True):
        np.testing.assert_array_equal(one, two)
    gradients, (y, _) = learn(params, x)
    y = encode(params, dirty, MASK) if jax.tree.leaves(statistics) else y
    assert y.shape == x.shape
    assert y.dtype == jnp.float32
    np.testing.assert_array_equal(y[~MASK], 0)
    assert np.isfinite(y).all()
    alone = encode(params, x[1:2, : LENGTHS[1]], MASK[1:2, : LENGTHS[1]])
    np.testing.assert_allclose(alone[0], y[1, : LENGTHS[1]], rtol=1e-5, atol=1e-5)

    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients):
        name = jax.tree_util.keystr(path)
        # What a normalisation subtracts, or adds to all scores of a query, has no effect.
        normalised = case == "cnn" and "taps" in name
        without_effect = (normalised or "key" in name) and "bias" in name
        assert np.isfinite(leaf).all(), name
        assert without_effect or (np.asarray(leaf) != 0).any(), name


# Biases and scales at the end of each.
SIZES = {
    "none": 0,
    "window_fc": 4 * 6 * 7 + 7 * 6 + 7 + 6,
    "cnn": 2 * (3 * 6 * 6 + 6 + 2 * 6),
    "cnn without norm": 4 * 6 * 6 + 6,
    "multi_width_cnn": 2 * 6 * 3 + 3 * 6 * 3 + 3 + 3,
    "gated_cnn": 6 * 7 + 2 * 4 * 7 * 14 + 7 * 6 + 7 + 2 * 14 + 6,
    "rnn": 2 * (6 * 16 + 4 * 16 + 16) + 2 * (8 * 16 + 4 * 16 + 16) + 8 * 6 + 6,
    "transformer": 2 * (4 * 6 * 6 + 6 * 7 + 7 * 6 + 4 * 6 + 7 + 6 + 2 * 12) + 12,
    "rotary": 4 * 6 * 6 + 6 * 24 + 24 * 6 + 4 * 6 + 24 + 6 + 2 * 12,
}


@pytest.mark.parametrize("case", CASES)
def test_parameters(case):
    state = nnx.state(shaped(ENCODERS.build, CASES[case], dim=D), nnx.Param)
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state)) == SIZES[case]


@pytest.mark.parametrize("word", [word for word in ENCODERS if "dropout_rate" in ENCODERS.fields(word)])
def test_dropout_needs_rngs(word):
    """Without, all is as if there were none; with, random numbers are drawn."""
    layers = {"num_layers": 2} if word == "rnn" else {}  # which drops between layers alone
    dropping, sure = (
        shaped(ENCODERS.build, {"kind": word, "dropout_rate": rate, **layers}, dim=4) for rate in (0.5, 0.0)
    )
    x, mask = normal(2, 3, 4), real(3, 2, of=3)
    assert program(dropping, x, mask) == program(sure, x, mask)
    assert "random_bits" in program(dropping, x, mask, seed=0)
    assert "random_bits" not in program(sure, x, mask, seed=0)
    one_layer = shaped(ENCODERS.build, {"kind": "rnn", "dropout_rate": 0.5}, dim=4)
    assert word != "rnn" or "random_bits" not in program(one_layer, x, mask, seed=0)


@pytest.mark.parametrize(
    "block, message",
    [
        (
            {"kind": "rrn"},
            "unknown encoder in config.model.encoder 'rrn'. Did you mean 'rnn'? Allowed: cnn, gat",
        ),
        ({"num_layers": 1}, "config.model.encoder: kind is missing; allowed: none, window_fc, cnn"),
        (
            {"kind": "rnn", "num_heads": 2},
            "config.model.encoder with kind 'rnn' has no field 'num_heads', which is of transformer; it",
        ),
        (
            {"kind": "rnn", "dim": 2},
            "unknown field of config.model.encoder with kind 'rnn' 'dim'. Allowed: bidirectional, ",
        ),
        (
            {"kind": "rnn", "num_layers": 0},
            "config.model.encoder.num_layers is 0; it must be an integer, at least 1",
        ),
        (
            {"kind": "rnn", "cell": "lsmt"},
            "config.model.encoder.cell is 'lsmt'; it must be one of lstm, gru, plain",
        ),
        (
            {"kind": "cnn", "dropout_rate": 1.0},
            "config.model.encoder.dropout_rate is 1.0; it must be a number, in [0, 1)",
        ),
        (
            {"kind": "cnn", "norm": "layer"},
            "config.model.encoder.norm is 'layer'; it must be one of batch, none",
        ),
        (
            {"kind": "window_fc", "window": 3},
            "config.model.encoder.window is 3; it must be (an integer, at least 0, an in",
        ),
        ({"kind": "window_fc", "window": (1, -1)}, "config.model.encoder.window is (1, -1); it must be"),
        ({"kind": "window_fc", "activation": "tanh"}, "activation is 'tanh'; it must be one of relu, gelu"),
        (
            {"kind": "transformer", "norm": "both"},
            "config.model.encoder.norm is 'both'; it must be one of pre, post",
        ),
        ({"kind": "transformer", "num_heads": 4, "head_dim": None, "dim": 6}, "'dim'"),
        (
            {"kind": "transformer", "attention": "dott"},
            "unknown attention in config.model.encoder.attention 'dott'",
        ),
        (
            {"kind": "multi_width_cnn", "widths": (3, 4, 5, 6, 7, 8, 9)},
            "config.model.encoder: widths is (3, 4, 5, 6, 7, 8, 9); it must hold 1 to dim (6) integers",
        ),
        ({"kind": "multi_width_cnn", "widths": (0,)}, "config.model.encoder: widths is (0,)"),
        ({"kind": "multi_width_cnn", "widths": ()}, "config.model.encoder: widths is ()"),
    ],
)
def test_a_mistake_is_one_line(block, message):
    with pytest.raises(UserError) as error:
        ENCODERS.build(block, "config.model.encoder", dim=D, rngs=nnx.Rngs(0))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_widths_follow_that_of_the_vectors():
    assert paths(shaped(ENCODERS.build, "window_fc", dim=6))["hidden/0/kernel"].shape == (30, 24)
    assert paths(shaped(ENCODERS.build, "transformer", dim=8))[
        "blocks/0/feed_forward/input/kernel"
    ].shape == (8, 32)
    one, both = (
        shaped(ENCODERS.build, {"kind": "rnn", "bidirectional": both}, dim=6) for both in (False, True)
    )
    assert (one.layers[0].hidden_dim, both.layers[0].hidden_dim) == (6, 3)
    assert one.output is both.output is None
