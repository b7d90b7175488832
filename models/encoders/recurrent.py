"""Recurrent encoders: every vector knows of those before it, or of all, by a state."""

from typing import Annotated, Literal

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.layers.linear import Linear
from models.layers.recurrent import RecurrentLayer
from models.rngs import named
from spec import Rate, derived


class Recurrent(nnx.Module):
    """Recurrent layers, each reading the states of the one before.

    Args:
        dim: width D of input and output.
        cell: what a step does.
        num_layers: layers.
        bidirectional: read from both ends; a vector then knows of all others, else of those before.
        hidden_dim: width of a direction's state; where the directions together are not D wide, a linear layer
            maps them to it.
        dropout_rate: dropout on what goes from layer to layer.
        rngs: source of the initial parameters.

    Source: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000 (LSTM); Cho et al. 2014
    (GRU, with the reset after the product); Elman 1990 (plain); Schuster and Paliwal 1997 (both directions).
    """

    def __init__(
        self,
        dim: int,
        *,
        cell: Literal["lstm", "gru", "plain"] = "lstm",
        num_layers: int = 1,
        bidirectional: bool = True,
        hidden_dim: Annotated[int, derived(lambda dim, bidirectional: dim // 2 if bidirectional else dim)],
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        directions = 2 if bidirectional else 1
        width = directions * hidden_dim
        self.layers = nnx.List(
            RecurrentLayer(
                width if layer else dim,
                hidden_dim,
                cell=cell,
                directions=directions,
                rngs=named(rngs, f"layers.{layer}"),
            )
            for layer in range(num_layers)
        )
        self.output = None if width == dim else Linear(width, dim, rngs=named(rngs, "output"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """Encode sets of vectors; see `Encoder`."""
        x = jnp.where(mask[..., None], x, 0)
        for index, layer in enumerate(self.layers):
            if index:
                x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
            x = layer(x, mask)
        x = x if self.output is None else self.output(x)
        return jnp.where(mask[..., None], x, 0)
