"""Encoder and decoder together: what goes in before each token, tables that are shared, blocks that clash."""

import math

import jax
import numpy as np
import pytest
from flax import nnx

from data.text import subwords
from errors import UserError
from models.encoder_decoder import ENCODER_DECODER, END, PADDING, START, UNKNOWN
from tests.models.parameters import filled, program, shaped

VOCABULARY, DIM = 11, 8
SMALL = {"kind": "transformer", "num_layers": 1, "num_heads": 2, "hidden_dim": 5}


def build(make=filled, *, words=VOCABULARY, tokens=None, **changes):
    tokens = {"positions": "sinusoidal", **(tokens or {})}
    block = {
        "dim": DIM,
        "encoder": "gated_cnn",
        "decoder": SMALL,
        "positions": "sinusoidal",
        "tokens": tokens,
        **changes,
    }
    return make(ENCODER_DECODER.build, block, "config.model", columns={"words": words}, vocab_size=VOCABULARY)


BATCH = {
    "words": np.array([[5, 6, 7, END], [8, END, 0, 0]], np.int32),
    "mask": np.array([[True] * 4, [True, True, False, False]]),
    "tokens": np.array([[4, 9, END], [10, END, 0]], np.int32),
}


def test_special_tokens_are_those_of_the_data():
    names = ("PADDING", "UNKNOWN", "START", "END")
    assert [getattr(subwords, name) for name in names] == [PADDING, UNKNOWN, START, END] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "changes",
    [
        {"decoder": {"kind": "rnn", "attention": "dot"}, "tokens": {"tie_output": False}},
        {"tokens": {"positions": "none"}, "decoder": {**SMALL, "positions": "rotary"}},
        {"tokens": {"positions": {"kind": "learned", "max_length": 4}}, "share_embeddings": True},
    ],
    ids=["recurrent", "rotary", "learned"],
)
def test_tokens_one_by_one_have_the_logits_of_all_at_once_and_are_not_told_what_they_are(changes):
    model = build(**changes)

    @jax.jit
    def whole(model, batch):
        return model(batch).logits, model.start(model.encode(batch), 3)

    known, cache = whole(model, BATCH)
    token, step = np.full(2, START, np.int32), jax.jit(lambda model, cache, token: model.step(cache, token))
    for place in range(3):
        logits, cache = step(model, cache, token)
        np.testing.assert_allclose(logits, known[:, place], atol=1e-5)
        token = BATCH["tokens"][:, place]

    other = {**BATCH, "tokens": np.array([[4, 9, 5], [10, END, 0]], np.int32)}
    np.testing.assert_array_equal(known, whole(model, other)[0])
    earlier = {**BATCH, "tokens": np.array([[7, 9, END], [10, END, 0]], np.int32)}
    assert not np.allclose(known[0, 1], whole(model, earlier)[0][0, 1])


def test_one_table_serves_both_sides_and_the_output():
    def count(**changes):
        state = nnx.state(build(shaped, **changes), nnx.Param)
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state))

    apart = count(tokens={"tie_output": False})
    assert apart - count() == VOCABULARY * DIM  # the output's kernel; its bias stays
    assert count() - count(share_embeddings=True) == VOCABULARY * DIM


@pytest.mark.parametrize("name", ["dropout_rate", "output_dropout_rate"])
def test_dropout_of_tokens_needs_rngs(name):
    dropping, sure = build(shaped, tokens={name: 0.5}), build(shaped)
    assert program(dropping, BATCH) == program(sure, BATCH)
    assert "random_bits" in program(dropping, BATCH, seed=0)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"decoder": {}}, "config.model.decoder: kind is missing; allowed: rnn, transformer, convolution"),
        (
            {"decoder": "transfomer"},
            "unknown decoder in config.model.decoder 'transfomer'. Did you mean 'transformer'",
        ),
        ({"positions": "rotary"}, "in config.model.positions 'rotary'"),
        ({"tokens": {"positions": "rotary"}}, "in config.model.tokens.positions 'rotary'"),
        (
            {"decoder": {"kind": "rnn", "positions": "rotary"}},
            "has no field 'positions', which is of transformer",
        ),
        ({"tie": True}, "unknown field of config.model 'tie'"),
        ({"tokens": {"embedding": None}}, "unknown field of config.model.tokens 'embedding'"),
        (
            {"decoder": {"kind": "rnn", "depth": 2}},
            "unknown field of config.model.decoder with kind 'rnn' 'depth'",
        ),
        (
            {"share_embeddings": True, "words": 7},
            "config.model.share_embeddings needs words of one vocabulary",
        ),
    ],
)
def test_blocks_that_do_not_work_are_one_line(changes, said):
    with pytest.raises(UserError) as caught:
        build(shaped, **changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
