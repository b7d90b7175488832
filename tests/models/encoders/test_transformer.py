"""The Transformer block by hand, and the encoder made of it."""

import jax
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.encoders.transformer import TransformerBlock, TransformerEncoder
from tests.models.parameters import filled, normal, real, run, shaped

B, T, D, N, F = 2, 4, 6, 3, 10
MASK = real(4, 2, of=T)


def layer_norm(module, x):
    """Zero mean and unit variance over the last axis, then scale and bias, in float64."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    normalised = centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-6)
    return normalised * np.asarray(module.scale[...]) + np.asarray(module.bias[...])


each = jax.jit(lambda layer, x: layer(x))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_block_is_the_formula(norm):
    block, x = filled(TransformerBlock, D, N, F, norm=norm), normal(B, T, D)
    attend = lambda x: np.asarray(each(block.attention, np.asarray(x, np.float32)))  # noqa: E731
    forward = lambda x: np.asarray(each(block.feed_forward, np.asarray(x, np.float32)))  # noqa: E731
    first, second = block.attention_norm, block.feed_forward_norm
    if norm == "pre":
        y = x + attend(layer_norm(first, x))
        expected = y + forward(layer_norm(second, y))
    else:
        y = layer_norm(first, x + attend(x))
        expected = layer_norm(second, y + forward(y))
    np.testing.assert_allclose(each(block, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_is_its_blocks_and_a_last_norm_if_pre(norm):
    """Localness below, then the feed-forward layer alone, then full attention; order means nothing to it."""
    attention = ("localness", {"kind": "none"}, {"kind": "dot_product"})
    sizes = {"num_layers": 3, "num_heads": N, "hidden_dim": F}
    encoder, x = filled(TransformerEncoder, D, attention=attention, norm=norm, **sizes), normal(1, T, D)
    middle = encoder.blocks[1]
    assert (middle.attention, middle.attention_norm) == (None, None)

    @jax.jit
    def both(encoder, x):
        y = encoder.blocks[0](x)
        middle = encoder.blocks[1]
        forward = middle.feed_forward(middle.feed_forward_norm(y) if norm == "pre" else y)
        y = y + forward if norm == "pre" else middle.feed_forward_norm(y + forward)
        return encoder.blocks[2](y), encoder(x), *encoder(x, return_weights=True)

    expected, found, same, weights = both(encoder, x)
    expected = layer_norm(encoder.final_norm, expected) if norm == "pre" else expected
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found, same)
    assert [w if w is None else w.shape for w in weights] == [(1, N, T, T), None, (1, N, T, T)]


def test_weights_are_of_what_is_real_and_order_means_nothing():
    encoder = filled(TransformerEncoder, D, num_layers=2, num_heads=N, hidden_dim=F)
    x, order = normal(B, T, D), np.array([2, 0, 3, 1])
    encode = jax.jit(lambda encoder, x, mask: encoder(x, mask, return_weights=True))
    output, weights = encode(encoder, x, MASK)
    assert [w.shape for w in weights] == [(B, N, T, T)] * 2
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(weights)[:, 1, :, :, 2:], 0)
    assert (weights[0] != weights[1]).any()
    np.testing.assert_allclose(
        encode(encoder, x[:, order], MASK[:, order])[0], output[:, order], rtol=1e-5, atol=1e-5
    )
    unmasked = np.asarray(run(encoder, x))
    assert (unmasked[1, :2] != output[1, :2]).all()  # without the mask it is seen
    np.testing.assert_allclose(unmasked[0], output[0], rtol=1e-5, atol=1e-5)


def test_relative_positions_and_grouped_heads_are_in_every_block():
    positions = {"kind": "t5", "num_buckets": 4, "max_distance": 3}
    encoder = shaped(TransformerEncoder, 12, num_heads=4, num_kv_heads=2, hidden_dim=F, positions=positions)
    for block in encoder.blocks:
        assert block.attention.relative.table.shape == (4, 4)
        assert (block.attention.key.out_features, block.attention.query.out_features) == (6, 12)


def test_dropout_of_attention_weights_is_that_of_the_block_where_there_are_weights():
    def rate(attention, **rates):
        block = shaped(TransformerBlock, D, N, F, attention=attention, dropout_rate=0.3, **rates)
        return block.attention.dropout_rate

    assert rate("dot_product") == 0.3
    assert rate({"kind": "dot_product"}, attention_dropout_rate=0.1) == 0.1
    assert rate("linear") == 0.0
    with pytest.raises(UserError, match="attention kind 'linear' has no weights to drop"):
        rate("linear", attention_dropout_rate=0.1)


def test_a_list_of_another_length_is_one_line():
    with pytest.raises(UserError, match="attention lists 1 mechanisms; there are 2 layers"):
        TransformerEncoder(D, hidden_dim=F, attention=({"kind": "dot_product"},), rngs=nnx.Rngs(0))
