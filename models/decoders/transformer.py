"""The Transformer decoder: causal self-attention, attention to the memory, feed-forward."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import masks
from models.decoders.decoder import Cache, Decoded, Memory
from models.encoders.transformer import Norm
from models.layers.feed_forward import Activation, FeedForward
from models.layers.multi_head_attention import MultiHeadAttention, weights_dropped
from models.mechanisms import MECHANISMS
from models.positions import RELATIVE
from models.rngs import named
from spec import Block, Rate, derived, nothing

# A decoder goes place by place, so what takes a whole sequence to itself is not for it.
ATTENTION = MECHANISMS.where(lambda make: getattr(make, "by_place", False), "of one query at a time")
POSITIONS = RELATIVE.where(lambda make: make is nothing or make.by_place, "of one query at a time")

KeysValues = tuple[Float[Array, "B S N H"], Float[Array, "B S N H"]]


class Past(NamedTuple):
    """What self-attention remembers.

    Attributes:
        layers: keys and values of each layer, `[B, L, N, H]`, with room for L places; 0 where none is yet.
        length: how many places there are, `[B]`.
    """

    layers: tuple[KeysValues, ...]
    length: Int[Array, "B"]


class DecoderBlock(nnx.Module):
    """Self-attention, attention to the memory and feed-forward, each with a residual connection and a norm.

    Args:
        dim: width D.
        num_heads, num_kv_heads, head_dim, hidden_dim, activation, norm, attention, positions, dropout_rate,
            attention_dropout_rate: see `TransformerDecoder`.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        dim: int,
        *,
        num_heads: int,
        num_kv_heads: int | None,
        head_dim: int | None,
        hidden_dim: int,
        activation: Activation,
        norm: Norm,
        attention: Block | str,
        positions: Block | str,
        dropout_rate: float,
        attention_dropout_rate: float | None,
        rngs: nnx.Rngs,
    ):
        def layer(name: str, attention: Block | str, positions: Block | str) -> MultiHeadAttention:
            rate = weights_dropped(dropout_rate, attention)
            return MultiHeadAttention(
                dim,
                num_heads,
                num_kv_heads=num_kv_heads,
                head_dim=head_dim,
                attention=attention,
                positions=positions,
                dropout_rate=rate if attention_dropout_rate is None else attention_dropout_rate,
                rngs=named(rngs, name),
            )

        self.pre = norm == "pre"
        self.self_attention = layer("self_attention", "dot_product", positions)
        self.memory_attention = layer("memory_attention", attention, "none")
        self.feed_forward = FeedForward(
            dim,
            hidden_dim,
            activation=activation,
            dropout_rate=dropout_rate,
            rngs=named(rngs, "feed_forward"),
        )
        self.norms = nnx.List(nnx.LayerNorm(dim, rngs=rngs) for _ in range(3))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        y: Float[Array, "B T D"],
        memory: KeysValues,
        past: KeysValues | None = None,
        *,
        index: Int[Array, "B"] | None = None,
        visible: Bool[Array, "#B 1 T L"],
        mask: Bool[Array, "B 1 1 S"],
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> tuple[Float[Array, "B T D"], KeysValues, Float[Array, "B N T S"] | None]:
        """Vectors, the keys and values of self-attention, and the weights of the memory if asked for.

        Args:
            y: vectors of all places, or of the one at `index`.
            memory: keys and values of the memory.
            past: those of the places before `index`, with room for more; the new ones are put there.
            index: where `y` stands; None where it begins at 0.
            visible: which places each vector sees.
            mask: which vectors of the memory are real.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return the weights too.
        """
        x = self._in(0, y)
        key, value = self.self_attention.project(x, index)
        if past is not None and index is not None:
            key, value = _put(past[0], key, index), _put(past[1], value, index)
        attended = self.self_attention.attend(x, key, value, index=index, mask=visible, rngs=rngs)
        y = self._out(0, y, attended, rngs)

        attended = self.memory_attention.attend(
            self._in(1, y), *memory, mask=mask, rngs=rngs, return_weights=return_weights
        )
        attended, weights = attended if return_weights else (attended, None)
        y = self._out(1, y, attended, rngs)

        x = y + self.feed_forward(self._in(2, y), rngs=rngs)  # with dropout of its own
        return x if self.pre else self.norms[2](x), (key, value), weights

    def _in(self, branch: int, y: jax.Array) -> jax.Array:
        return self.norms[branch](y) if self.pre else y

    def _out(self, branch: int, y: jax.Array, made: jax.Array, rngs: nnx.Rngs | None) -> jax.Array:
        y = y + self.dropout(made, deterministic=rngs is None, rngs=rngs)
        return y if self.pre else self.norms[branch](y)


class TransformerDecoder(nnx.Module):
    """A stack of decoder blocks; see `models.decoders.decoder.Decoder` for how it is called.

    With pre-norm a last layer normalisation follows the stack, as in `models.encoders.transformer`.

    Args:
        dim: width D.
        num_layers: blocks.
        num_heads: query heads N of either attention.
        num_kv_heads: key and value heads K; divides num_heads. Query head n reads head n // (N / K).
        head_dim: width H of a head.
        hidden_dim: width of the feed-forward layers.
        activation: of the feed-forward layers; "relu" as first published.
        norm: "pre", the input of each layer (Xiong et al. 2020), or "post", its output, as first published.
        attention: the mechanism that attends to the memory; the decoder attends to itself by dot products.
        positions: relative positions of self-attention; absolute ones are given to the vectors before.
        dropout_rate: dropout in the feed-forward layers and on all branches.
        attention_dropout_rate: dropout on the weights of either attention.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if num_heads does not divide dim.
        UserError: on positions or a mechanism that does not work place by place, or at all.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        dim: int,
        *,
        num_layers: int = 2,
        num_heads: int = 4,
        num_kv_heads: Annotated[int | None, derived(lambda num_heads: num_heads)] = None,
        head_dim: Annotated[int | None, derived(lambda dim, num_heads: dim // num_heads)] = None,
        hidden_dim: Annotated[int, derived(lambda dim: 4 * dim)],
        activation: Activation = "gelu",
        norm: Norm = "pre",
        attention: Annotated[Block, ATTENTION] | str = "dot_product",
        positions: Annotated[Block, POSITIONS] | str = "none",
        dropout_rate: Rate = 0.0,
        attention_dropout_rate: Annotated[Rate | None, derived(weights_dropped)] = None,
        rngs: nnx.Rngs,
    ):
        ATTENTION.chosen(attention, "attention")
        POSITIONS.chosen(positions, "positions")
        self.blocks = nnx.List(
            DecoderBlock(
                dim,
                num_heads=num_heads,
                num_kv_heads=num_kv_heads,
                head_dim=head_dim,
                hidden_dim=hidden_dim,
                activation=activation,
                norm=norm,
                attention=attention,
                positions=positions,
                dropout_rate=dropout_rate,
                attention_dropout_rate=attention_dropout_rate,
                rngs=named(rngs, f"blocks.{layer}"),
            )
            for layer in range(num_layers)
        )
        self.final_norm = nnx.LayerNorm(dim, rngs=rngs) if norm == "pre" else None

    def __call__(
        self,
        y: Float[Array, "B T D"],
        memory: Memory,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Decoded:
        """The vectors after each place of a known sequence; `train` changes nothing."""
        visible, mask, weights = masks.causal(y.shape[1]), memory.mask[:, None, None, :], []
        for block, keys_values in zip(self.blocks, self._project(memory), strict=True):
            y, _, layer_weights = block(
                y, keys_values, visible=visible, mask=mask, rngs=rngs, return_weights=return_weights
            )
            if layer_weights is not None:
                weights.append(layer_weights)
        return Decoded(self._normed(y), tuple(weights))

    def start(self, memory: Memory, length: int) -> Cache:
        """The memory's keys and values, and room for those of `length` places."""
        batch, dtype = len(memory.mask), memory.vectors.dtype
        empty = tuple(
            (jnp.zeros((batch, length, layer.num_kv_heads, layer.head_dim), dtype),) * 2
            for layer in (block.self_attention for block in self.blocks)
        )
        made = self._project(memory), memory.mask
        return Cache(made, Past(empty, jnp.zeros(batch, jnp.int32)))

    def step(self, cache: Cache, y: Float[Array, "B D"]) -> tuple[Float[Array, "B D"], Cache]:
        """The vector after one more place, and the cache then."""
        (memory, real), (layers, index) = cache
        places = jnp.arange(layers[0][0].shape[1], dtype=jnp.int32)
        visible, mask = (places[None] <= index[:, None])[:, None, None, :], real[:, None, None, :]
        x, now = y[:, None], []
        for block, keys_values, past in zip(self.blocks, memory, layers, strict=True):
            x, made, _ = block(x, keys_values, past, index=index, visible=visible, mask=mask)
            now.append(made)
        return self._normed(x)[:, 0], Cache(cache.memory, Past(tuple(now), index + 1))

    def _project(self, memory: Memory) -> tuple[KeysValues, ...]:
        """The memory's keys and values for each block."""
        # What padding holds may be NaN, which even a weight of 0 would let into gradients.
        vectors = jnp.where(memory.mask[..., None], memory.vectors, 0)
        return tuple(block.memory_attention.project(vectors) for block in self.blocks)

    def _normed(self, y: jax.Array) -> jax.Array:
        return y if self.final_norm is None else self.final_norm(y)


def _put(
    past: Float[Array, "B L N H"], new: Float[Array, "B 1 N H"], index: Int[Array, "B"]
) -> Float[Array, "B L N H"]:
    """The past with one more place."""
    return past.at[jnp.arange(len(index)), index].set(new[:, 0])
