"""What an encoder of graphs is: features of nodes in, vectors of nodes out."""

from typing import Protocol

from flax import nnx
from jaxtyping import Array, Bool, Float

from models.graphs.edges import Edges


class GraphEncoder(Protocol):
    """What all encoders of graphs can do.

    Every node has an edge to itself besides those given, so that one without neighbours keeps what it holds.

    Attributes:
        dim: width F of the vectors that come out.
    """

    dim: int

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
            x: features of nodes.
            mask: True for nodes that exist. What padded nodes and edges hold changes nothing.
            edges: which node hears which.
            train: whether this is training; there are no batch statistics.
            rngs: stream `dropout`; None turns dropout off.

        Returns:
            A vector for each node, 0 where it is padding.
        """
