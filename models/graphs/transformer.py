"""A Transformer on graphs, whose attention follows the edges."""

from typing import Annotated, Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from attention.graph import graph_attention
from models.graphs.edges import EdgeBias, Edges, with_self_loops
from models.layers.feed_forward import Activation, FeedForward
from models.layers.linear import Linear
from models.rngs import named
from spec import Rate, derived


class GraphTransformerBlock(nnx.Module):
    """A pre-norm Transformer block whose attention follows the edges.

    Args:
        dim: width D.
        num_heads: heads N.
        hidden_dim: width of the feed-forward layer.
        activation: of the feed-forward layer.
        edge_dim: features of an edge, which add a bias to its score; 0 for none.
        dropout_rate: of attention weights, in the feed-forward layer and on the attention branch.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        activation: Activation = "gelu",
        edge_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        self.heads = (num_heads, dim // num_heads)
        self.dropout_rate = dropout_rate
        self.query, self.key, self.value, self.output = (
            Linear(dim, dim, rngs=named(rngs, name)) for name in ("query", "key", "value", "output")
        )
        self.edge_bias = EdgeBias(edge_dim, num_heads, rngs=rngs)
        self.feed_forward = FeedForward(
            dim,
            hidden_dim,
            activation=activation,
            dropout_rate=dropout_rate,
            rngs=named(rngs, "feed_forward"),
        )
        self.attention_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.feed_forward_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self, x: Float[Array, "B T D"], edges: Edges, *, rngs: nnx.Rngs | None = None
    ) -> Float[Array, "B T D"]:
        """Map the nodes `[B T D]` along edges, self loops among them."""
        dropout: dict[str, Any] = {}
        if rngs is not None and self.dropout_rate > 0:
            dropout = {"dropout_rate": self.dropout_rate, "dropout_key": rngs.dropout()}
        given = self.attention_norm(x)
        query, key, value = (
            projection(given).reshape(*x.shape[:2], *self.heads)
            for projection in (self.query, self.key, self.value)
        )
        mixed: Any = graph_attention(
            query,
            key,
            value,
            senders=edges.senders,
            receivers=edges.receivers,
            edge_mask=edges.mask,
            edge_bias=self.edge_bias(edges),
            **dropout,
        )
        attended = self.output(mixed.reshape(x.shape))
        x = x + self.dropout(attended, deterministic=rngs is None, rngs=rngs)
        return x + self.feed_forward(self.feed_forward_norm(x), rngs=rngs)


class GraphTransformer(nnx.Module):
    """A Transformer on graphs: the edges are the mask, their features a bias.

    Args:
        dim: width D, a multiple of num_heads.
        num_layers: blocks L.
        num_heads: heads N.
        hidden_dim: width of the feed-forward layers.
        activation: of the feed-forward layers.
        dropout_rate: of inputs, of attention weights, in the feed-forward layers and on the branches.
        in_dim: features of a node.
        edge_dim: features of an edge; 0 for none.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if num_heads does not divide dim.

    Source: Dwivedi and Bresson 2021, "A generalization of Transformer networks to graphs", without its
    Laplacian positions; features of edges as a bias of the scores, as in Ying et al. 2021.
    """

    def __init__(
        self,
        *,
        dim: int = 64,
        num_layers: int = 3,
        num_heads: int = 4,
        hidden_dim: Annotated[int, derived(lambda dim: 2 * dim)],
        activation: Activation = "gelu",
        dropout_rate: Rate = 0.0,
        in_dim: int,
        edge_dim: int = 0,
        rngs: nnx.Rngs,
    ):
        if dim % num_heads:
            raise ValueError(f"dim {dim} is not divisible by num_heads {num_heads}")
        self.dim = dim
        self.input_dropout = nnx.Dropout(dropout_rate)
        self.embed = Linear(in_dim, dim, rngs=named(rngs, "embed"))
        self.blocks = nnx.List(
            GraphTransformerBlock(
                dim,
                num_heads,
                hidden_dim,
                activation=activation,
                edge_dim=edge_dim,
                dropout_rate=dropout_rate,
                rngs=named(rngs, f"blocks.{layer}"),
            )
            for layer in range(num_layers)
        )
        self.norm = nnx.LayerNorm(dim, rngs=rngs)

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
        del train
        x = jnp.where(mask[..., None], x, 0)
        edges = with_self_loops(edges, mask)
        x = self.embed(self.input_dropout(x, deterministic=rngs is None, rngs=rngs))
        for block in self.blocks:
            x = block(x, edges, rngs=rngs)
        return jnp.where(mask[..., None], self.norm(x), 0)
