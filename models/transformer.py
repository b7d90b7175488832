"""The Transformer block, pre- and post-norm, and the encoder made of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from errors import UserError
from models import mechanisms
from models.feed_forward import FeedForward
from models.multi_head_attention import MultiHeadAttention

NORMS = ("pre", "post")


class TransformerBlock(nnx.Module):
    """Self-attention, then feed-forward, each with a residual connection and layer normalisation.

    `norm="pre"` is `x + f(norm(x))` (Xiong et al. 2020); `norm="post"` is `norm(x + f(x))`, as first
    published (Vaswani et al. 2017).

    Args:
        dim: width D.
        num_heads: query heads N.
        hidden_dim: width of the feed-forward layer.
        norm: "pre" or "post".
        attention: the mechanism, see `models.mechanisms`; or `{"kind": "none"}`, for the feed-forward layer
            alone.
        positions: relative positions; see `MultiHeadAttention`.
        dropout_rate: dropout in the feed-forward layer and on either branch.
        attention_dropout_rate: dropout on the attention weights; None: `dropout_rate` where the mechanism has
            weights to drop.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if norm is neither "pre" nor "post".
        UserError: as for `MultiHeadAttention`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        norm: str = "pre",
        attention: Mapping | None = None,
        positions: Mapping | None = None,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float | None = None,
        rngs: nnx.Rngs,
    ):
        if norm not in NORMS:
            raise ValueError(f"norm is {norm!r}; it must be one of {NORMS}")
        self.norm = norm
        attends = _attends(attention)
        self.attention = (
            MultiHeadAttention(
                dim,
                num_heads,
                attention=attention,
                positions=positions,
                dropout_rate=attention_dropout(attention, dropout_rate, attention_dropout_rate),
                rngs=rngs,
            )
            if attends
            else None
        )
        self.feed_forward = FeedForward(dim, hidden_dim, dropout_rate=dropout_rate, rngs=rngs)
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
        num_layers: blocks L.
        attention: the mechanism of all blocks, or a list with one of each, such as localness in the lower
            ones alone, or `{"kind": "none"}` in every second one.
        dim, num_heads, hidden_dim, norm, positions, dropout_rate, attention_dropout_rate: see
            `TransformerBlock`.
        rngs: source of the initial parameters.

    Raises:
        UserError: if attention lists another number of mechanisms than there are blocks, and as for
            `TransformerBlock`.
    """

    def __init__(
        self,
        num_layers: int,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        norm: str = "pre",
        attention: Mapping | Sequence[Mapping] | None = None,
        positions: Mapping | None = None,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float | None = None,
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
                norm=norm,
                attention=mechanism,
                positions=positions,
                dropout_rate=dropout_rate,
                attention_dropout_rate=attention_dropout_rate,
                rngs=rngs,
            )
            for mechanism in each
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
        """Encode sets of vectors.

        Args:
            x: vectors `[B, T, D]`.
            mask: True where a vector is real, False where it is padding. Padding is never attended to,
                whatever it holds, and its output is 0.
            train: ignored by a Transformer, which has no batch statistics; dropout depends on `rngs` alone.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return `(output, [weights [B, N, T, T] of each block])`.
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


def _attends(attention: Mapping | None) -> bool:
    """Whether a block of attention is anything but `{"kind": "none"}`."""
    block = dict(attention or {})
    if block.get("kind") != "none":
        return True
    if len(block) > 1:
        raise UserError(f"attention kind 'none' takes no arguments, got {', '.join(block.keys() - {'kind'})}")
    return False


def attention_dropout(attention: Mapping | None, dropout_rate: float, given: float | None) -> float:
    """The rate given; or that of the block, where the mechanism has weights to drop."""
    if given is not None:
        return given
    return dropout_rate if mechanisms.honours(mechanisms.kind_of(attention), "dropout_rate") else 0.0
