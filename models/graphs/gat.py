"""The graph attention network: nodes that attend along edges."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from attention.graph import gat_attention
from models.graphs.edges import EdgeBias, Edges, with_self_loops
from models.layers.linear import Linear
from models.rngs import named
from spec import Rate


class GATLayer(nnx.Module):
    """One layer of a graph attention network, before its nonlinearity.

    `h'[t] = sum_{s -> t} softmax(leaky_relu(a . [W h[t]; W h[s]])) W h[s] + b`, in N heads that are
    concatenated or averaged. Dropout acts on the input and on the attention weights.

    Args:
        in_dim: width of the input.
        head_dim: width H of a head.
        num_heads: heads N.
        concatenate: output N H wide; else the mean of the heads, H wide.
        edge_dim: features of an edge, which add a bias to its score; 0 for none.
        dropout_rate: of inputs and of attention weights.
        rngs: source of the initial parameters.

    Source: Velickovic et al. 2018, "Graph attention networks", section 2.1.
    """

    def __init__(
        self,
        in_dim: int,
        head_dim: int,
        num_heads: int,
        *,
        concatenate: bool = True,
        edge_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        glorot = nnx.initializers.glorot_uniform()
        self.heads = (num_heads, head_dim)
        self.concatenate = concatenate
        self.dropout_rate = dropout_rate
        self.projection = Linear(
            in_dim,
            num_heads * head_dim,
            use_bias=False,
            kernel_init=glorot,
            rngs=named(rngs, "projection"),
        )
        self.query_kernel = nnx.Param(glorot(named(rngs, "query_kernel").params(), (num_heads, head_dim)))
        self.key_kernel = nnx.Param(glorot(named(rngs, "key_kernel").params(), (num_heads, head_dim)))
        self.edge_bias = EdgeBias(edge_dim, num_heads, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros(num_heads * head_dim if concatenate else head_dim))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self, x: Float[Array, "B T D"], edges: Edges, *, rngs: nnx.Rngs | None = None
    ) -> Float[Array, "B T F"]:
        """Map the nodes `[B T D]` along edges, self loops among them."""
        dropout: dict[str, Any] = {}
        if rngs is not None and self.dropout_rate > 0:
            x = self.dropout(x, rngs=rngs)
            dropout = {"dropout_rate": self.dropout_rate, "dropout_key": rngs.dropout()}
        heads = self.projection(x).reshape(*x.shape[:2], *self.heads)
        mixed: Any = gat_attention(
            heads,
            heads,
            heads,
            query_vector=self.query_kernel[...],
            key_vector=self.key_kernel[...],
            senders=edges.senders,
            receivers=edges.receivers,
            edge_mask=edges.mask,
            edge_bias=self.edge_bias(edges),
            **dropout,
        )
        mixed = mixed.reshape(*x.shape[:2], -1) if self.concatenate else mixed.mean(axis=2)
        return mixed + self.bias[...][None, None]


class GAT(nnx.Module):
    """A graph attention network: layers of heads that are concatenated, with ELU between.

    Args:
        num_layers: layers L.
        num_heads: heads N of each layer but the last one of a model of nodes.
        head_dim: width H of a head.
        out_heads: heads of the last layer of a model of nodes, whose mean is the answer.
        residual: add its input to the output of each layer of equal widths.
        norm: normalise each layer's input (layer normalisation), but the first one's.
        dropout_rate: of inputs and of attention weights of every layer.
        in_dim: features of a node.
        out_dim: width of the output, the mean of `out_heads` heads; None: a further layer like the others.
        edge_dim: features of an edge; 0 for none.
        rngs: source of the initial parameters.

    Attributes:
        dim: width of the output.
        answers: whether the output is the answer for each node.

    Source: Velickovic et al. 2018, "Graph attention networks", section 3.3; residual as there for PPI.
    """

    def __init__(
        self,
        *,
        num_layers: int = 2,
        num_heads: int = 8,
        head_dim: int = 8,
        out_heads: int = 1,
        residual: bool = False,
        norm: bool = False,
        dropout_rate: Rate = 0.0,
        in_dim: int,
        out_dim: int | None = None,
        edge_dim: int = 0,
        rngs: nnx.Rngs,
    ):
        hidden = num_heads * head_dim
        shared: dict[str, Any] = {"edge_dim": edge_dim, "dropout_rate": dropout_rate}
        widths = [in_dim] + [hidden] * (num_layers - 1)
        self.dim = out_dim or hidden
        self.residual = residual
        self.answers = out_dim is not None
        self.layers = nnx.List(
            GATLayer(
                width, out_dim, out_heads, concatenate=False, **shared, rngs=named(rngs, f"layers.{number}")
            )
            if out_dim and number == num_layers - 1
            else GATLayer(width, head_dim, num_heads, **shared, rngs=named(rngs, f"layers.{number}"))
            for number, width in enumerate(widths)
        )
        self.norms = nnx.List(nnx.LayerNorm(hidden, rngs=rngs) for _ in widths[1:]) if norm else None

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
        for number, layer in enumerate(self.layers):
            given = self.norms[number - 1](x) if self.norms is not None and number else x
            found = layer(given, edges, rngs=rngs)
            if not (self.answers and number == len(self.layers) - 1):
                found = jax.nn.elu(found)
            x = x + found if self.residual and x.shape == found.shape else found
        return jnp.where(mask[..., None], x, 0)
