"""Encoder and decoder together: what goes in before each token, tables that are shared, blocks that clash."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data.text import subwords
from errors import UserError
from models import encoder_decoder
from models.encoder_decoder import END, PADDING, START, UNKNOWN

VOCABULARY, DIM = 11, 8


def block(**changes):
    return {
        "dim": DIM,
        "positions": {"kind": "sinusoidal"},
        "encoder": {"kind": "transformer", "num_layers": 1, "num_heads": 2},
        "decoder": {"kind": "transformer", "num_layers": 1, "num_heads": 2},
        "dropout_rate": 0.1,
        **changes,
    }


def build(**changes):
    inputs = {"words": VOCABULARY}
    return encoder_decoder.build(block(**changes), inputs=inputs, vocab_size=VOCABULARY, rngs=nnx.Rngs(0))


BATCH = {
    "words": np.array([[5, 6, 7, END], [8, END, 0, 0]], np.int32),
    "mask": np.array([[True] * 4, [True, True, False, False]]),
    "tokens": np.array([[4, 9, END], [10, END, 0]], np.int32),
}


def test_special_tokens_are_those_of_the_data():
    names = ("PADDING", "UNKNOWN", "START", "END")
    assert [getattr(subwords, name) for name in names] == [PADDING, UNKNOWN, START, END] == [0, 1, 2, 3]


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_tokens_one_by_one_have_the_logits_of_all_at_once(positions):
    model = build(positions={"kind": positions})
    known = model(BATCH).logits
    memory = model.encode(BATCH)
    cache, token = model.start(memory, 3), jnp.full(2, START)
    step = jax.jit(lambda cache, token: model.step(cache, token))
    for place in range(3):
        logits, cache = step(cache, token)
        np.testing.assert_allclose(logits, known[:, place], atol=1e-5)
        token = jnp.asarray(BATCH["tokens"][:, place])


def test_a_token_is_not_told_what_it_is():
    model = build()
    other = {**BATCH, "tokens": np.array([[4, 9, 5], [10, END, 0]], np.int32)}
    np.testing.assert_array_equal(model(BATCH).logits[:, :3], model(other).logits[:, :3])
    earlier = {**BATCH, "tokens": np.array([[7, 9, END], [10, END, 0]], np.int32)}
    assert not np.allclose(model(BATCH).logits[0, 1], model(earlier).logits[0, 1])


def test_one_table_serves_both_sides_and_the_output():
    def count(**changes):
        params = nnx.state(build(**changes), nnx.Param)
        return sum(leaf.size for leaf in jax.tree.leaves(params))

    apart = count(tie_output=False)
    assert apart - count() == VOCABULARY * DIM  # the output's kernel; its bias stays
    assert count() - count(share_embeddings=True) == VOCABULARY * DIM


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"decoder": {}}, "config.model.decoder.kind is missing"),
        ({"decoder": {"kind": "transfomer"}}, "unknown decoder 'transfomer'. Did you mean 'transformer'"),
        ({"encoder": {"kind": "rnn"}, "positions": {"kind": "rotary"}}, "rotary"),
        ({"decoder": {"kind": "rnn"}, "positions": {"kind": "rotary"}}, "decoder 'rnn' has none of"),
        ({"tie": True}, "tie"),
        ({"decoder": {"kind": "rnn", "depth": 2}}, "depth"),
    ],
)
def test_blocks_that_do_not_work_are_one_line(changes, said):
    with pytest.raises(UserError, match=said) as caught:
        build(**changes)
    assert "\n" not in str(caught.value)


def test_one_table_needs_one_vocabulary():
    with pytest.raises(UserError, match="share_embeddings"):
        encoder_decoder.build(
            block(share_embeddings=True), inputs={"words": 7}, vocab_size=VOCABULARY, rngs=nnx.Rngs(0)
        )
