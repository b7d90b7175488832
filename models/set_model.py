"""The whole model: a set of vectors in, a label for every vector or one for the set out."""

from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from errors import UserError
from models import encoding
from models.fields import construct
from models.heads import Output, PooledHead, PositionHead
from models.inputs import Batch

Per = Literal["vector", "set"]


class SetModel(nnx.Module):
    """Inputs, then positions, then an encoder, then a head.

    A head that pools by "class" reads a learned vector, put before the others once these have their
    positions, in every example that has any.

    Args:
        inputs: from a batch to vectors `[B, T, D]` and their mask; see `models.inputs`.
        positions: what is added to the vectors to say where they stand; see `models.positions`.
        encoder: one of `models.encoders`.
        head: one of `models.heads`.
        class_token: the learned vector, `[D]`, where the head reads one.
    """

    def __init__(
        self,
        inputs: nnx.Module,
        positions: nnx.Module,
        encoder: nnx.Module,
        head: PositionHead | PooledHead,
        class_token: nnx.Param | None = None,
    ):
        self.inputs, self.positions, self.encoder, self.head = inputs, positions, encoder, head
        self.class_token = class_token

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


def build(
    model: Mapping[str, Any], *, inputs: Mapping[str, Any], outputs: int, per: Per, rngs: nnx.Rngs
) -> SetModel:
    """The model of a config block.

    Args:
        model: the fields of `models.encoding.build`, and `head`, those of the head (see `models.heads`).
        inputs: which columns there are, with their sizes; see `models.encoding.build`.
        outputs: classes, or targets of a regression, K.
        per: "vector", a label for each, or "set", one for all.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word or field, one that is missing, a value out of range, or parts that do
            not go together.
    """
    fields = dict(model)
    if "dim" not in fields:
        raise UserError("config.model.dim is missing")
    head = {"dropout_rate": fields.get("dropout_rate", 0.0), **dict(fields.pop("head", None) or {})}
    stack = dict(fields.get("inputs") or {}).get("stack", 1)
    if per == "vector" and stack != 1:
        raise UserError(f"config.model.inputs.stack is {stack}; with a label for every frame it must be 1")
    built: Any = construct(
        "config.model.head",
        PositionHead if per == "vector" else PooledHead,
        head,
        dim=fields["dim"],
        num_outputs=outputs,
        rngs=rngs,
    )
    parts = encoding.build(fields, inputs=inputs, rngs=rngs)
    reads_class = per == "set" and built.pool.kind == "class"
    return SetModel(*parts, built, _class_token(fields["dim"], rngs) if reads_class else None)


def _class_token(dim: int, rngs: nnx.Rngs) -> nnx.Param[jax.Array]:
    return nnx.Param(nnx.initializers.normal(dim**-0.5)(rngs.params(), (dim,)))
