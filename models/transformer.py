"""The Transformer block, pre- and post-norm, and the encoder made of it."""

from collections.abc import Mapping
from typing import Any

from flax import nnx
from jaxtyping import Array, Bool, Float

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
        attention: the mechanism; see `models.mechanisms`.
        dropout_rate: dropout on attention weights, in the feed-forward layer and on either branch.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if norm is neither "pre" nor "post".
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        norm: str = "pre",
        attention: Mapping | None = None,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        if norm not in NORMS:
            raise ValueError(f"norm is {norm!r}; it must be one of {NORMS}")
        self.norm = norm
        self.attention = MultiHeadAttention(
            dim, num_heads, attention=attention, dropout_rate=dropout_rate, rngs=rngs
        )
        self.feed_forward = FeedForward(dim, hidden_dim, dropout_rate=dropout_rate, rngs=rngs)
        self.attention_norm = nnx.LayerNorm(dim, rngs=rngs)
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
            return_weights: return `(output, weights [*B, N, T, T])` instead of the output alone.
        """
        pre = self.norm == "pre"
        attended = self.attention(
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
        dim, num_heads, hidden_dim, norm, attention, dropout_rate: see `TransformerBlock`.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        num_layers: int,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        norm: str = "pre",
        attention: Mapping | None = None,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        self.blocks = nnx.List(
            TransformerBlock(
                dim,
                num_heads,
                hidden_dim,
                norm=norm,
                attention=attention,
                dropout_rate=dropout_rate,
                rngs=rngs,
            )
            for _ in range(num_layers)
        )
        self.final_norm = nnx.LayerNorm(dim, rngs=rngs) if norm == "pre" else None

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"] | None = None,
        *,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Encode sets of vectors.

        Args:
            x: vectors `[B, T, D]`.
            mask: True where a vector is real, False where it is padding; padding is never attended to.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return `(output, [weights [B, N, T, T] of each block])`.
        """
        visible = None if mask is None else mask[:, None, None, :]
        weights = []
        for block in self.blocks:
            x = block(x, mask=visible, rngs=rngs, return_weights=return_weights)
            if return_weights:
                x, layer_weights = x
                weights.append(layer_weights)
        x = x if self.final_norm is None else self.final_norm(x)
        return (x, weights) if return_weights else x
