"""Encoders of graphs: nodes that attend along edges, and nodes alone as the baseline.

All share one signature, `encoder(x [B T D], mask [B T], *, edges, train, rngs) -> [B T D]`. Every node has an
edge to itself besides those given, so that one without neighbours keeps what it holds. What padded nodes and
edges hold changes nothing, and the output of a padded node is 0.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention.graph import gat_attention, graph_attention
from errors import UserError, unknown
from models import fields
from models.feed_forward import FeedForward
from models.linear import Linear
from models.pool import SELF_ATTENTIVE, Pool

POOLS = ("mean", "sum", "max", SELF_ATTENTIVE)  # nodes have no order
HOPS = 4  # of self-attentive pooling


class Edges(NamedTuple):
    """The edges of a batch of graphs; one listed twice counts once.

    Attributes:
        senders: the node that each edge starts from, int32 `[B E]`.
        receivers: the node that each edge ends at, int32 `[B E]`.
        mask: True for edges that exist, bool `[B E]`.
        features: what is known of each edge, `[B E C]`.
    """

    senders: Int[Array, "B E"]
    receivers: Int[Array, "B E"]
    mask: Bool[Array, "B E"]
    features: Float[Array, "B E C"] | None = None


def with_self_loops(edges: Edges, mask: Bool[Array, "B T"]) -> Edges:
    """The edges, and one from every node that exists to itself, with features 0."""
    own = jnp.broadcast_to(jnp.arange(mask.shape[1], dtype=jnp.int32)[None], mask.shape)
    features = edges.features
    if features is not None:
        features = jnp.pad(features, ((0, 0), (0, mask.shape[1]), (0, 0)))
    senders, receivers = (
        jnp.concatenate([ends.astype(jnp.int32), own], axis=1) for ends in (edges.senders, edges.receivers)
    )
    return Edges(senders, receivers, jnp.concatenate([edges.mask, mask], axis=1), features)


class EdgeBias(nnx.Module):
    """A linear map of the features of each edge to a bias for each head, 0 to begin with.

    Args:
        edge_dim: features of an edge; 0 gives no bias.
        num_heads: heads N.
        rngs: source of the initial parameters.
    """

    def __init__(self, edge_dim: int, num_heads: int, *, rngs: nnx.Rngs):
        zeros = nnx.initializers.zeros
        self.linear = (
            Linear(edge_dim, num_heads, use_bias=False, kernel_init=zeros, rngs=rngs) if edge_dim else None
        )

    def __call__(self, edges: Edges) -> Float[Array, "B N E"] | None:
        """The bias `[B N E]`; features of edges that do not exist are not read."""
        if self.linear is None or edges.features is None:
            return None
        shown = jnp.where(edges.mask[..., None], edges.features, 0)
        return jnp.swapaxes(self.linear(shown), 1, 2)


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
        self.projection = Linear(in_dim, num_heads * head_dim, use_bias=False, kernel_init=glorot, rngs=rngs)
        self.query_kernel = nnx.Param(glorot(rngs.params(), (num_heads, head_dim)))
        self.key_kernel = nnx.Param(glorot(rngs.params(), (num_heads, head_dim)))
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
        in_dim: features of a node.
        out_dim: width of the output, the mean of `out_heads` heads; 0: a further layer like the others.
        num_layers: layers L.
        num_heads: heads N of each layer but the last.
        head_dim: width H of a head.
        out_heads: heads of the last layer, where out_dim is given.
        edge_dim: features of an edge; 0 for none.
        residual: add its input to the output of each layer of equal widths.
        norm: normalise each layer's input (layer normalisation), but the first one's.
        dropout_rate: of inputs and of attention weights of every layer.
        rngs: source of the initial parameters.

    Attributes:
        dim: width of the output.

    Source: Velickovic et al. 2018, "Graph attention networks", section 3.3; residual as there for PPI.
    """

    def __init__(
        self,
        in_dim: int,
        *,
        out_dim: int = 0,
        num_layers: int = 2,
        num_heads: int = 8,
        head_dim: int = 8,
        out_heads: int = 1,
        edge_dim: int = 0,
        residual: bool = False,
        norm: bool = False,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        hidden = num_heads * head_dim
        shared: dict[str, Any] = {"edge_dim": edge_dim, "dropout_rate": dropout_rate, "rngs": rngs}
        widths = [in_dim] + [hidden] * (num_layers - 1)
        self.dim = out_dim or hidden
        self.residual = residual
        self.out_dim = out_dim
        self.layers = nnx.List(
            GATLayer(width, out_dim, out_heads, concatenate=False, **shared)
            if out_dim and number == num_layers - 1
            else GATLayer(width, head_dim, num_heads, **shared)
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
        """Encode the nodes of each graph.

        Args:
            x: features of nodes `[B T D]`.
            mask: True for nodes that exist, `[B T]`.
            edges: which node hears which.
            train: ignored; there are no batch statistics.
            rngs: stream `dropout`; None turns dropout off.
        """
        del train
        x = jnp.where(mask[..., None], x, 0)
        edges = with_self_loops(edges, mask)
        for number, layer in enumerate(self.layers):
            given = self.norms[number - 1](x) if self.norms is not None and number else x
            found = layer(given, edges, rngs=rngs)
            if not (self.out_dim and number == len(self.layers) - 1):
                found = jax.nn.elu(found)
            x = x + found if self.residual and x.shape == found.shape else found
        return jnp.where(mask[..., None], x, 0)


class GraphTransformerBlock(nnx.Module):
    """A pre-norm Transformer block whose attention follows the edges.

    Args:
        dim: width D.
        num_heads: heads N.
        hidden_dim: width of the feed-forward layer.
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
        edge_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        self.heads = (num_heads, dim // num_heads)
        self.dropout_rate = dropout_rate
        self.query, self.key, self.value, self.output = (Linear(dim, dim, rngs=rngs) for _ in range(4))
        self.edge_bias = EdgeBias(edge_dim, num_heads, rngs=rngs)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout_rate=dropout_rate, rngs=rngs)
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
        in_dim: features of a node.
        dim: width D, a multiple of num_heads.
        num_layers: blocks L.
        num_heads: heads N.
        hidden_dim: width of the feed-forward layers; 0 means 2 D.
        edge_dim: features of an edge; 0 for none.
        dropout_rate: of inputs, of attention weights, in the feed-forward layers and on the branches.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if num_heads does not divide dim.

    Source: Dwivedi and Bresson 2021, "A generalization of Transformer networks to graphs", without its
    Laplacian positions; features of edges as a bias of the scores, as in Ying et al. 2021.
    """

    def __init__(
        self,
        in_dim: int,
        *,
        dim: int = 64,
        num_layers: int = 3,
        num_heads: int = 4,
        hidden_dim: int = 0,
        edge_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        if dim % num_heads:
            raise ValueError(f"dim {dim} is not divisible by num_heads {num_heads}")
        self.dim = dim
        self.input_dropout = nnx.Dropout(dropout_rate)
        self.embed = Linear(in_dim, dim, rngs=rngs)
        self.blocks = nnx.List(
            GraphTransformerBlock(
                dim,
                num_heads,
                hidden_dim or 2 * dim,
                edge_dim=edge_dim,
                dropout_rate=dropout_rate,
                rngs=rngs,
            )
            for _ in range(num_layers)
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
        """Encode the nodes of each graph; see `GAT`."""
        del train
        x = jnp.where(mask[..., None], x, 0)
        edges = with_self_loops(edges, mask)
        x = self.embed(self.input_dropout(x, deterministic=rngs is None, rngs=rngs))
        for block in self.blocks:
            x = block(x, edges, rngs=rngs)
        return jnp.where(mask[..., None], self.norm(x), 0)


class NodeMLP(nnx.Module):
    """Every node alone, whatever its edges: the baseline that tells what the edges are worth.

    Args:
        in_dim: features of a node.
        dim: width of the layers.
        num_layers: layers L, with ReLU after each.
        edge_dim: features of an edge, which are not read.
        dropout_rate: of the input of each layer.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        in_dim: int,
        *,
        dim: int = 64,
        num_layers: int = 1,
        edge_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        del edge_dim
        self.dim = dim
        widths = [in_dim] + [dim] * (num_layers - 1)
        self.layers = nnx.List(Linear(width, dim, rngs=rngs) for width in widths)
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
        """Encode the nodes of each graph; see `GAT`."""
        del edges, train
        x = jnp.where(mask[..., None], x, 0)
        for layer in self.layers:
            x = jax.nn.relu(layer(self.dropout(x, deterministic=rngs is None, rngs=rngs)))
        return jnp.where(mask[..., None], x, 0)


class NodeModel(nnx.Module):
    """An encoder and a linear head for each node; a GAT needs none, for its last layer is one.

    Args:
        encoder: of nodes.
        outputs: numbers to give for each node.
        rngs: source of the initial parameters.
    """

    def __init__(self, encoder: Any, outputs: int, *, rngs: nnx.Rngs):
        self.encoder = encoder
        gives = isinstance(encoder, GAT) and encoder.out_dim == outputs
        self.head = None if gives else Linear(encoder.dim, outputs, rngs=rngs)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        edges: Edges,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T F"]:
        """Outputs `[B T F]` for each node, 0 where it is padding; see `GAT`."""
        x = self.encoder(x, mask, edges=edges, train=train, rngs=rngs)
        return x if self.head is None else jnp.where(mask[..., None], self.head(x), 0)


class GraphModel(nnx.Module):
    """An encoder, a pool, and a head of two layers for the whole graph.

    Args:
        encoder: of nodes.
        outputs: numbers to give for each graph.
        pool: one of `POOLS`.
        dropout_rate: before the last layer.
        rngs: source of the initial parameters.
    """

    def __init__(self, encoder: Any, outputs: int, *, pool: str, dropout_rate: float, rngs: nnx.Rngs):
        self.encoder = encoder
        self.pool = Pool(encoder.dim, pool, hops=HOPS if pool == SELF_ATTENTIVE else 1, rngs=rngs)
        self.hidden = Linear(self.pool.dim, encoder.dim, rngs=rngs)
        self.head = Linear(encoder.dim, outputs, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        edges: Edges,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B F"]:
        """Outputs `[B F]` for each graph; see `GAT`."""
        x = self.encoder(x, mask, edges=edges, train=train, rngs=rngs)
        hidden = jax.nn.relu(self.hidden(self.pool(x, mask)[0]))
        return self.head(self.dropout(hidden, deterministic=rngs is None, rngs=rngs))


ENCODERS: dict[str, Any] = {"gat": GAT, "transformer": GraphTransformer, "mlp": NodeMLP}


def build(
    model: Mapping[str, Any],
    *,
    node_dim: int,
    edge_dim: int,
    outputs: int,
    per_node: bool,
    rngs: nnx.Rngs,
) -> NodeModel | GraphModel:
    """The model of a config block `{"kind": "gat", "pool": "sum", **arguments of the encoder}`.

    Args:
        model: `kind`, one of `ENCODERS`; `pool`, one of `POOLS`; further fields go to the encoder.
        node_dim: features of a node.
        edge_dim: features of an edge; 0 for none.
        outputs: numbers to give.
        per_node: whether for every node or for the graph.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown kind or pool, or a field that the encoder does not have.
    """
    given = dict(model)
    kind, pool = given.pop("kind"), given.pop("pool")
    if kind not in ENCODERS:
        raise unknown("model", kind, ENCODERS)
    if per_node and pool:
        raise UserError(f"config.model.pool is {pool!r}, but every node is answered; leave it ''")
    if not per_node and pool not in POOLS:
        raise unknown("config.model.pool", pool, POOLS)
    sizes: dict[str, Any] = {"in_dim": node_dim, "edge_dim": edge_dim}
    if kind == "gat":
        sizes["out_dim"] = outputs if per_node else 0
    encoder = fields.construct("config.model", ENCODERS[kind], given, kind=kind, **sizes, rngs=rngs)
    if per_node:
        return NodeModel(encoder, outputs, rngs=rngs)
    return GraphModel(encoder, outputs, pool=pool, dropout_rate=given.get("dropout_rate", 0.0), rngs=rngs)
