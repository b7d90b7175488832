"""The Transformer block by hand, and what an encoder must not depend on: padding and order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.encoders.transformer import TransformerBlock, TransformerEncoder
from tests.models.parameters import filled, normal

B, T, D, N, F = 2, 4, 6, 3, 10
LENGTHS = (4, 2)
MASK = jnp.arange(T)[None] < jnp.asarray(LENGTHS)[:, None]


def layer_norm(module, x):
    """Zero mean and unit variance over the last axis, then scale and bias, in float64."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    normalised = centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-6)
    return normalised * np.asarray(module.scale[...]) + np.asarray(module.bias[...])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_block_is_the_formula(norm):
    block, x = filled(TransformerBlock, D, N, F, norm=norm), normal(B, T, D)
    attend = lambda x: np.asarray(block.attention(jnp.asarray(x, jnp.float32)))  # noqa: E731
    forward = lambda x: np.asarray(block.feed_forward(jnp.asarray(x, jnp.float32)))  # noqa: E731
    first, second = block.attention_norm, block.feed_forward_norm
    if norm == "pre":
        y = x + attend(layer_norm(first, x))
        expected = y + forward(layer_norm(second, y))
    else:
        y = layer_norm(first, x + attend(x))
        expected = layer_norm(second, y + forward(y))
    np.testing.assert_allclose(block(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm, last", [("pre", True), ("post", False)])
def test_encoder_is_its_blocks_and_a_last_norm_if_pre(norm, last):
    encoder, x = filled(TransformerEncoder, 2, D, N, F, norm=norm), normal(B, T, D)
    expected = encoder.blocks[1](encoder.blocks[0](x))
    expected = layer_norm(encoder.final_norm, expected) if last else expected
    np.testing.assert_allclose(encoder(x), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def encoder():
    return filled(TransformerEncoder, 2, D, N, F, dropout_rate=0.3)


def test_padding_is_not_seen(encoder):
    x, encode = normal(B, T, D), jax.jit(encoder)
    expected = encode(x, MASK)
    for garbage in (0.0, jnp.nan, jnp.inf, 1e9):
        found = encode(jnp.where(MASK[:, :, None], x, garbage), MASK)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(expected[~MASK], 0)
    assert (encoder(x)[1, :2] != expected[1, :2]).all()  # without the mask it is seen


def test_alone_in_a_batch_or_padded_further_is_the_same(encoder):
    x, encode = normal(B, T, D), jax.jit(encoder)
    batched = encode(x, MASK)
    further = encode(jnp.pad(x, ((0, 0), (0, 3), (0, 0))), jnp.pad(MASK, ((0, 0), (0, 3))))
    for row, length in enumerate(LENGTHS):
        alone = encode(x[row : row + 1, :length])[0]
        for other in (batched, further):
            np.testing.assert_allclose(other[row, :length], alone, rtol=1e-5, atol=1e-5)


def test_padding_gives_no_gradient(encoder):
    structure, params = nnx.split(encoder)

    @jax.jit
    def gradients(x, mask):
        def loss(params, x):
            y = nnx.merge(structure, params)(x, mask)
            return jnp.sum(jnp.sin(y))

        return jax.grad(loss, argnums=(0, 1))(params, x)

    x = normal(B, T, D)
    expected, by_x = gradients(x, MASK)
    found, _ = gradients(jnp.where(MASK[:, :, None], x, jnp.nan), MASK)
    assert (by_x[~MASK] == 0).all()
    assert (by_x[MASK] != 0).all()
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_without_positions_order_means_nothing(encoder):
    x, order = normal(B, T, D), jnp.array([2, 0, 3, 1])
    np.testing.assert_allclose(encoder(x[:, order]), encoder(x)[:, order], rtol=1e-5, atol=1e-5)


def test_weights_on_request_change_no_output(encoder):
    x = normal(B, T, D)
    output, weights = encoder(x, MASK, return_weights=True)
    np.testing.assert_array_equal(output, encoder(x, MASK))
    assert [w.shape for w in weights] == [(B, N, T, T)] * 2
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(weights)[:, 1, :, :, 2:], 0)
    assert (weights[0] != weights[1]).any()


def test_dropout_needs_rngs_and_follows_their_key(encoder):
    plain, x = filled(TransformerEncoder, 2, D, N, F), normal(B, T, D)
    np.testing.assert_array_equal(encoder(x), plain(x))
    dropped = jax.jit(lambda seed: encoder(x, rngs=nnx.Rngs(dropout=jax.random.key(seed))))
    np.testing.assert_array_equal(dropped(0), dropped(0))
    assert (dropped(0) != dropped(1)).any(axis=(1, 2)).all()


def test_every_block_may_have_a_mechanism_of_its_own():
    """Localness below, then the feed-forward layer alone, then full attention."""
    mechanisms = ({"kind": "localness"}, {"kind": "none"}, {"kind": "dot_product"})
    encoder, x = filled(TransformerEncoder, 3, D, N, F, attention=mechanisms), normal(1, T, D)
    output, weights = encoder(x, return_weights=True)
    assert [w if w is None else w.shape for w in weights] == [(1, N, T, T), None, (1, N, T, T)]
    middle = encoder.blocks[1]
    assert (middle.attention, middle.attention_norm) == (None, None)
    hidden = encoder.blocks[0](x)
    expected = hidden + middle.feed_forward(middle.feed_forward_norm(hidden))
    expected = encoder.final_norm(encoder.blocks[2](expected))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_post_norm_without_attention_is_norm_of_x_plus_feed_forward():
    block, x = filled(TransformerBlock, D, N, F, norm="post", attention={"kind": "none"}), normal(1, T, D)
    expected = layer_norm(block.feed_forward_norm, x + block.feed_forward(x))
    np.testing.assert_allclose(block(x), expected, rtol=1e-4, atol=1e-5)


def test_relative_positions_are_in_every_block():
    encoder = filled(
        TransformerEncoder, 2, 12, N, F, positions={"kind": "t5", "num_buckets": 4, "max_distance": 3}
    )
    assert [block.attention.relative.table.shape for block in encoder.blocks] == [(4, N)] * 2


def test_dropout_of_attention_weights_is_that_of_the_block_where_there_are_weights():
    def rate(kind, **rates):
        attention = {"kind": kind}
        block = nnx.eval_shape(
            lambda: TransformerBlock(
                D, N, F, attention=attention, dropout_rate=0.3, **rates, rngs=nnx.Rngs(0)
            )
        )
        return block.attention.dropout_rate

    assert rate("dot_product") == 0.3
    assert rate("dot_product", attention_dropout_rate=0.1) == 0.1
    assert rate("linear") == 0.0
    with pytest.raises(UserError, match="attention kind 'linear' has no weights to drop"):
        rate("linear", attention_dropout_rate=0.1)


@pytest.mark.parametrize(
    "attention, message",
    [
        (({"kind": "dot_product"},), "attention lists 1 mechanisms; there are 2 layers"),
        ({"kind": "none", "window": 3}, "attention kind 'none' takes no arguments, got window"),
    ],
)
def test_a_list_that_does_not_fit_is_one_line(attention, message):
    with pytest.raises(UserError, match=message):
        TransformerEncoder(2, D, N, F, attention=attention, rngs=nnx.Rngs(0))


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match=r"norm is 'none'; it must be one of \('pre', 'post'\)"):
        TransformerBlock(D, N, F, norm="none", rngs=nnx.Rngs(0))
