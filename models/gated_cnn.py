"""Gated convolutions along a sequence: the layer, and the encoder made of it."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.linear import Linear

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


class GatedCNN(nnx.Module):
    """The encoder of ConvS2S: `out(x_L)`, `x_l = (x_{l-1} + glu(conv(x_{l-1}))) sqrt(1/2)`, `x_0 = in(x)`.

    The initial parameters and the scaling of sums keep the variance about the same from layer to layer, as in
    the paper. Its weight normalisation is left out: it would normalise every kernel again for every token
    that is decoded.

    Args:
        dim: width D of input and output.
        num_layers: convolutions.
        kernel_size: vectors in a window; an even one looks one step further ahead than back.
        hidden_dim: channels of the convolutions; 0 means D.
        dropout_rate: dropout on the inputs of every convolution.
        rngs: source of the initial parameters.

    Source: Gehring et al. 2017, "Convolutional sequence to sequence learning".
    """

    def __init__(
        self,
        dim: int,
        *,
        num_layers: int = 4,
        kernel_size: int = 3,
        hidden_dim: int = 0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        width = hidden_dim or dim
        self.margin = ((kernel_size - 1) // 2, kernel_size // 2)
        self.input = linear(dim, width, dropout_rate=dropout_rate, rngs=rngs)
        self.convolutions = nnx.List(
            GatedConvolution(width, kernel_size, dropout_rate=dropout_rate, rngs=rngs)
            for _ in range(num_layers)
        )
        self.output = linear(width, dim, rngs=rngs)
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
        real = mask[..., None]
        # What padding holds may be NaN, which would reach the gradients of the parameters.
        x = jnp.where(real, self.input(jnp.where(real, x, 0)), 0)
        for convolution in self.convolutions:
            dropped = self.dropout(x, deterministic=rngs is None, rngs=rngs)
            y = convolution(jnp.pad(dropped, ((0, 0), self.margin, (0, 0))))
            x = jnp.where(real, (x + y) * ROOT_HALF, 0)
        return jnp.where(real, self.output(x), 0)
