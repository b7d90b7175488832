"""The convolution of the CNN, with matrix products for the two shapes XLA's CPU kernels are slow at."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class Conv(nnx.Conv):
    """A square convolution, "same" padding, no bias (the normalisation that follows has one).

    A kernel of 1 x 1, and one on a single channel without stride, are the same sums as a matrix product
    over pixels, forward and backward, and quicker as such. All else is Flax's convolution.

    Args:
        inputs: channels in.
        outputs: channels out.
        size: side of the kernel, pixels, odd.
        stride: steps between outputs, pixels.
        rngs: source of the initial parameters.
    """

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, *, rngs: nnx.Rngs):
        super().__init__(
            inputs,
            outputs,
            (size, size),
            strides=stride,
            use_bias=False,
            kernel_init=nnx.initializers.he_normal(),
            rngs=rngs,
        )
        self.size, self.stride = size, stride

    def __call__(  # type: ignore[override]
        self, x: Float[Array, "B height width C"]
    ) -> Float[Array, "B h w F"]:
        """Map `[B, height, width, inputs]` to `[B, height/stride, width/stride, outputs]`."""
        kernel = self.kernel[...]
        if self.size == 1:
            x = x[:, :: self.stride, :: self.stride]
            return (x.reshape(-1, x.shape[-1]) @ kernel[0, 0]).reshape(*x.shape[:-1], -1)
        if x.shape[-1] == 1 and self.stride == 1:
            _, height, width, _ = x.shape
            margin = self.size // 2
            padded = jnp.pad(x[..., 0], ((0, 0), (margin, margin), (margin, margin)))
            places = [(row, column) for row in range(self.size) for column in range(self.size)]
            shifted = jnp.stack([padded[:, r : r + height, c : c + width] for r, c in places])
            taps = kernel.reshape(len(places), -1)
            product = jax.lax.dot_general(shifted.reshape(len(places), -1), taps, (((0,), (0,)), ((), ())))
            return product.reshape(*x.shape[:-1], -1)
        return super().__call__(x)
