"""The whole model: a set of vectors in, a label for every vector or one for the set out."""

from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from errors import UserError, unknown
from models import encoders
from models.fields import construct
from models.heads import Output, PooledHead, PositionHead
from models.inputs import INPUTS, Batch
from models.positions import RELATIVE, Positions

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
        model: `kind`, one of `encoders.ENCODERS`; `dim`, the width D; `positions`, `{"kind": word, ...}` (see
            `models.positions`, none if left out); `inputs` and `head`, further fields of those (see
            `models.inputs` and `models.heads`); `dropout_rate`, for all parts that name no other; and the
            encoder's own fields.
        inputs: which columns there are, with their sizes: `{"words": vocabulary, "affixes": (one for each
            kind, ...)}`, `{"bytes": kinds}` or `{"frames": channels}`.
        outputs: classes, or targets of a regression, K.
        per: "vector", a label for each, or "set", one for all.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word or field, one that is missing, a value out of range, or parts that do
            not go together.
    """
    fields = dict(model)
    for name in ("kind", "dim"):
        if name not in fields:
            raise UserError(f"config.model.{name} is missing")
    kind, dim = fields.pop("kind"), fields.pop("dim")
    if not isinstance(dim, int) or dim < 1:
        raise UserError(f"config.model.dim is {dim!r}; it must be an integer from 1 on")
    blocks = {name: dict(fields.pop(name, None) or {}) for name in ("positions", "inputs", "head")}
    rate = fields.pop("dropout_rate", 0.0)
    for block in (blocks["inputs"], blocks["head"]):
        block.setdefault("dropout_rate", rate)
    if encoders.takes(kind, "dropout_rate"):
        fields["dropout_rate"] = rate

    positions = {"kind": "none", **blocks["positions"]}
    if positions["kind"] in RELATIVE:
        if not encoders.takes(kind, "positions"):
            raise UserError(
                f"config.model.positions.kind {positions['kind']!r} is part of attention, which "
                f"config.model.kind {kind!r} has none of; it must be absolute, or the model a transformer"
            )
        fields["positions"], positions = positions, {"kind": "none"}
    if per == "vector" and blocks["inputs"].get("stack", 1) != 1:
        stack = blocks["inputs"]["stack"]
        raise UserError(f"config.model.inputs.stack is {stack}; with a label for every frame it must be 1")

    column = next((name for name in INPUTS if name in inputs), None)
    if column is None:
        raise unknown("input", ", ".join(inputs), INPUTS)
    head = PositionHead if per == "vector" else PooledHead
    built_head: Any = construct(
        "config.model.head", head, blocks["head"], dim=dim, num_outputs=outputs, rngs=rngs
    )
    return SetModel(
        construct("config.model.inputs", INPUTS[column], blocks["inputs"], dim=dim, **inputs, rngs=rngs),
        construct("config.model.positions", Positions, positions, dim=dim, rngs=rngs),
        encoders.build(kind, dim, fields, rngs=rngs),
        built_head,
        _class_token(dim, rngs) if per == "set" and built_head.pool.kind == "class" else None,
    )


def _class_token(dim: int, rngs: nnx.Rngs) -> nnx.Param[jax.Array]:
    return nnx.Param(nnx.initializers.normal(dim**-0.5)(rngs.params(), (dim,)))
