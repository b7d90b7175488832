"""The Transformer decoder: the contract of all decoders, a block by hand, and what it attends by."""

import jax
import numpy as np
import pytest
from flax import nnx

from attention import masks
from errors import UserError
from models.decoders import DECODERS
from models.decoders.decoder import Memory
from models.decoders.transformer import ATTENTION, TransformerDecoder
from models.layers.multi_head_attention import MultiHeadAttention
from tests.models.decoders.decoder_contract import check_decoder
from tests.models.parameters import filled, normal, program, real, run, shaped

D = 12
OPTIONS = {"location": {"max_length": 9}, "synthesizer_dense": {"max_length": 9}, "local_p": {"radius": 1}}


@pytest.mark.parametrize(
    "block",
    [
        {"num_layers": 2, "norm": "pre", "num_kv_heads": 1},
        {"num_layers": 1, "norm": "post", "positions": "rotary"},
    ],
    ids=["pre, grouped", "post, rotary"],
)
def test_it_is_a_decoder(block):
    check_decoder(filled(TransformerDecoder, D, num_heads=3, hidden_dim=7, **block), D)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_is_three_branches(norm):
    """`y + f(norm(y))` three times and a last norm, or `norm(y + f(y))` three times."""
    decoder = filled(TransformerDecoder, D, num_layers=1, num_heads=3, hidden_dim=7, norm=norm)
    y, vectors, mask = normal(2, 4, D), normal(2, 5, D, seed=2), np.ones((2, 5), bool)

    @jax.jit
    def both(decoder, y):
        block, z = decoder.blocks[0], y
        branches = (
            lambda x: block.self_attention(x, mask=masks.causal(4)),
            lambda x: block.memory_attention(x, vectors),
            block.feed_forward,
        )
        for branch, layer_norm in zip(branches, block.norms, strict=True):
            z = z + branch(layer_norm(z)) if norm == "pre" else layer_norm(z + branch(z))
        expected = decoder.final_norm(z) if norm == "pre" else z
        return decoder(y, Memory(vectors, mask, vectors)).vectors, expected

    np.testing.assert_allclose(*both(decoder, y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ATTENTION)
def test_a_mechanism_sees_the_same_memory_place_by_place(kind):
    """T = 3 and S = 5, and the second row's memory ends before; the places know nothing of each other."""
    layer = filled(MultiHeadAttention, 4, 2, attention={"kind": kind, **OPTIONS.get(kind, {})})
    mask = real(5, 2, of=5)
    vectors, y = np.where(mask[..., None], normal(2, 5, 4, seed=2), np.float32(0)), normal(2, 3, 4)

    @jax.jit
    def attend(layer, y):
        key, value = layer.project(vectors)
        return [layer.attend(x, key, value, mask=mask[:, None, None]) for x in (y, y[:, 1:2])]

    whole, alone = attend(layer, y)
    np.testing.assert_allclose(alone, whole[:, 1:2], rtol=1e-5, atol=1e-5)


def test_dropout_needs_rngs_and_can_be_set_for_attention_alone():
    def make(**fields):
        return shaped(TransformerDecoder, D, num_layers=1, hidden_dim=7, **fields)

    y, vectors = normal(2, 4, D), normal(2, 5, D, seed=2)
    memory = Memory(vectors, np.ones((2, 5), bool), vectors)
    assert program(make(dropout_rate=0.5), y, memory) == program(make(), y, memory)
    assert "random_bits" in program(make(dropout_rate=0.5), y, memory, seed=0)
    rates = [
        (block.self_attention.dropout_rate, block.memory_attention.dropout_rate)
        for rate, attention in ((None, "dot_product"), (0.1, "dot_product"), (None, "linear"))
        for block in make(dropout_rate=0.5, attention_dropout_rate=rate, attention=attention).blocks
    ]
    assert rates == [(0.5, 0.5), (0.1, 0.1), (0.5, 0.0)]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"norm": "both"}, "decoder.norm is 'both'; it must be one of pre, post"),
        ({"num_heads": 5}, "decoder: dim 12 is not divisible by num_heads 5; give another head_dim"),
        (
            {"positions": "t5"},
            "of one query at a time in decoder.positions 't5'. Allowed: none, rotary",
        ),
        ({"attention": "banded"}, "unknown attention of one query at a time in decoder.attention 'banded'"),
        ({"attention": "dots"}, "unknown attention of one query at a time in decoder.attention 'dots'"),
        (
            {"positions": {"kind": "none", "base": 1.0}},
            "positions with kind 'none' has no field 'base', which is of rotary",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(fields, message):
    with pytest.raises(UserError) as error:
        DECODERS.build({"kind": "transformer", **fields}, "decoder", dim=D, rngs=nnx.Rngs(0))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_padding_is_not_read_though_it_is_nan():
    """Of a mechanism that estimates a softmax, whose sums of keys a weight of 0 would not keep clean."""
    decoder = filled(TransformerDecoder, 4, num_layers=1, num_heads=2, hidden_dim=3, attention="linear")
    vectors = np.where(real(5, 2, of=5)[..., None], normal(2, 5, 4, seed=2), np.float32(np.nan))
    found = run(decoder, normal(2, 3, 4), Memory(vectors, real(5, 2, of=5), vectors))
    assert np.isfinite(found.vectors).all()
