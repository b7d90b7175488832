"""Decoders, by the word that a config names each by; what they promise is in `models.decoders.decoder`."""

from models.decoders.convolutional import ConvolutionalDecoder
from models.decoders.recurrent import RecurrentDecoder
from models.decoders.transformer import TransformerDecoder
from spec import Registry

DECODERS = Registry(
    "decoder",
    {"rnn": RecurrentDecoder, "transformer": TransformerDecoder, "convolution": ConvolutionalDecoder},
    given=("dim", "rngs"),
)
