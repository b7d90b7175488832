"""A fully connected network on a window: the encoder that sees no more than the neighbours it is given."""

import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.linear import Linear

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
        window: neighbours before and after, `(left, right)`; what lies outside the sequence is zeros.
        num_layers: hidden layers.
        hidden_dim: their width; 0 means 4 D.
        activation: "relu" or "gelu".
        dropout_rate: dropout after every hidden layer.
        rngs: source of the initial parameters.

    Raises:
        ValueError: a window that is not two integers from 0 on, or an unknown activation.

    Source: Collobert et al. 2011, the window approach.
    """

    def __init__(
        self,
        dim: int,
        *,
        window: Sequence[int] = (2, 2),
        num_layers: int = 1,
        hidden_dim: int = 0,
        activation: str = "relu",
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        is_pair = isinstance(window, Sequence) and len(window) == 2
        if not is_pair or not all(isinstance(side, int) and side >= 0 for side in window):
            raise ValueError(f"window is {window!r}; it must be (left, right), each at least 0")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}; it must be one of {tuple(ACTIVATIONS)}")
        self.left, self.right = window
        self.activation = activation
        widths = [(self.left + 1 + self.right) * dim, *num_layers * [hidden_dim or 4 * dim]]
        self.hidden = nnx.List(
            Linear(inputs, outputs, kernel_init=nnx.initializers.he_normal(), rngs=rngs)
            for inputs, outputs in itertools.pairwise(widths)
        )
        self.output = Linear(widths[-1], dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """Encode sets of vectors.

        Args:
            x: vectors `[B, T, D]`.
            mask: True where a vector is real, False where it is padding.
            train: changes nothing; there are no batch statistics.
            rngs: stream `dropout`; None turns dropout off.

        Returns:
            `[B, T, D]`, 0 at padding.
        """
        x = window_of(jnp.where(mask[..., None], x, 0), self.left, self.right)
        for layer in self.hidden:
            x = ACTIVATIONS[self.activation](layer(x))
            x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
        return jnp.where(mask[..., None], self.output(x), 0)
