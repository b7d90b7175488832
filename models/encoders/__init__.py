"""Encoders of sets of vectors, by the word that a config names each by; see `models.encoders.encoder`."""

from models.encoders.gated_cnn import GatedCNN
from models.encoders.identity import Identity
from models.encoders.recurrent import Recurrent
from models.encoders.temporal_cnn import MultiWidthCNN, TemporalCNN
from models.encoders.transformer import TransformerEncoder
from models.encoders.window_fc import WindowFC
from spec import Registry

ENCODERS = Registry(
    "encoder",
    {
        "none": Identity,
        "window_fc": WindowFC,
        "cnn": TemporalCNN,
        "multi_width_cnn": MultiWidthCNN,
        "gated_cnn": GatedCNN,
        "rnn": Recurrent,
        "transformer": TransformerEncoder,
    },
    given=("dim", "rngs"),
)
