"""The decoders a config can name; what they promise is in `models.decoder`."""

from collections.abc import Callable, Mapping
from typing import Any

from flax import nnx

from errors import unknown
from models.convolutional_decoder import ConvolutionalDecoder
from models.decoder import Decoder
from models.fields import arguments, construct
from models.recurrent_decoder import RecurrentDecoder
from models.transformer_decoder import TransformerDecoder

DECODERS: dict[str, Callable[..., Decoder]] = {
    "rnn": RecurrentDecoder,
    "transformer": TransformerDecoder,
    "convolution": ConvolutionalDecoder,
}


def takes(kind: str, field: str) -> bool:
    """Whether a decoder has a field, such as `num_heads`.

    Raises:
        UserError: on an unknown kind.
    """
    return field in arguments(_decoder(kind))


def build(kind: str, dim: int, fields: Mapping[str, Any], *, rngs: nnx.Rngs) -> Decoder:
    """The decoder of a config block.

    Args:
        kind: one of `DECODERS`.
        dim: width D of the vectors.
        fields: its arguments; what is left out is as in its signature.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown kind, a field that the decoder does not have, or a value out of range.
    """
    return construct("config.model.decoder", _decoder(kind), fields, kind=kind, dim=dim, rngs=rngs)


def _decoder(kind: str) -> Callable[..., Decoder]:
    if kind not in DECODERS:
        raise unknown("decoder", kind, DECODERS)
    return DECODERS[kind]
