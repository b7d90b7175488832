"""From the columns of a batch to vectors: words with their affixes, bytes, frames, images.

All are called `inputs(batch, *, train=False, rngs=None) -> (x [B T D], mask [B T])`, where x is 0 at padding,
whatever the columns hold there; `rngs` (stream `dropout`) turns dropout on, None turns it off.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import positions as encodings
from errors import UserError
from models.images.cnn import FeatureMap, Norm
from models.layers.linear import Linear
from models.rngs import named
from spec import Block, Rate, Registry

Batch = Mapping[str, jax.Array]
Vectors = tuple[Float[Array, "B T D"], Bool[Array, "B T"]]

UNKNOWN = 1  # the index of a word that is in no vocabulary; 0 is padding


class Embedding(nnx.Module):
    """A table of learned vectors; index 0, padding, stands for zeros. Beyond the table is NaN, not the end.

    Args:
        size: rows.
        width: of a vector.
        rngs: source of the initial parameters, normal with variance 1 / width.
    """

    def __init__(self, size: int, width: int, *, rngs: nnx.Rngs):
        self.embedding = nnx.Param(nnx.initializers.normal(width**-0.5)(rngs.params(), (size, width)))

    def __call__(self, index: Int[Array, "*B"]) -> Float[Array, "*B D"]:
        """The vectors at `index [*B]`."""
        found = jnp.take(self.embedding[...], index, axis=0, mode="fill")
        return jnp.where((index > 0)[..., None], found, 0)


class TokenInputs(nnx.Module):
    """Words as the embedding of the word and of its affixes, so that unseen words are not blind.

    Reads `words`, int32 `[B, T]`, and, if it has affixes, `affixes`, int32 `[B, T, F]`: for each of F kinds
    (such as the last three letters) which one it is. In both, 0 is padding and 1 unknown.

    Args:
        dim: width D.
        words: size of the vocabulary.
        affixes: how many of each kind there are, F numbers.
        combine: "sum" of a word's and its affixes' embeddings, or "concatenate" and a linear map to D.
        affix_dim: width of the affixes' embeddings where they are concatenated.
        word_dropout_rate: how often, in training, a word counts as unknown, so that affixes learn to speak
            for those that are (Iyyer et al. 2015).
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.

    Source: Collobert et al. 2011, words and their suffixes as discrete features with a table each.
    """

    def __init__(
        self,
        dim: int,
        *,
        words: int,
        affixes: Sequence[int] = (),
        combine: Literal["sum", "concatenate"] = "sum",
        affix_dim: int = 32,
        word_dropout_rate: Rate = 0.0,
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        concatenate = combine == "concatenate" and len(affixes) > 0
        width = affix_dim if concatenate else dim
        self.words = Embedding(words, dim, rngs=named(rngs, "words"))
        self.affixes = nnx.List(
            Embedding(size, width, rngs=named(rngs, f"affixes.{kind}")) for kind, size in enumerate(affixes)
        )
        every = dim + width * len(affixes)
        self.project = Linear(every, dim, rngs=named(rngs, "project")) if concatenate else None
        self.word_dropout_rate = word_dropout_rate
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch and which of them are real."""
        words, mask = batch["words"], batch["mask"]
        if rngs is not None and self.word_dropout_rate > 0:
            dropped = jax.random.bernoulli(rngs.dropout(), self.word_dropout_rate, words.shape)
            words = jnp.where(dropped, UNKNOWN, words)
        parts = [self.words(words)]
        if self.affixes:
            parts += [table(batch["affixes"][..., kind]) for kind, table in enumerate(self.affixes)]
        x = sum(parts[1:], parts[0]) if self.project is None else self.project(jnp.concatenate(parts, -1))
        x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
        return jnp.where(mask[..., None], x, 0), mask


class ByteInputs(nnx.Module):
    """Text as its bytes, `bytes`, int32 `[B, T]`, each by a learned embedding.

    Args:
        dim: width D.
        bytes: how many different ones there are, padding (0) included.
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, *, bytes: int, dropout_rate: Rate = 0.0, rngs: nnx.Rngs):  # noqa: A002
        self.bytes = Embedding(bytes, dim, rngs=named(rngs, "bytes"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch and which of them are real."""
        x = self.dropout(self.bytes(batch["bytes"]), deterministic=rngs is None, rngs=rngs)
        return jnp.where(batch["mask"][..., None], x, 0), batch["mask"]


class FrameInputs(nnx.Module):
    """Frames of a recording, `frames`, float32 `[B, T, C]`, by a linear map of what is left of them.

    There are more frames than a recurrent layer or attention does well with, and neighbours are alike. Either
    they are stacked as they are, or windows of three, two steps apart, are mapped to one vector by a
    convolution and a rectifier, each halving their number (Dong et al. 2018, "Speech-Transformer").

    Args:
        dim: width D.
        frames: channels C.
        stack: how many neighbouring frames make a vector; T frames make `ceil(T / stack)` vectors, the last
            one filled up with zeros.
        subsampling: by what strided convolutions divide their number after that, rounded up; 1 for none.
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        dim: int,
        *,
        frames: int,
        stack: int = 1,
        subsampling: Literal[1, 2, 4, 8, 16] = 1,
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        self.stack = stack
        widths = [stack * frames, *(subsampling.bit_length() - 1) * [dim]]
        self.windows = nnx.List(
            Linear(3 * width, dim, rngs=named(rngs, f"windows.{layer}"))
            for layer, width in enumerate(widths[:-1])
        )
        self.project = Linear(widths[-1], dim, rngs=named(rngs, "project"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch and which of them are real."""
        mask = batch["mask"]
        x = jnp.where(mask[..., None], batch["frames"], 0)
        if self.stack > 1:
            x, mask = _stacked(x, mask, self.stack)
        for window in self.windows:
            # Vector t sees frames 2 t - 1 to 2 t + 1: the pair it stands for, and the one before.
            pairs, mask = _stacked(x, mask, 2)
            before = jnp.pad(pairs[:, :-1, x.shape[-1] :], ((0, 0), (1, 0), (0, 0)))
            x = nnx.relu(window(jnp.concatenate([before, pairs], axis=-1)))
            x = jnp.where(mask[..., None], x, 0)
        x = self.dropout(self.project(x), deterministic=rngs is None, rngs=rngs)
        return jnp.where(mask[..., None], x, 0), mask


def _stacked(x: Float[Array, "B T C"], mask: Bool[Array, "B T"], size: int) -> Vectors:
    """Every `size` neighbours side by side, the last ones filled up with zeros; real if one of them is."""
    missing = -mask.shape[1] % size
    mask = jnp.pad(mask, ((0, 0), (0, missing))).reshape(len(mask), -1, size).any(axis=-1)
    return jnp.pad(x, ((0, 0), (0, missing), (0, 0))).reshape(*mask.shape, -1), mask


class GridInputs(nnx.Module):
    """An image as the places of a convolutional network's feature map, row by row.

    Reads `image`, `[B, height, width, C]`: uint8, of which 255 counts as 1, or floating numbers as they are.

    Args:
        dim: width D.
        image: height, width and channels C of an image.
        widths: channels of each stage of the network; every stage but the first halves height and width.
        blocks: residual blocks of each stage.
        stem_stride: stride of the stem; 2 halves the image at once.
        norm: normalisation, over a batch or over groups of at most 8 channels.
        stack: every `stack` by `stack` places of the map make one vector, the last ones filled up with zeros.
            A place of a deep map sees most of a small image; a shallow map with its places stacked has as few
            of them, and each sees little more than it stands for.
        positions: "sinusoidal", so that a vector knows its row and column, or "none".
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.

    Attributes:
        grid: rows and columns of vectors.

    Raises:
        ValueError: if widths and blocks do not fit.

    Source: Xu et al. 2015, whose captioner looks at the places of a map of 14 x 14.
    """

    def __init__(
        self,
        dim: int,
        *,
        image: Sequence[int],
        widths: tuple[int, ...] = (16, 32, 64),
        blocks: tuple[int, ...] = (1, 1, 1),
        stem_stride: int = 2,
        norm: Norm = "batch",
        stack: int = 1,
        positions: Literal["sinusoidal", "none"] = "sinusoidal",
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        height, width, channels = image
        self.map = FeatureMap(
            channels,
            widths=widths,
            blocks=blocks,
            stem_stride=stem_stride,
            norm=norm,
            rngs=named(rngs, "map"),
        )
        self.stack = stack
        self.grid = (-(-height // (self.map.stride * stack)), -(-width // (self.map.stride * stack)))
        self.project = Linear(stack**2 * self.map.width, dim, rngs=named(rngs, "project"))
        self.positions = positions
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch, all of them real."""
        image = batch["image"]
        if jnp.issubdtype(image.dtype, jnp.integer):
            image = image.astype(jnp.float32) / 255
        found = self.map.features(image, train=train)
        rows, columns = self.grid
        missing = [
            (0, count * self.stack - side) for count, side in zip(self.grid, found.shape[1:3], strict=True)
        ]
        found = jnp.pad(found, ((0, 0), *missing, (0, 0)))
        squares = found.reshape(len(found), rows, self.stack, columns, self.stack, -1).swapaxes(2, 3)
        x = self.project(squares.reshape(len(found), rows * columns, -1))
        if self.positions == "sinusoidal":
            encoded = encodings.sinusoidal_2d(*self.grid, x.shape[-1], dtype=x.dtype)
            x = encodings.add(x, encoded.reshape(x.shape[1:]))
        x = self.dropout(x, deterministic=rngs is None, rngs=rngs)
        return x, jnp.ones(x.shape[:2], bool)


INPUTS = Registry(
    "inputs",
    {"words": TokenInputs, "bytes": ByteInputs, "frames": FrameInputs, "image": GridInputs},
    given=("dim", "words", "affixes", "bytes", "frames", "image", "rngs"),
)


def build(inputs: Block | str, columns: Mapping[str, Any], *, dim: int, rngs: nnx.Rngs) -> Any:
    """The inputs of a config block, for the columns of a data set.

    Args:
        inputs: a block of `INPUTS`, or its word alone.
        columns: which columns there are, with their sizes: `{"words": vocabulary, "affixes": (one for each
            kind, ...)}`, `{"bytes": kinds}`, `{"frames": channels}`, `{"image": (height, width, channels)}`.
        dim: width D.
        rngs: source of the initial parameters.

    Raises:
        UserError: the block is for other columns.
    """
    kind = INPUTS.chosen(inputs, "config.model.inputs")
    there = next(name for name in INPUTS if name in columns)
    if kind != there:
        raise UserError(
            f"config.model.inputs.kind is {kind!r}; the data set has {there}, so it must be {there!r}"
        )
    return INPUTS.build(inputs, "config.model.inputs", dim=dim, **columns, rngs=rngs)
