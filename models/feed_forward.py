"""The position-wise feed-forward layer of a Transformer block."""

import jax
from flax import nnx
from jaxtyping import Array, Float

from models.linear import Linear


class FeedForward(nnx.Module):
    """Two linear layers with a GELU between, applied to every position alone: `W2 gelu(W1 x)`.

    Args:
        dim: width D of input and output.
        hidden_dim: width between the two layers (4 D in the paper).
        dropout_rate: dropout after the activation and after the second layer.
        rngs: source of the initial parameters.

    Source: Vaswani et al. 2017, section 3.3; GELU (tanh form) from Hendrycks and Gimpel 2016.
    """

    def __init__(self, dim: int, hidden_dim: int, *, dropout_rate: float = 0.0, rngs: nnx.Rngs):
        self.input = Linear(dim, hidden_dim, rngs=rngs)
        self.output = Linear(hidden_dim, dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, x: Float[Array, "*B T D"], *, rngs: nnx.Rngs | None = None) -> Float[Array, "*B T D"]:
        """Map each position; `rngs` (stream `dropout`) turns dropout on, None turns it off."""
        deterministic = rngs is None
        hidden = jax.nn.gelu(self.input(x), approximate=True)
        hidden = self.dropout(hidden, deterministic=deterministic, rngs=rngs)
        return self.dropout(self.output(hidden), deterministic=deterministic, rngs=rngs)
