"""The encoder of ConvS2S, a stack of gated convolutions."""

from typing import Annotated

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.layers.gated_convolution import ROOT_HALF, GatedConvolution, linear
from models.rngs import named
from spec import Rate, derived


class GatedCNN(nnx.Module):
    """The encoder of ConvS2S: `out(x_L)`, `x_l = (x_{l-1} + glu(conv(x_{l-1}))) sqrt(1/2)`, `x_0 = in(x)`.

    The initial parameters and the scaling of sums keep the variance about the same from layer to layer, as in
    the paper. Its weight normalisation is left out: it would normalise every kernel again for every token
    that is decoded.

    Args:
        dim: width D of input and output.
        num_layers: convolutions.
        kernel_size: vectors in a window; an even one looks one step further ahead than back.
        hidden_dim: channels of the convolutions.
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
        hidden_dim: Annotated[int, derived(lambda dim: dim)],
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        self.margin = ((kernel_size - 1) // 2, kernel_size // 2)
        self.input = linear(dim, hidden_dim, dropout_rate=dropout_rate, rngs=named(rngs, "input"))
        self.convolutions = nnx.List(
            GatedConvolution(
                hidden_dim, kernel_size, dropout_rate=dropout_rate, rngs=named(rngs, f"convolutions.{layer}")
            )
            for layer in range(num_layers)
        )
        self.output = linear(hidden_dim, dim, rngs=named(rngs, "output"))
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
        real = mask[..., None]
        # What padding holds may be NaN, which would reach the gradients of the parameters.
        x = jnp.where(real, self.input(jnp.where(real, x, 0)), 0)
        for convolution in self.convolutions:
            dropped = self.dropout(x, deterministic=rngs is None, rngs=rngs)
            y = convolution(jnp.pad(dropped, ((0, 0), self.margin, (0, 0))))
            x = jnp.where(real, (x + y) * ROOT_HALF, 0)
        return jnp.where(real, self.output(x), 0)
