"""A fully connected network on a window: the encoder that sees no more than the neighbours it is given."""

import itertools
from collections.abc import Callable
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.layers.linear import Linear
from models.rngs import named
from spec import Rate, derived

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {"relu": jax.nn.relu, "gelu": jax.nn.gelu}


def window_of(
    x: Float[Array, "B T D"], left: int, right: int, dilation: int = 1
) -> Float[Array, "B T window"]:
    """Beside each vector its neighbours, from `left` before it to `right` after it, zeros outside.

    Args:
        x: `[B, T, D]`.
        left: neighbours before.
        right: neighbours after.
        dilation: steps from one to the next.

    Returns:
        `[B, T, (left + 1 + right) D]`, the earliest first.
    """
    length = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (left * dilation, right * dilation), (0, 0)))
    starts = range(0, (left + right) * dilation + 1, dilation)
    return jnp.concatenate([padded[:, start : start + length] for start in starts], axis=-1)


class WindowFC(nnx.Module):
    """`W_out act(... act(W_1 [x_{t-left}; ...; x_{t+right}]))`: each position from its own window alone.

    Args:
        dim: width D of input and output.
        window: neighbours seen before and after, (left, right); what lies outside the sequence is zeros.
        num_layers: hidden layers.
        hidden_dim: their width.
        activation: what follows each of them.
        dropout_rate: dropout after every hidden layer.
        rngs: source of the initial parameters.

    Source: Collobert et al. 2011, the window approach.
    """

    def __init__(
        self,
        dim: int,
        *,
        window: tuple[int, int] = (2, 2),
        num_layers: int = 1,
        hidden_dim: Annotated[int, derived(lambda dim: 4 * dim)],
        activation: Literal["relu", "gelu"] = "relu",
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        self.left, self.right = window
        self.activation = activation
        widths = [(self.left + 1 + self.right) * dim, *num_layers * [hidden_dim]]
        self.hidden = nnx.List(
            Linear(
                inputs,
                outputs,
                kernel_init=nnx.initializers.he_normal(),
                rngs=named(rngs, f"hidden.{layer}"),
            )
            for layer, (inputs, outputs) in enumerate(itertools.pairwise(widths))
        )
        self.output = Linear(widths[-1], dim, rngs=named(rngs, "output"))
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
        x = window_of(jnp.where(mask[..., None], x, 0), self.left, self.right)
        for layer in self.hidden:
            x = ACTIVATIONS[self.activation](layer(x))
            x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
        return jnp.where(mask[..., None], self.output(x), 0)
