"""Nodes alone, the baseline of graphs."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.graphs.edges import Edges
from models.layers.linear import Linear
from models.rngs import named
from spec import Rate


class NodeMLP(nnx.Module):
    """Every node alone, whatever its edges: the baseline that tells what the edges are worth.

    Args:
        dim: width of the layers.
        num_layers: layers L, with ReLU after each.
        dropout_rate: of the input of each layer.
        in_dim: features of a node.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        dim: int = 64,
        num_layers: int = 1,
        dropout_rate: Rate = 0.0,
        in_dim: int,
        rngs: nnx.Rngs,
    ):
        self.dim = dim
        widths = [in_dim] + [dim] * (num_layers - 1)
        self.layers = nnx.List(
            Linear(width, dim, rngs=named(rngs, f"layers.{layer}")) for layer, width in enumerate(widths)
        )
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        edges: Edges,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T F"]:
        """Encode the nodes of each graph; see `GraphEncoder`."""
        del edges, train
        x = jnp.where(mask[..., None], x, 0)
        for layer in self.layers:
            x = jax.nn.relu(layer(self.dropout(x, deterministic=rngs is None, rngs=rngs)))
        return jnp.where(mask[..., None], x, 0)
