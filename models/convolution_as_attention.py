"""A trained CNN as a self-attention network: each convolution becomes heads that look at one pixel each."""

from flax import nnx
from jaxtyping import Array, Float

from attention import convolution
from models.images.cnn import CNN
from models.layers.convolution import Conv


class PixelAttention(nnx.Module):
    """Multi-head self-attention over pixels that equals a trained convolution (Cordonnier et al. 2020).

    One head for each offset of the kernel. Where the heads look is decided by encodings of position; what
    they carry, by the projection `value_kernel [heads, inputs, outputs]`.

    Args:
        conv: the convolution.
    """

    def __init__(self, conv: Conv):
        kernel = conv.kernel[...]
        self.size, self.stride = conv.size, conv.stride
        self.value_kernel = nnx.Param(kernel.reshape(-1, *kernel.shape[-2:]))

    def __call__(self, x: Float[Array, "B height width C"]) -> Float[Array, "B h w F"]:
        """Map `[B, height, width, inputs]` to `[B, height/stride, width/stride, outputs]`."""
        heads = self.value_kernel[...]
        kernel = heads.reshape(self.size, self.size, *heads.shape[-2:])
        return convolution.convolve(x, kernel, strides=self.stride)


def as_attention(cnn: CNN) -> CNN:
    """A copy of a CNN in which every convolution is `PixelAttention`; all else stays as it was trained."""
    copy = nnx.clone(cnn)
    for _, module in list(nnx.iter_modules(copy)):
        for name, child in list(vars(module).items()):
            if isinstance(child, Conv):
                setattr(module, name, PixelAttention(child))
    return copy
