"""The Transformer decoder: the contract of all decoders, a block by hand, and what it attends by."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from models.mechanism_kinds import KINDS

from attention import masks
from errors import UserError
from models import decoders
from models.decoders.decoder import Memory
from models.decoders.transformer import ATTENTION, TransformerDecoder
from tests.models.decoder_contract import check_decoder
from tests.models.parameters import filled, normal

D = 12
OPTIONS = {"location": {"max_length": 9}, "synthesizer_dense": {"max_length": 9}, "local_p": {"radius": 1}}


@pytest.mark.parametrize(
    "block",
    [{"num_layers": 2, "norm": "pre"}, {"num_layers": 1, "norm": "post", "positions": {"kind": "rotary"}}],
    ids=["pre", "post, rotary"],
)
def test_it_is_a_decoder(block):
    check_decoder(filled(TransformerDecoder, D, num_heads=3, hidden_dim=7, **block), D)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_is_three_branches(norm):
    """`y + f(norm(y))` three times and a last norm, or `norm(y + f(y))` three times."""
    decoder = filled(TransformerDecoder, D, num_layers=1, num_heads=3, hidden_dim=7, norm=norm)
    y, vectors, mask = normal(2, 4, D), normal(2, 5, D, seed=2), jnp.ones((2, 5), bool)
    block = decoder.blocks[0]

    def expected(y):
        branches = (
            lambda x: block.self_attention(x, mask=masks.causal(4)),
            lambda x: block.memory_attention(x, vectors),
            block.feed_forward,
        )
        for branch, layer_norm in zip(branches, block.norms, strict=True):
            y = y + branch(layer_norm(y)) if norm == "pre" else layer_norm(y + branch(y))
        return decoder.final_norm(y) if norm == "pre" else y

    found = jax.jit(lambda y: decoder(y, Memory(vectors, mask, vectors)).vectors)(y)
    np.testing.assert_allclose(found, jax.jit(expected)(y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ATTENTION[1:])
def test_a_mechanism_sees_the_same_memory_place_by_place(kind):
    """T = 3 and S = 5, and the second row's memory ends before; the places know nothing of each other."""
    attention = {"kind": kind, **OPTIONS.get(kind, {})}
    decoder = filled(TransformerDecoder, 4, num_layers=1, num_heads=2, hidden_dim=3, attention=attention)
    mask = jnp.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    vectors = jnp.where(mask[..., None], normal(2, 5, 4, seed=2), jnp.nan)
    y = normal(2, 3, 4)
    layer = decoder.blocks[0].memory_attention

    def attend(y):
        key, value = layer.project(jnp.where(mask[..., None], vectors, 0))
        return layer.attend(y, key, value, mask=mask[:, None, None, :])

    whole = attend(y)
    np.testing.assert_allclose(attend(y[:, 1:2]), whole[:, 1:2], rtol=1e-5, atol=1e-5)
    assert np.isfinite(decoder(y, Memory(vectors, mask, vectors)).vectors).all()


def test_dropout_is_drawn_from_rngs_and_can_be_set_for_attention_alone():
    decoder = filled(TransformerDecoder, D, num_layers=1, hidden_dim=7, dropout_rate=0.5)
    plain = filled(TransformerDecoder, D, num_layers=1, hidden_dim=7)
    y, vectors = normal(2, 4, D), normal(2, 5, D, seed=2)
    memory = Memory(vectors, jnp.ones((2, 5), bool), vectors)
    np.testing.assert_array_equal(decoder(y, memory).vectors, plain(y, memory).vectors)
    one, other = (decoder(y, memory, rngs=nnx.Rngs(dropout=seed)).vectors for seed in (0, 1))
    assert (one != other).any()
    rates = [
        (block.self_attention.dropout_rate, block.memory_attention.dropout_rate)
        for rate, attention in ((None, None), (0.1, None), (None, {"kind": "linear"}))
        for block in filled(
            TransformerDecoder, D, dropout_rate=0.5, attention_dropout_rate=rate, attention=attention
        ).blocks[:1]
    ]
    assert rates == [(0.5, 0.5), (0.1, 0.1), (0.5, 0.0)]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"norm": "both"}, "norm is 'both'; it must be one of"),
        ({"num_heads": 5}, "dim 12 is not divisible by num_heads 5"),
        ({"positions": {"kind": "t5"}}, "positions kind 't5' is of a whole sequence to itself.*none, rotary"),
        ({"attention": {"kind": "banded", "window": (1, 1)}}, "attention kind 'banded' is of a whole"),
        ({"attention": {"kind": "dots"}}, "unknown attention kind 'dots'"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(fields, message):
    with pytest.raises(UserError, match=message) as error:
        decoders.build("transformer", D, fields, rngs=nnx.Rngs(0))
    assert "\n" not in str(error.value)


def test_its_mechanisms_are_of_the_catalogue():
    assert set(ATTENTION) <= KINDS.keys()
