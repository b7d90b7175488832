"""From encoded vectors to answers: one for every vector, or one for the set."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from models.layers import crf
from models.layers.linear import Linear
from models.layers.pooling import POOLS
from models.losses import cross_entropy
from models.rngs import named
from spec import Block, Rate


class Output(NamedTuple):
    """What a model says of a batch.

    Attributes:
        logits: of every vector, `[B, T, K]`, or of every set, `[B, K]`; for regression the targets.
        penalty: what the model asks to be added to the loss of each example, `[B]`; 0 where there is none.
    """

    logits: Float[Array, "B ... K"]
    penalty: Float[Array, "B"]


class PositionHead(nnx.Module):
    """Logits of every vector: dropout and a linear layer, and a CRF over them if asked for.

    Args:
        crf: choose the labels of a sequence together, by a linear-chain conditional random field.
        dropout_rate: dropout before the linear layer.
        dim: width D of the vectors.
        num_outputs: classes K.
        rngs: source of the initial parameters.

    Source: Lample et al. 2016 for the CRF on top of a neural encoder.
    """

    def __init__(
        self, *, crf: bool = False, dropout_rate: Rate = 0.0, dim: int, num_outputs: int, rngs: nnx.Rngs
    ):
        self.dropout = nnx.Dropout(dropout_rate)
        # A head of zeros starts every class at the same probability, so the first loss is log(classes).
        self.output = Linear(dim, num_outputs, kernel_init=nnx.initializers.zeros, rngs=named(rngs, "output"))
        self.crf = crf
        if crf:
            self.transitions = nnx.Param(jnp.zeros((num_outputs, num_outputs)))
            self.first = nnx.Param(jnp.zeros(num_outputs))
            self.last = nnx.Param(jnp.zeros(num_outputs))

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Output:
        """Logits `[B, T, K]` of `x [B, T, D]`, 0 at padding; no penalty."""
        x = self.dropout(jnp.where(mask[..., None], x, 0), deterministic=rngs is None, rngs=rngs)
        logits = jnp.where(mask[..., None], self.output(x), 0)
        return Output(logits, jnp.zeros(len(x), logits.dtype))

    def loss(
        self,
        logits: Float[Array, "B T K"],
        tags: Int[Array, "B T"],
        mask: Bool[Array, "B T"],
        *,
        label_smoothing: float = 0.0,
    ) -> Float[Array, "B"]:
        """`-log p(tags)` of each example: the sum over its labelled vectors, or by the CRF of all together.

        Args:
            logits: of `__call__`.
            tags: in 0 to K - 1, or below 0 where a vector has no label.
            mask: True where a vector is real, False where it is padding.
            label_smoothing: probability spread evenly over all classes in the targets.

        Raises:
            ValueError: label smoothing is asked of a CRF.
        """
        if self.crf:
            if label_smoothing:
                raise ValueError(f"label_smoothing is {label_smoothing}; a CRF has none, it must be 0")
            return crf.loss(logits, tags, mask, self._transitions())
        labelled = mask & (tags >= 0)
        losses = cross_entropy(logits, jnp.where(labelled, tags, 0), label_smoothing)
        return jnp.where(labelled, losses, 0).sum(axis=-1)

    def decode(self, logits: Float[Array, "B T K"], mask: Bool[Array, "B T"]) -> Int[Array, "B T"]:
        """The likeliest tag of every vector, or the CRF's likeliest sequence; -1 at padding."""
        best = crf.viterbi(logits, mask, self._transitions()) if self.crf else logits.argmax(axis=-1)
        return jnp.where(mask, best.astype(jnp.int32), -1)

    def _transitions(self) -> crf.Transitions:
        return crf.Transitions(self.transitions[...], self.first[...], self.last[...])


class PooledHead(nnx.Module):
    """Logits of a set: its vectors pooled into one (or several, end to end), dropout, a linear layer.

    Args:
        pool: how the vectors of a set become one.
        dropout_rate: dropout before the linear layer.
        dim: width D of the vectors.
        num_outputs: classes, or targets of a regression, K.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        pool: Annotated[Block, POOLS] | str = "mean",
        dropout_rate: Rate = 0.0,
        dim: int,
        num_outputs: int,
        rngs: nnx.Rngs,
    ):
        self.pool = POOLS.build(pool, "config.model.head.pool", dim=dim, rngs=named(rngs, "pool"))
        self.dropout = nnx.Dropout(dropout_rate)
        # A head of zeros starts every class at the same probability, so the first loss is log(classes).
        self.output = Linear(
            self.pool.dim, num_outputs, kernel_init=nnx.initializers.zeros, rngs=named(rngs, "output")
        )

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Output:
        """Logits `[B, K]` of the sets `x [B, T, D]`, and the penalty; an empty set is pooled to 0."""
        pooled, penalty = self.pool(x, mask)
        pooled = self.dropout(pooled, deterministic=rngs is None, rngs=rngs)
        return Output(self.output(pooled), penalty)
