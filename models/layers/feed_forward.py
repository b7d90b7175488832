"""The position-wise feed-forward layer of a Transformer block."""

from typing import Literal

import jax
from flax import nnx
from jaxtyping import Array, Float

from models.layers.linear import Linear
from models.rngs import named

Activation = Literal["gelu", "relu"]
ACTIVATIONS = {"gelu": jax.nn.gelu, "relu": jax.nn.relu}


class FeedForward(nnx.Module):
    """Two linear layers with an activation between, applied to every position alone: `W2 act(W1 x)`.

    Args:
        dim: width D of input and output.
        hidden_dim: width between the two layers (4 D in the paper).
        activation: "relu", as first published, or "gelu", its tanh form.
        dropout_rate: dropout after the activation and after the second layer.
        rngs: source of the initial parameters.

    Source: Vaswani et al. 2017, section 3.3; GELU from Hendrycks and Gimpel 2016.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        *,
        activation: Activation = "gelu",
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        self.activation = activation
        self.input = Linear(dim, hidden_dim, rngs=named(rngs, "input"))
        self.output = Linear(hidden_dim, dim, rngs=named(rngs, "output"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, x: Float[Array, "*B T D"], *, rngs: nnx.Rngs | None = None) -> Float[Array, "*B T D"]:
        """Map each position; `rngs` (stream `dropout`) turns dropout on, None turns it off."""
        deterministic = rngs is None
        hidden = ACTIVATIONS[self.activation](self.input(x))
        hidden = self.dropout(hidden, deterministic=deterministic, rngs=rngs)
        return self.dropout(self.output(hidden), deterministic=deterministic, rngs=rngs)
