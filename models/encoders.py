"""The encoders a config can name, so that one word swaps a window for a CNN, an RNN or self-attention.

All are called `encoder(x [B T D], mask [B T], *, train=False, rngs=None) -> [B T D]`: what padding holds
changes nothing, and padding comes out as 0; `train` normalises by the batch's own statistics where there
are any; `rngs` (stream `dropout`) turns dropout on, None turns it off.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from errors import unknown
from models.fields import arguments, construct
from models.gated_cnn import GatedCNN
from models.recurrent import Recurrent
from models.temporal_cnn import MultiWidthCNN, TemporalCNN
from models.transformer import TransformerEncoder
from models.window_fc import WindowFC


def transformer(
    dim: int,
    *,
    num_layers: int = 2,
    num_heads: int = 4,
    hidden_dim: int = 0,
    norm: str = "pre",
    attention: Mapping | Sequence[Mapping] | None = None,
    positions: Mapping | None = None,
    dropout_rate: float = 0.0,
    attention_dropout_rate: float | None = None,
    rngs: nnx.Rngs,
) -> TransformerEncoder:
    """A `TransformerEncoder` whose feed-forward layers are 4 D wide where `hidden_dim` is 0."""
    return TransformerEncoder(
        num_layers,
        dim,
        num_heads,
        hidden_dim or 4 * dim,
        norm=norm,
        attention=attention,
        positions=positions,
        dropout_rate=dropout_rate,
        attention_dropout_rate=attention_dropout_rate,
        rngs=rngs,
    )


class Identity(nnx.Module):
    """No encoder: the vectors as they come, such as those of a grid that a CNN has made already.

    Args:
        dim: width D.
        rngs: not used.
    """

    def __init__(self, dim: int, *, rngs: nnx.Rngs):
        self.dim = dim

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """`x`, 0 at padding."""
        return jnp.where(mask[..., None], x, 0)


ENCODERS: dict[str, Callable[..., nnx.Module]] = {
    "none": Identity,
    "window_fc": WindowFC,
    "cnn": TemporalCNN,
    "multi_width_cnn": MultiWidthCNN,
    "gated_cnn": GatedCNN,
    "rnn": Recurrent,
    "transformer": transformer,
}


def takes(kind: str, field: str) -> bool:
    """Whether an encoder has a field, such as `dropout_rate`.

    Raises:
        UserError: on an unknown kind.
    """
    return field in arguments(_encoder(kind))


def build(
    kind: str, dim: int, fields: Mapping[str, Any], *, block: str = "config.model", rngs: nnx.Rngs
) -> nnx.Module:
    """The encoder of a config block.

    Args:
        kind: one of `ENCODERS`.
        dim: width D of the vectors.
        fields: its arguments; what is left out is as in its signature.
        block: where they stand, for messages.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown kind, a field that the encoder does not have, or a value out of range.
    """
    return construct(block, _encoder(kind), fields, kind=kind, dim=dim, rngs=rngs)


def _encoder(kind: str) -> Callable[..., nnx.Module]:
    if kind not in ENCODERS:
        raise unknown("model", kind, ENCODERS)
    return ENCODERS[kind]
