"""Blocks that several configs share."""

from typing import Any

from ml_collections import ConfigDict

from errors import unknown
from models.decoders.convolutional import ConvolutionalDecoder
from models.decoders.recurrent import RecurrentDecoder
from models.decoders.transformer import TransformerDecoder
from models.encoder_decoder import ENCODER_DECODER
from models.encoders.gated_cnn import GatedCNN
from models.encoders.recurrent import Recurrent
from models.encoders.temporal_cnn import MultiWidthCNN, TemporalCNN
from models.encoders.transformer import TransformerEncoder
from models.encoders.window_fc import WindowFC
from models.mechanisms import MECHANISMS
from models.positions import POSITIONS, RELATIVE, Learned
from spec import spec


def every(evaluation: str, *, smoke: bool) -> dict[str, str]:
    """How often the loop logs, evaluates and writes checkpoints.

    Args:
        evaluation: steps, epochs or examples between evaluations, and between checkpoints.
        smoke: whether this is a run of seconds, to see that all is well.
    """
    if smoke:
        return {"log_every": "20 steps", "evaluate_every": "30 steps", "checkpoint_every": "30 steps"}
    return {"log_every": "100 steps", "evaluate_every": evaluation, "checkpoint_every": evaluation}


def encoder(kind: str, *, dropout_rate: float, attention: str, positions: str | None) -> dict[str, Any]:
    """The fields `encoder` and `positions` of a model of sets.

    Args:
        kind: window_fc, cnn, multi_width_cnn, gated_cnn, rnn or transformer.
        dropout_rate: of the encoder.
        attention: of a transformer: a mechanism for all layers, or one for each with + between them, where
            "none" is a layer of feed-forward alone.
        positions: a word of `models.positions.POSITIONS`; of a transformer also of `RELATIVE`, or "shaw",
            which is a mechanism; None: rotary for a transformer, none for the others.
    """
    if positions is None:
        positions = "rotary" if kind == "transformer" else "none"
    if kind == "transformer":
        words = [
            "shaw" if word == "dot_product" and positions == "shaw" else word for word in attention.split("+")
        ]
        layers = tuple(MECHANISMS.block(MECHANISMS.word(word, "the config")) for word in words)
        block = spec(
            TransformerEncoder,
            num_layers=len(layers) if len(layers) > 1 else 2,
            num_heads=4,
            norm="pre",
            attention=layers if len(layers) > 1 else layers[0],
            positions=positions if positions in RELATIVE else "none",
            dropout_rate=dropout_rate,
        )
        return {"encoder": block, "positions": _absolute(positions)}
    made = {
        "window_fc": lambda: spec(WindowFC, window=(2, 2), num_layers=1, dropout_rate=dropout_rate),
        "cnn": lambda: spec(
            TemporalCNN, num_layers=3, kernel_size=3, norm="batch", dropout_rate=dropout_rate
        ),
        "multi_width_cnn": lambda: spec(MultiWidthCNN, widths=(3, 4, 5)),
        "gated_cnn": lambda: spec(GatedCNN, num_layers=4, kernel_size=3, dropout_rate=dropout_rate),
        "rnn": lambda: spec(
            Recurrent, cell="lstm", num_layers=1, bidirectional=True, dropout_rate=dropout_rate
        ),
    }
    if kind not in made:
        raise unknown("model", kind, (*made, "transformer"))
    if positions not in POSITIONS:
        raise unknown(f"positions of model {kind!r}", positions, POSITIONS)
    return {"encoder": made[kind](), "positions": positions}


def _absolute(positions: str) -> str:
    """The word of absolute positions beside relative ones."""
    if positions in POSITIONS:
        return positions
    if positions not in (*RELATIVE, "shaw"):
        raise unknown("positions", positions, dict.fromkeys((*POSITIONS, *RELATIVE, "shaw")))
    return "none"


# By size: the width, and of a transformer the layers on either side, heads and feed-forward width.
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"dim": 128, "num_layers": 4, "num_heads": 4, "hidden_dim": 256},
    "small": {"dim": 256, "num_layers": 3, "num_heads": 8, "hidden_dim": 512},
    "base": {"dim": 512, "num_layers": 6, "num_heads": 8, "hidden_dim": 2048},
}
GENERATIONS = ("rnn", "convolution", "transformer")

# Of a recurrent decoder, by the word for it: Bahdanau et al. 2015, or Luong et al. 2015. Local attention has
# Luong's score "general" on top.
RECURRENT_ATTENTION: dict[str, dict[str, Any]] = {
    "none": {"attention": "none", "order": "bahdanau"},
    "bahdanau": {"attention": {"kind": "additive", "hidden_dim": 128}, "order": "bahdanau"},
    "dot": {"attention": "dot", "order": "luong"},
    "general": {"attention": "general", "order": "luong"},
    "concat": {"attention": {"kind": "concat", "hidden_dim": 128}, "order": "luong"},
    "location": {"attention": "location", "order": "luong"},
    "local_m": {"attention": {"kind": "local_m", "radius": 10}, "map_keys": True, "order": "luong"},
    "local_p": {"attention": {"kind": "local_p", "radius": 10}, "map_keys": True, "order": "luong"},
}


def encoder_decoder(
    kind: str,
    *,
    size: str,
    dropout_rate: float,
    attention: str | None,
    inputs: ConfigDict,
    norm: str = "pre",
    encoder_attention: Any = "dot_product",
    share_embeddings: bool = False,
) -> ConfigDict:
    """A model that makes a sequence: encoder and decoder of one generation, as published.

    Args:
        kind: one of `GENERATIONS`.
        size: one of `SIZES`.
        dropout_rate: in inputs, encoder and decoder.
        attention: from decoder to encoder. Of an rnn a word of `RECURRENT_ATTENTION`; of the others "dot";
            None: bahdanau or dot.
        inputs: how the source becomes vectors.
        norm: of a transformer, "pre" or "post".
        encoder_attention: the mechanism of a transformer's encoder.
        share_embeddings: one table for both sides.
    """
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    if kind not in GENERATIONS:
        raise unknown("model", kind, GENERATIONS)
    if kind == "rnn":
        word = "bahdanau" if attention is None else attention
        if word not in RECURRENT_ATTENTION:
            raise unknown("attention of an rnn", word, RECURRENT_ATTENTION)
        encoder = spec(Recurrent, cell="gru", num_layers=1, bidirectional=True, dropout_rate=dropout_rate)
        decoder = spec(
            RecurrentDecoder,
            cell="gru",
            num_layers=1,
            input_feeding=True,
            dropout_rate=dropout_rate,
            **RECURRENT_ATTENTION[word],
        )
    elif attention not in (None, "dot"):
        raise unknown(f"attention of a {kind}", attention, ("dot",))
    elif kind == "convolution":
        encoder = spec(GatedCNN, num_layers=4, kernel_size=3, dropout_rate=dropout_rate)
        decoder = spec(ConvolutionalDecoder, num_layers=4, kernel_size=3, dropout_rate=dropout_rate)
    else:
        layers = {name: SIZES[size][name] for name in ("num_layers", "num_heads", "hidden_dim")}
        encoder = spec(
            TransformerEncoder, **layers, norm=norm, attention=encoder_attention, dropout_rate=dropout_rate
        )
        decoder = spec(TransformerDecoder, **layers, norm=norm, dropout_rate=dropout_rate)
    # The sizes that convolutions begin with are made for learned positions.
    positions = {
        "rnn": "none",
        "convolution": spec(Learned, max_length=1024),
        "transformer": "sinusoidal",
    }[kind]
    return ENCODER_DECODER.block(
        dim=SIZES[size]["dim"],
        inputs=inputs,
        positions=positions,
        encoder=encoder,
        tokens={"positions": positions, "tie_output": True, "dropout_rate": dropout_rate},
        decoder=decoder,
        share_embeddings=share_embeddings,
    )
