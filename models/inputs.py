"""From the columns of a batch to vectors: words with their affixes, bytes, frames.

All are called `inputs(batch, *, train=False, rngs=None) -> (x [B T D], mask [B T])`, where x is 0 at padding,
whatever the columns hold there; `rngs` (stream `dropout`) turns dropout on, None turns it off.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from models.linear import Linear

Batch = Mapping[str, jax.Array]
Vectors = tuple[Float[Array, "B T D"], Bool[Array, "B T"]]

UNKNOWN = 1  # the index of a word that is in no vocabulary; 0 is padding
COMBINE = ("sum", "concatenate")


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
        combine: "sum" of all embeddings, or "concatenate" and a linear map to D.
        affix_dim: width of the affixes' embeddings where they are concatenated.
        word_dropout_rate: how often, in training, a word counts as unknown, so that affixes learn to speak
            for those that are (Iyyer et al. 2015).
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if combine is none of the above.

    Source: Collobert et al. 2011, words and their suffixes as discrete features with a table each.
    """

    def __init__(
        self,
        dim: int,
        *,
        words: int,
        affixes: Sequence[int] = (),
        combine: str = "sum",
        affix_dim: int = 32,
        word_dropout_rate: float = 0.0,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        if combine not in COMBINE:
            raise ValueError(f"combine is {combine!r}; it must be one of {COMBINE}")
        concatenate = combine == "concatenate" and len(affixes) > 0
        width = affix_dim if concatenate else dim
        self.words = Embedding(words, dim, rngs=rngs)
        self.affixes = nnx.List(Embedding(size, width, rngs=rngs) for size in affixes)
        self.project = Linear(dim + width * len(affixes), dim, rngs=rngs) if concatenate else None
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

    def __init__(self, dim: int, *, bytes: int, dropout_rate: float = 0.0, rngs: nnx.Rngs):  # noqa: A002
        self.bytes = Embedding(bytes, dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch and which of them are real."""
        x = self.dropout(self.bytes(batch["bytes"]), deterministic=rngs is None, rngs=rngs)
        return jnp.where(batch["mask"][..., None], x, 0), batch["mask"]


class FrameInputs(nnx.Module):
    """Frames of a recording, `frames`, float32 `[B, T, C]`, by a linear map of every `stack` of them.

    Args:
        dim: width D.
        frames: channels C.
        stack: how many neighbouring frames make a vector; T frames make `ceil(T / stack)` vectors, the last
            one filled up with zeros.
        dropout_rate: dropout on the vectors.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, *, frames: int, stack: int = 1, dropout_rate: float = 0.0, rngs: nnx.Rngs):
        self.stack = stack
        self.project = Linear(stack * frames, dim, rngs=rngs)
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Vectors:
        """The vectors of a batch and which of them are real."""
        mask = batch["mask"]
        frames = jnp.where(mask[..., None], batch["frames"], 0)
        if self.stack > 1:
            missing = -mask.shape[1] % self.stack
            mask = jnp.pad(mask, ((0, 0), (0, missing))).reshape(len(mask), -1, self.stack).any(axis=-1)
            frames = jnp.pad(frames, ((0, 0), (0, missing), (0, 0))).reshape(*mask.shape, -1)
        x = self.dropout(self.project(frames), deterministic=rngs is None, rngs=rngs)
        return jnp.where(mask[..., None], x, 0), mask


INPUTS = {"words": TokenInputs, "bytes": ByteInputs, "frames": FrameInputs}
