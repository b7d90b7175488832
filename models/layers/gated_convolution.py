"""Gated convolutions along a sequence, and linear maps that keep the variance."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from models.layers.linear import Linear

# A sum of two branches of the same variance, times this, has that variance too.
ROOT_HALF = math.sqrt(0.5)


def linear(
    inputs: int, outputs: int, *, gain: float = 1.0, dropout_rate: float = 0.0, rngs: nnx.Rngs
) -> Linear:
    """A linear map whose results vary as much as its inputs: `W ~ N(0, gain (1 - rate) / inputs)`, `b = 0`.

    Args:
        inputs: width of the vectors in.
        outputs: width of the vectors out.
        gain: by what the variance shall grow, to make up for what follows that lessens it.
        dropout_rate: of the inputs, whose variance dropout has raised by `1 / (1 - rate)`.
        rngs: source of the initial parameters.

    Source: Gehring et al. 2017, section 3.5.
    """
    init = nnx.initializers.variance_scaling(gain * (1 - dropout_rate), "fan_in", "normal")
    return Linear(inputs, outputs, kernel_init=init, rngs=rngs)


class GatedConvolution(nnx.Module):
    """A convolution of twice the channels, one half of which gates the other: `a * sigmoid(b)`.

    It is "valid", T + size - 1 vectors in and T out: the caller says what lies outside, zeros on both sides
    of an encoder's sequence, the past of a decoder's. Written as a matrix product over windows, which XLA on
    CPU does faster than its convolutions.

    Args:
        dim: channels D in and out.
        size: vectors in a window.
        dropout_rate: of the inputs, by the caller; it is here for the initial size of the parameters.
        rngs: source of the initial parameters.

    Source: Dauphin et al. 2017. A gate that is half open lets a quarter of the variance through, so it is
    four times that of the inputs before the gate (Gehring et al. 2017, section 3.5).
    """

    def __init__(self, dim: int, size: int, *, dropout_rate: float = 0.0, rngs: nnx.Rngs):
        self.size = size
        self.taps = linear(size * dim, 2 * dim, gain=4, dropout_rate=dropout_rate, rngs=rngs)

    def __call__(self, x: Float[Array, "B padded D"]) -> Float[Array, "B T D"]:
        """Map `[B, T + size - 1, D]` to `[B, T, D]`."""
        length = x.shape[1] - self.size + 1
        windows = jnp.concatenate([x[:, start : start + length] for start in range(self.size)], axis=-1)
        return jax.nn.glu(self.taps(windows))
