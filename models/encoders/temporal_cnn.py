"""Convolutions along a sequence: a residual stack, and one layer of several widths side by side."""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.encoders.window_fc import window_of
from models.layers.batch_norm import BatchNorm
from models.layers.linear import Linear
from models.rngs import named
from spec import Rate


class TemporalConv(nnx.Module):
    """A convolution along time, "same" padding: one linear map of every window of `size` vectors.

    Written as a matrix product over windows, which XLA on CPU does faster than its convolutions. An even
    size looks one step further ahead than back.

    Args:
        inputs: channels in.
        outputs: channels out.
        size: steps in a window.
        dilation: steps from one vector of a window to the next.
        rngs: source of the initial parameters.
    """

    def __init__(self, inputs: int, outputs: int, size: int, *, dilation: int = 1, rngs: nnx.Rngs):
        self.left, self.right, self.dilation = (size - 1) // 2, size // 2, dilation
        self.taps = Linear(size * inputs, outputs, kernel_init=nnx.initializers.he_normal(), rngs=rngs)

    def __call__(self, x: Float[Array, "B T C"]) -> Float[Array, "B T F"]:
        """Map `[B, T, inputs]`, 0 at padding, to `[B, T, outputs]`."""
        return self.taps(window_of(x, self.left, self.right, self.dilation))


class TemporalCNN(nnx.Module):
    """Residual convolutions along time, `x + relu(norm(conv(x)))`, each wider than the one before if dilated.

    Layer i has dilation `dilation ** i`, so that with 2 the receptive field doubles with every layer.

    Args:
        dim: channels D.
        num_layers: convolutions.
        kernel_size: vectors in a window.
        dilation: by what the dilation grows from layer to layer; 1 leaves all undilated.
        norm: what normalises a convolution; "batch", over the real vectors of a batch.
        dropout_rate: dropout on every residual branch.
        rngs: source of the initial parameters.

    Source: Collobert et al. 2011 for convolution over words; residual and dilated as in Bai, Kolter and
    Koltun 2018.
    """

    def __init__(
        self,
        dim: int,
        *,
        num_layers: int = 2,
        kernel_size: int = 3,
        dilation: int = 1,
        norm: Literal["batch", "none"] = "batch",
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        self.convolutions = nnx.List(
            TemporalConv(
                dim,
                dim,
                kernel_size,
                dilation=dilation**layer,
                rngs=named(rngs, f"convolutions.{layer}"),
            )
            for layer in range(num_layers)
        )
        self.norms = nnx.List(BatchNorm(dim, rngs=rngs) for _ in range(num_layers if norm == "batch" else 0))
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
        x = jnp.where(mask[..., None], x, 0)
        for index, convolution in enumerate(self.convolutions):
            y = convolution(x)
            if self.norms:
                y = self.norms[index](y, use_running_average=not train, mask=mask)
            y = self.dropout(jax.nn.relu(y), deterministic=rngs is None, rngs=rngs)
            x = x + jnp.where(mask[..., None], y, 0)
        return x


class MultiWidthCNN(nnx.Module):
    """One layer of convolutions of several widths, `[relu(conv_3(x)); relu(conv_4(x)); relu(conv_5(x))]`.

    With a head that takes the maximum over time it is the sentence classifier of the paper: each filter
    looks for one phrase, wherever it stands. It has no dropout of its own: the paper's is the head's, on
    the pooled vector.

    Args:
        dim: channels D in and out; the widths share it evenly, the first ones taking what is left over.
        widths: vectors in the window of each convolution.
        rngs: source of the initial parameters.

    Raises:
        ValueError: no width, a width below 1, or more widths than channels.

    Source: Kim 2014.
    """

    def __init__(self, dim: int, *, widths: tuple[int, ...] = (3, 4, 5), rngs: nnx.Rngs):
        if not 1 <= len(widths) <= dim or min(widths) < 1:
            raise ValueError(f"widths is {widths!r}; it must hold 1 to dim ({dim}) integers from 1 on")
        filters, rest = divmod(dim, len(widths))
        self.convolutions = nnx.List(
            TemporalConv(dim, filters + (index < rest), width, rngs=named(rngs, f"convolutions.{index}"))
            for index, width in enumerate(widths)
        )

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """Encode sets of vectors; see `Encoder`."""
        x = jnp.where(mask[..., None], x, 0)
        x = jax.nn.relu(jnp.concatenate([convolution(x) for convolution in self.convolutions], axis=-1))
        return jnp.where(mask[..., None], x, 0)
