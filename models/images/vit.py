"""The Vision Transformer: an image as a set of patches, patch size 1 being pixels as tokens."""

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from attention import positions as position_encodings
from models.encoders.transformer import Norm, TransformerEncoder
from models.layers.feed_forward import Activation
from models.layers.linear import Linear
from models.layers.multi_head_attention import weights_dropped
from models.mechanisms import MECHANISMS
from models.rngs import named
from spec import Block, Rate, derived


def patches(images: Float[Array, "B height width C"], patch_size: int) -> Float[Array, "B T patch"]:
    """Cut images into squares, row by row: `[B, h, w, C] -> [B, (h/p)(w/p), p p C]`."""
    batch, height, width, channels = images.shape
    rows, columns = height // patch_size, width // patch_size
    grid = images.reshape(batch, rows, patch_size, columns, patch_size, channels)
    return grid.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows * columns, -1)


class ViT(nnx.Module):
    """Patches -> linear embedding + positions -> Transformer encoder -> pooled vector -> classes.

    Args:
        image_shape: height, width and channels of an image.
        num_classes: classes.
        patch_size: side of a patch, pixels; divides height and width; 1 makes every pixel a token.
        dim: width D.
        num_layers: Transformer blocks.
        num_heads: query heads N.
        num_kv_heads: key and value heads K; divides num_heads. Query head n reads head n // (N / K).
        head_dim: width H of a head.
        hidden_dim: width of the feed-forward layers.
        activation: of the feed-forward layers; "relu" as first published for text.
        pool: "mean" over patches, or "class": a learned extra token that the head reads.
        positions: "learned" table, "sinusoidal" in two dimensions, or "none" (a bag of patches).
        norm: "pre", the input of each layer, or "post", its output.
        attention: the mechanism of all blocks, or a list with one of each.
        dropout_rate: dropout after the embedding, in the feed-forward layers and on all branches.
        attention_dropout_rate: dropout on the attention weights.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if patches do not tile the image.

    Source: Dosovitskiy et al. 2021; mean pooling and sinusoidal 2-D positions as in Beyer et al. 2022.
    """

    def __init__(
        self,
        *,
        image_shape: tuple[int, int, int],
        num_classes: int,
        patch_size: int = 4,
        dim: int = 64,
        num_layers: int = 4,
        num_heads: int = 4,
        num_kv_heads: Annotated[int | None, derived(lambda num_heads: num_heads)] = None,
        head_dim: Annotated[int | None, derived(lambda dim, num_heads: dim // num_heads)] = None,
        hidden_dim: Annotated[int, derived(lambda dim: 4 * dim)],
        activation: Activation = "gelu",
        pool: Literal["mean", "class"] = "mean",
        positions: Literal["learned", "sinusoidal", "none"] = "learned",
        norm: Norm = "pre",
        attention: Annotated[Block | tuple[Block, ...], MECHANISMS] | str = "dot_product",
        dropout_rate: Rate = 0.0,
        attention_dropout_rate: Annotated[Rate | None, derived(weights_dropped)] = None,
        rngs: nnx.Rngs,
    ):
        height, width, channels = image_shape
        if height % patch_size or width % patch_size:
            raise ValueError(f"patch_size {patch_size} does not tile an image of {height} x {width} pixels")
        rows, columns = height // patch_size, width // patch_size
        self.patch_size = patch_size
        self.pool = pool
        self.positions = positions
        self.grid = (rows, columns)
        self.dim = dim
        self.embed = Linear(patch_size * patch_size * channels, dim, rngs=named(rngs, "embed"))
        if positions == "learned":
            draws = named(rngs, "position_table")
            table = 0.02 * jax.random.normal(draws.params(), (1, rows * columns, dim))
            self.position_table = nnx.Param(table)
        if pool == "class":
            self.class_token = nnx.Param(jnp.zeros((1, 1, dim)))
        self.dropout = nnx.Dropout(dropout_rate)
        self.encoder = TransformerEncoder(
            dim,
            num_layers=num_layers,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            hidden_dim=hidden_dim,
            activation=activation,
            norm=norm,
            attention=attention,
            dropout_rate=dropout_rate,
            attention_dropout_rate=attention_dropout_rate,
            rngs=named(rngs, "encoder"),
        )
        # A head of zeros starts every class at the same probability, so the first loss is log(classes).
        self.head = Linear(dim, num_classes, kernel_init=nnx.initializers.zeros, rngs=named(rngs, "head"))

    def __call__(
        self,
        images: Float[Array, "B height width C"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Class logits `[B, num_classes]` of images `[B, height, width, C]`.

        Args:
            images: standardised pixels.
            train: ignored by a ViT, which has no batch statistics; dropout depends on `rngs` alone.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return `(logits, [weights [B, N, T, T] of each block])`.
        """
        x = self.embed(patches(images, self.patch_size))
        if self.positions == "learned":
            x = x + self.position_table[...]
        elif self.positions == "sinusoidal":
            table = position_encodings.sinusoidal_2d(*self.grid, self.dim)
            x = x + table.reshape(1, -1, self.dim).astype(x.dtype)
        if self.pool == "class":
            token = jnp.broadcast_to(self.class_token[...], (x.shape[0], 1, self.dim))
            x = jnp.concatenate([token, x], axis=1)
        x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
        x = self.encoder(x, rngs=rngs, return_weights=return_weights)
        x, weights = x if return_weights else (x, None)
        logits = self.head(x[:, 0] if self.pool == "class" else x.mean(axis=1))
        return (logits, weights) if return_weights else logits
