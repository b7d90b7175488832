"""The edges of graphs, and the bias that their features give to attention."""

from typing import NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from models.layers.linear import Linear


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
