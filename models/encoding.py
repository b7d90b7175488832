"""The way from the columns of a batch to encoded vectors, which all models of sequences share."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flax import nnx

from errors import UserError, unknown
from models import encoders
from models.fields import construct
from models.inputs import INPUTS
from models.positions import RELATIVE, Positions


class Parts(NamedTuple):
    """What stands before the answer.

    Attributes:
        inputs: from a batch to vectors `[B, T, D]` and their mask; see `models.inputs`.
        positions: what is added to the vectors to say where they stand; see `models.positions`.
        encoder: one of `models.encoders`.
    """

    inputs: Any
    positions: Any
    encoder: Any


def build(
    model: Mapping[str, Any], *, inputs: Mapping[str, Any], block: str = "config.model", rngs: nnx.Rngs
) -> Parts:
    """The parts of a config block.

    Args:
        model: `kind`, one of `encoders.ENCODERS`; `dim`, the width D; `positions`, `{"kind": word, ...}` (see
            `models.positions`, none if left out); `inputs`, further fields of those (see `models.inputs`);
            `dropout_rate`, for all parts that name no other; and the encoder's own fields.
        inputs: which columns there are, with their sizes: `{"words": vocabulary, "affixes": (one for each
            kind, ...)}`, `{"bytes": kinds}`, `{"frames": channels}`, `{"image": (height, width, channels)}`.
        block: where the encoder's fields stand, for messages.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word or field, one that is missing, a value out of range, or parts that do
            not go together.
    """
    fields = dict(model)
    if not isinstance(dim := fields.get("dim"), int) or dim < 1:
        said = f"is {dim!r}; it must be an integer from 1 on" if "dim" in fields else "is missing"
        raise UserError(f"config.model.dim {said}")
    column = next((name for name in INPUTS if name in inputs), None)
    if column is None:
        raise unknown("input", ", ".join(inputs), INPUTS)
    given = {"dropout_rate": fields.get("dropout_rate", 0.0), **dict(fields.get("inputs") or {})}
    positions = {"kind": "none", **dict(fields.get("positions") or {})}
    if positions["kind"] in RELATIVE:  # part of the encoder
        positions = {"kind": "none"}
    return Parts(
        construct("config.model.inputs", INPUTS[column], given, dim=dim, **inputs, rngs=rngs),
        construct("config.model.positions", Positions, positions, dim=dim, rngs=rngs),
        encoder(fields, block=block, rngs=rngs),
    )


def encoder(model: Mapping[str, Any], *, block: str = "config.model", rngs: nnx.Rngs) -> Any:
    """The encoder alone of a config block, for vectors `[B, T, D]` that come from elsewhere.

    Args:
        model: the same fields as of `build`; of `positions`, relative ones alone are the encoder's.
        block: where they stand, for messages.
        rngs: source of the initial parameters.

    Raises:
        UserError: as `build`.
    """
    fields = {name: value for name, value in model.items() if name not in ("inputs", "positions")}
    for name, where in (("kind", block), ("dim", "config.model")):
        if name not in fields:
            raise UserError(f"{where}.{name} is missing")
    kind, dim, rate = fields.pop("kind"), fields.pop("dim"), fields.pop("dropout_rate", 0.0)
    if encoders.takes(kind, "dropout_rate"):
        fields["dropout_rate"] = rate
    positions = dict(model.get("positions") or {})
    if positions.get("kind") in RELATIVE:
        if not encoders.takes(kind, "positions"):
            raise UserError(
                f"config.model.positions.kind {positions['kind']!r} is part of attention, which "
                f"{block}.kind {kind!r} has none of; it must be absolute, or the kind a transformer"
            )
        fields["positions"] = positions
    return encoders.build(kind, dim, fields, block=block, rngs=rngs)
