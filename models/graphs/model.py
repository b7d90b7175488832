"""The whole model: a graph in, an answer for each of its nodes or one for the graph out."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from errors import UserError
from models.graphs import GRAPH_ENCODERS
from models.graphs.edges import Edges
from models.layers.linear import Linear
from models.layers.pooling import POOLS
from models.rngs import named
from spec import Block, Rate, Registry, call, nothing

UNORDERED = Registry(
    "pool of graphs",
    {"none": nothing, **{word: make for word, make in POOLS.rows.items() if not make.ordered}},
    given=POOLS.given,
)


class GraphModel(nnx.Module):
    """An encoder; then a linear head for each node, or a pool and a head of two layers for the graph.

    A GAT needs no head for nodes, for its last layer is one.

    Args:
        encoder: what lets nodes hear of each other.
        pool: how the nodes become one vector; "none" where every node is answered.
        dropout_rate: before the last layer, where there is a pool.
        node_dim: features of a node.
        edge_dim: features of an edge; 0 for none.
        num_outputs: numbers to give for each node or graph.
        per_node: whether for every node or for the graph.
        rngs: source of the initial parameters.

    Raises:
        UserError: a pool where every node is answered, or none where the graph is.
    """

    def __init__(
        self,
        *,
        encoder: Annotated[Block, GRAPH_ENCODERS] | str = "gat",
        pool: Annotated[Block, UNORDERED] | str = "sum",
        dropout_rate: Rate = 0.0,
        node_dim: int,
        edge_dim: int,
        num_outputs: int,
        per_node: bool,
        rngs: nnx.Rngs,
    ):
        sizes = {"in_dim": node_dim, "edge_dim": edge_dim, "out_dim": num_outputs if per_node else None}
        self.encoder = GRAPH_ENCODERS.build(
            encoder, "config.model.encoder", **sizes, rngs=named(rngs, "encoder")
        )
        width = self.encoder.dim
        self.pool = UNORDERED.build(pool, "config.model.pool", dim=width, rngs=named(rngs, "pool"))
        if per_node != (self.pool is None):
            needs = (
                "every node is answered, so it must be none" if per_node else "graphs are answered as wholes"
            )
            word = UNORDERED.chosen(pool)
            raise UserError(f"config.model.pool.kind is {word!r}; {needs}; allowed: {', '.join(UNORDERED)}")
        self.dropout = nnx.Dropout(dropout_rate)
        self.hidden = None if per_node else Linear(self.pool.dim, width, rngs=named(rngs, "hidden"))
        initial = nnx.initializers.lecun_normal() if per_node else nnx.initializers.zeros
        head = Linear(width, num_outputs, kernel_init=initial, rngs=named(rngs, "head"))
        self.head = None if per_node and getattr(self.encoder, "answers", False) else head

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        edges: Edges,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Any:
        """Outputs `[B T F]` for each node, 0 where it is padding, or `[B F]` for each graph.

        Arguments are those of an encoder; see `models.graphs.encoder`.
        """
        x = self.encoder(x, mask, edges=edges, train=train, rngs=rngs)
        if self.pool is None:
            return x if self.head is None else jnp.where(mask[..., None], self.head(x), 0)
        assert self.hidden is not None
        assert self.head is not None
        hidden = jax.nn.relu(self.hidden(self.pool(x, mask)[0]))
        return self.head(self.dropout(hidden, deterministic=rngs is None, rngs=rngs))


GRAPH_MODEL = call(GraphModel, given=("node_dim", "edge_dim", "num_outputs", "per_node", "rngs"))
