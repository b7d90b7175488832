"""The Transformer block, pre- and post-norm, and the encoder made of it."""

from typing import Annotated, Any, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from errors import UserError
from models.layers.feed_forward import Activation, FeedForward
from models.layers.multi_head_attention import MultiHeadAttention, weights_dropped
from models.mechanisms import MECHANISMS
from models.positions import RELATIVE
from models.rngs import named
from spec import Block, Rate, derived

Norm = Literal["pre", "post"]


class TransformerBlock(nnx.Module):
    """Self-attention, then feed-forward, each with a residual connection and layer normalisation.

    `norm="pre"` is `x + f(norm(x))` (Xiong et al. 2020); `norm="post"` is `norm(x + f(x))`, as first
    published (Vaswani et al. 2017).

    Args:
        dim: width D.
        norm: "pre" or "post".
        attention: the mechanism, or "none" for the feed-forward layer alone.
        num_heads, num_kv_heads, head_dim, hidden_dim, activation, positions, dropout_rate,
            attention_dropout_rate: see `TransformerEncoder`.
        rngs: source of the initial parameters.

    Raises:
        UserError: as for `MultiHeadAttention`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        activation: Activation = "gelu",
        norm: Norm = "pre",
        attention: Block | str = "dot_product",
        positions: Block | str = "none",
        dropout_rate: float = 0.0,
        attention_dropout_rate: float | None = None,
        rngs: nnx.Rngs,
    ):
        if attention_dropout_rate is None:
            attention_dropout_rate = weights_dropped(dropout_rate, attention)
        self.norm = norm
        attends = MECHANISMS.chosen(attention, "attention") != "none"
        self.attention = (
            MultiHeadAttention(
                dim,
                num_heads,
                num_kv_heads=num_kv_heads,
                head_dim=head_dim,
                attention=attention,
                positions=positions,
                dropout_rate=attention_dropout_rate,
                rngs=named(rngs, "attention"),
            )
            if attends
            else None
        )
        self.feed_forward = FeedForward(
            dim,
            hidden_dim,
            activation=activation,
            dropout_rate=dropout_rate,
            rngs=named(rngs, "feed_forward"),
        )
        self.attention_norm = nnx.LayerNorm(dim, rngs=rngs) if attends else None
        self.feed_forward_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "*B T D"],
        *,
        mask: Bool[Array, "..."] | None = None,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Map `x [*B, T, D]` to the same shape.

        Args:
            x: vectors.
            mask: boolean, True = may attend, as made by `attention.masks`.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return `(output, weights [*B, N, T, T])` instead of the output alone; the weights
                are None in a block without attention.
        """
        pre = self.norm == "pre"
        weights = None
        if self.attention is not None and self.attention_norm is not None:
            attended: Any = self.attention(
                self.attention_norm(x) if pre else x,
                mask=mask,
                rngs=rngs,
                return_weights=return_weights,
            )
            attended, weights = attended if return_weights else (attended, None)
            x = x + self.dropout(attended, deterministic=rngs is None, rngs=rngs)
            x = x if pre else self.attention_norm(x)
        x = x + self.feed_forward(self.feed_forward_norm(x) if pre else x, rngs=rngs)
        x = x if pre else self.feed_forward_norm(x)
        return (x, weights) if return_weights else x


class TransformerEncoder(nnx.Module):
    """A stack of Transformer blocks: `encoder(x [B, T, D], mask [B, T]) -> [B, T, D]`.

    With pre-norm a last layer normalisation follows the stack, since its residual stream is never
    normalised; with post-norm the last block has done so.

    Args:
        dim: width D.
        num_layers: blocks L.
        num_heads: query heads N.
        num_kv_heads: key and value heads K; divides num_heads. Query head n reads head n // (N / K).
        head_dim: width H of a head.
        hidden_dim: width of the feed-forward layers.
        activation: of the feed-forward layers; "relu" as first published.
        norm: "pre", the input of each layer (Xiong et al. 2020), or "post", its output, as first published.
        attention: the mechanism of all blocks, or a list with one of each, such as localness in the lower
            ones alone; "none" is a block with a feed-forward layer alone.
        positions: relative positions of every attention layer.
        dropout_rate: dropout in the feed-forward layers and on all branches.
        attention_dropout_rate: dropout on the attention weights.
        rngs: source of the initial parameters.

    Raises:
        UserError: if attention lists another number of mechanisms than there are blocks, and as for
            `MultiHeadAttention`.
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
        attention: Annotated[Block | tuple[Block, ...], MECHANISMS] | str = "dot_product",
        positions: Annotated[Block, RELATIVE] | str = "none",
        dropout_rate: Rate = 0.0,
        attention_dropout_rate: Annotated[Rate | None, derived(weights_dropped)] = None,
        rngs: nnx.Rngs,
    ):
        each: Any = attention if isinstance(attention, list | tuple) else [attention] * num_layers
        if len(each) != num_layers:
            raise UserError(f"attention lists {len(each)} mechanisms; there are {num_layers} layers")
        self.blocks = nnx.List(
            TransformerBlock(
                dim,
                num_heads,
                hidden_dim,
                num_kv_heads=num_kv_heads,
                head_dim=head_dim,
                activation=activation,
                norm=norm,
                attention=mechanism,
                positions=positions,
                dropout_rate=dropout_rate,
                attention_dropout_rate=attention_dropout_rate,
                rngs=named(rngs, f"blocks.{layer}"),
            )
            for layer, mechanism in enumerate(each)
        )
        self.final_norm = nnx.LayerNorm(dim, rngs=rngs) if norm == "pre" else None

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"] | None = None,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Encode sets of vectors; see `Encoder`. Without a mask all are real.

        With return_weights, `(vectors, [weights [B, N, T, T] of each block])`.
        """
        visible = None if mask is None else mask[:, None, None, :]
        # What padding holds may be NaN, which even a weight of 0 would let into gradients.
        x = x if mask is None else jnp.where(mask[..., None], x, 0)
        weights = []
        for block in self.blocks:
            x = block(x, mask=visible, rngs=rngs, return_weights=return_weights)
            if return_weights:
                x, layer_weights = x
                weights.append(layer_weights)
        x = x if self.final_norm is None else self.final_norm(x)
        x = x if mask is None else jnp.where(mask[..., None], x, 0)
        return (x, weights) if return_weights else x
