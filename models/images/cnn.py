"""A residual convolutional network for images, with batch or group normalisation."""

from collections.abc import Sequence
from typing import Literal

import jax
from flax import nnx
from jaxtyping import Array, Float

from models.layers.batch_norm import BatchNorm
from models.layers.convolution import Conv
from models.layers.linear import Linear
from models.rngs import named

Norm = Literal["batch", "group"]


def _norm(kind: str, width: int, rngs: nnx.Rngs) -> BatchNorm | nnx.GroupNorm:
    if kind == "batch":
        return BatchNorm(width, rngs=rngs)
    # Groups of 8 channels, or of the most that divide the width: enough to estimate a variance from the
    # 4 x 4 positions of a last stage.
    group_size = max(size for size in range(1, 9) if width % size == 0)
    return nnx.GroupNorm(width, num_groups=None, group_size=group_size, rngs=rngs)


def _normalise(norm: BatchNorm | nnx.GroupNorm, x: jax.Array, train: bool) -> jax.Array:
    return norm(x, use_running_average=not train) if isinstance(norm, BatchNorm) else norm(x)


class ResidualBlock(nnx.Module):
    """`relu(shortcut(x) + norm(conv(relu(norm(conv(x))))))`, 3 x 3 convolutions (He et al. 2016).

    Args:
        inputs: channels in.
        outputs: channels out.
        stride: of the first convolution; the shortcut is a 1 x 1 convolution where shapes change.
        norm: "batch" or "group".
        rngs: source of the initial parameters.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, *, norm: str, rngs: nnx.Rngs):
        self.conv1 = Conv(inputs, outputs, 3, stride, rngs=named(rngs, "conv1"))
        self.norm1 = _norm(norm, outputs, rngs)
        self.conv2 = Conv(outputs, outputs, 3, 1, rngs=named(rngs, "conv2"))
        self.norm2 = _norm(norm, outputs, rngs)
        changes = stride != 1 or inputs != outputs
        self.shortcut = Conv(inputs, outputs, 1, stride, rngs=named(rngs, "shortcut")) if changes else None

    def __call__(self, x: Float[Array, "B height width C"], *, train: bool) -> Float[Array, "B h w F"]:
        """Map `[B, height, width, inputs]` to `[B, height/stride, width/stride, outputs]`."""
        y = jax.nn.relu(_normalise(self.norm1, self.conv1(x), train))
        y = _normalise(self.norm2, self.conv2(y), train)
        return jax.nn.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class FeatureMap(nnx.Module):
    """A small ResNet without its head: 3 x 3 stem, stages of residual blocks that halve the image.

    Args:
        channels: of an image.
        widths: channels of each stage; every stage but the first halves height and width.
        blocks: residual blocks of each stage.
        stem_stride: stride of the stem (1 for small images).
        norm: "batch" or "group" (groups of at most 8 channels).
        rngs: source of the initial parameters.

    Attributes:
        width: channels F of the map.
        stride: pixels from one of its places to the next.

    Raises:
        ValueError: if widths and blocks differ in length.

    Source: He et al. 2016; group normalisation from Wu and He 2018.
    """

    def __init__(
        self,
        channels: int,
        *,
        widths: Sequence[int],
        blocks: Sequence[int],
        stem_stride: int = 1,
        norm: Norm = "batch",
        rngs: nnx.Rngs,
    ):
        if len(widths) != len(blocks) or not widths:
            raise ValueError(f"widths {tuple(widths)} and blocks {tuple(blocks)} differ in length")
        self.stem = Conv(channels, widths[0], 3, stem_stride, rngs=named(rngs, "stem"))
        self.stem_norm = _norm(norm, widths[0], rngs)
        layers = []
        inputs, total = widths[0], stem_stride
        for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                name = f"blocks.{stage}.{block}"  # one more in a stage shifts none of the next
                layers.append(ResidualBlock(inputs, width, stride, norm=norm, rngs=named(rngs, name)))
                inputs, total = width, total * stride
        self.blocks = nnx.List(layers)
        self.width, self.stride = inputs, total

    def features(
        self, images: Float[Array, "B height width C"], *, train: bool = False
    ) -> Float[Array, "B h w F"]:
        """What the last stage makes of images, at each place of a grid.

        Args:
            images: pixels.
            train: normalise by the batch's own statistics and update the running ones.
        """
        x = jax.nn.relu(_normalise(self.stem_norm, self.stem(images), train))
        for block in self.blocks:
            x = block(x, train=train)
        return x


class CNN(FeatureMap):
    """A `FeatureMap`, its mean, and a linear head.

    Args:
        image_shape: height, width and channels of an image.
        num_classes: classes.
        widths: channels of each stage; every stage but the first halves height and width.
        blocks: residual blocks of each stage.
        stem_stride: stride of the stem; 2 halves the image at once.
        norm: normalisation, over a batch or over groups of at most 8 channels.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if widths and blocks differ in length.
    """

    def __init__(
        self,
        *,
        image_shape: tuple[int, int, int],
        num_classes: int,
        widths: tuple[int, ...] = (16, 32, 72, 80),
        blocks: tuple[int, ...] = (0, 1, 1, 1),
        stem_stride: int = 1,
        norm: Norm = "batch",
        rngs: nnx.Rngs,
    ):
        super().__init__(
            image_shape[-1], widths=widths, blocks=blocks, stem_stride=stem_stride, norm=norm, rngs=rngs
        )
        # A head of zeros starts every class at the same probability, so the first loss is log(classes).
        self.head = Linear(
            self.width, num_classes, kernel_init=nnx.initializers.zeros, rngs=named(rngs, "head")
        )

    def __call__(
        self,
        images: Float[Array, "B height width C"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B num_classes"]:
        """Class logits `[B, num_classes]` of images `[B, height, width, C]`.

        Args:
            images: standardised pixels.
            train: normalise by the batch's own statistics and update the running ones.
            rngs: not needed; a CNN has no dropout.
        """
        return self.head(self.features(images, train=train).mean(axis=(1, 2)))


def receptive_field(widths: Sequence[int], blocks: Sequence[int], stem_stride: int = 1) -> int:
    """Side, in pixels, of the square of the image that one output position of `CNN` depends on."""
    field, spacing = 3, stem_stride
    for stage, (_, count) in enumerate(zip(widths, blocks, strict=True)):
        for block in range(count):
            field += 2 * spacing
            spacing *= 2 if stage > 0 and block == 0 else 1
            field += 2 * spacing
    return field
