"""The whole model: a set of vectors in, a label for every vector or one for the set out."""

from collections.abc import Mapping
from typing import Annotated, Any

import jax.numpy as jnp
from flax import nnx

from errors import UserError
from models import inputs as vectors
from models.encoders import ENCODERS
from models.heads import Output, PooledHead, PositionHead
from models.inputs import INPUTS, Batch
from models.positions import POSITIONS
from models.rngs import named
from spec import Block, call

POSITION_HEAD = call(PositionHead, given=("dim", "num_outputs", "rngs"))
POOLED_HEAD = call(PooledHead, given=("dim", "num_outputs", "rngs"))


class SetModel(nnx.Module):
    """Inputs, then positions, then an encoder, then a head.

    A head that pools by "class" reads a learned vector, put before the others once these have their
    positions, in every example that has any.

    Args:
        dim: width D of the vectors.
        inputs: from a batch to vectors `[B, T, D]` and their mask.
        positions: what is added to the vectors to say where they stand.
        encoder: what lets the vectors know of each other.
        columns: which columns a batch has, with their sizes; see `models.inputs.build`.
        rngs: source of the initial parameters.

    Raises:
        UserError: on parts that do not go together.
    """

    head: Any
    class_token: nnx.Param | None

    def __init__(
        self,
        dim: int,
        *,
        inputs: Block | str,
        positions: Block | str,
        encoder: Block | str,
        columns: Mapping[str, Any],
        rngs: nnx.Rngs,
    ):
        self.inputs = vectors.build(inputs, columns, dim=dim, rngs=named(rngs, "inputs"))
        self.positions = POSITIONS.build(
            positions, "config.model.positions", dim=dim, rngs=named(rngs, "positions")
        )
        self.encoder = ENCODERS.build(encoder, "config.model.encoder", dim=dim, rngs=named(rngs, "encoder"))

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Output:
        """What the model says of a batch.

        Args:
            batch: the columns of its inputs, and `mask [B, T]`, True where a vector is real.
            train: normalise by the batch's own statistics, where there are any, and update the running ones.
            rngs: stream `dropout`; None turns dropout off.

        Returns:
            Logits `[B, T, K]` of every vector or `[B, K]` of every set, and the penalty `[B]`.
        """
        x, mask = self.inputs(batch, train=train, rngs=rngs)
        x = self.positions(x, mask)
        if self.class_token is not None:
            token = jnp.broadcast_to(self.class_token[...], (len(x), 1, x.shape[-1]))
            x = jnp.concatenate([token, x], axis=1)
            mask = jnp.concatenate([mask.any(axis=1, keepdims=True), mask], axis=1)
        x = self.encoder(x, mask, train=train, rngs=rngs)
        return self.head(x, mask, train=train, rngs=rngs)


class Tagger(SetModel):
    """A label for every vector.

    Args:
        dim: width D of the vectors.
        inputs: how words, bytes or frames become vectors.
        positions: what tells the vectors where they stand.
        encoder: what lets the vectors know of each other.
        head: from encoded vectors to labels.
        columns: which columns a batch has, with their sizes; see `models.inputs.build`.
        num_outputs: classes K.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        dim: int = 128,
        inputs: Annotated[Block, INPUTS] | str = "words",
        positions: Annotated[Block, POSITIONS] | str = "none",
        encoder: Annotated[Block, ENCODERS] | str = "rnn",
        head: Annotated[Block, POSITION_HEAD],
        columns: Mapping[str, Any],
        num_outputs: int,
        rngs: nnx.Rngs,
    ):
        super().__init__(dim, inputs=inputs, positions=positions, encoder=encoder, columns=columns, rngs=rngs)
        stack = INPUTS.as_block(inputs).get("stack", 1)
        if stack != 1:
            raise UserError(
                f"config.model.inputs.stack is {stack}; with a label for every frame it must be 1"
            )
        self.class_token = None
        self.head = POSITION_HEAD.build(
            head, "config.model.head", dim=dim, num_outputs=num_outputs, rngs=named(rngs, "head")
        )


class Classifier(SetModel):
    """One label for the set.

    Args:
        dim: width D of the vectors.
        inputs: how words, bytes or frames become vectors.
        positions: what tells the vectors where they stand.
        encoder: what lets the vectors know of each other.
        head: from encoded vectors to the label.
        columns: which columns a batch has, with their sizes; see `models.inputs.build`.
        num_outputs: classes K.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        dim: int = 128,
        inputs: Annotated[Block, INPUTS] | str = "words",
        positions: Annotated[Block, POSITIONS] | str = "none",
        encoder: Annotated[Block, ENCODERS] | str = "transformer",
        head: Annotated[Block, POOLED_HEAD],
        columns: Mapping[str, Any],
        num_outputs: int,
        rngs: nnx.Rngs,
    ):
        super().__init__(dim, inputs=inputs, positions=positions, encoder=encoder, columns=columns, rngs=rngs)
        self.head = POOLED_HEAD.build(
            head, "config.model.head", dim=dim, num_outputs=num_outputs, rngs=named(rngs, "head")
        )
        token = nnx.initializers.normal(dim**-0.5)(named(rngs, "class_token").params(), (dim,))
        self.class_token = nnx.Param(token) if self.head.pool.reads_token else None


TAGGER = call(Tagger, given=("columns", "num_outputs", "rngs"))
CLASSIFIER = call(Classifier, given=("columns", "num_outputs", "rngs"))
