"""Blocks of fields that several configs share."""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from errors import unknown

# The encoders of sets of vectors, one word in a config for each.
ENCODERS = ("window_fc", "cnn", "multi_width_cnn", "gated_cnn", "rnn", "transformer")

# What a mechanism needs that it has no default for; see models/mechanism_kinds.py.
MECHANISMS: dict[str, dict[str, Any]] = {
    "additive": {"hidden_dim": 32},
    "attention_free_full": {"max_length": 512},
    "attention_free_local": {"max_length": 512, "window": (15, 15)},
    "banded": {"window": (15, 15)},
    "bigbird": {"block_size": 16, "max_length": 512},
    "concat": {"hidden_dim": 32},
    "cosformer": {"max_length": 512},
    "dilated": {"window": (15, 15), "dilation": 2},
    "linformer": {"rank": 64, "max_length": 512},
    "local_m": {"radius": 10},
    "local_p": {"radius": 10},
    "location": {"max_length": 512},
    "longformer": {"window": (15, 15)},
    "nystromformer": {"landmarks": 32},
    "reformer": {"chunk_size": 32},
    "shaw": {"max_distance": 16},
    "sinkhorn": {"block_size": 32},
    "strided": {"stride": 16},
    "synthesizer_dense": {"max_length": 512},
    "synthesizer_factorized": {"max_length": 512},
    "synthesizer_random": {"max_length": 512},
    "truncated": {"window": (15, 15)},
}


def optimizer(*, learning_rate: float, **changes: Any) -> ConfigDict:
    """How parameters are updated; see training/optimizer.py."""
    block = ConfigDict()
    block.name = "adamw"  # one of training.optimizer.RULES: adamw, lion, sgd
    block.learning_rate = learning_rate  # at its peak
    block.schedule = "cosine"  # or linear, constant, inverse_sqrt
    block.warmup = 0.1  # fraction of the duration
    block.momentum = 0.9  # decay of the first moment
    block.second_momentum = 0.99  # decay of the second moment (adamw, lion)
    block.weight_decay = 0.05  # decoupled, on kernels alone
    block.clip_norm = 1.0  # largest global gradient norm; 0: no clipping
    block.accumulation = 1  # slices of a batch whose gradients are added up, where memory is short
    block.update(changes)
    return block


def loop(config: ConfigDict, *, smoke: bool, every: str) -> None:
    """Fields of the training loop itself."""
    config.log_every = "20 steps" if smoke else "100 steps"  # training metrics
    config.evaluate_every = "30 steps" if smoke else every  # on validation; and always at the end
    config.checkpoint_every = "30 steps" if smoke else every  # and at the end; "": never
    config.keep_checkpoints = 3  # newest ones; the best one is kept besides
    config.patience = 0  # evaluations without a better one after which the run ends; 0: never
    config.final = "best"  # tested and used: best on validation, "last", or "average" of those kept
    config.test = True  # measure the test split, once, at the end
    config.num_devices = 0  # 0: all that divide every batch
    config.tensorboard = False  # also write TensorBoard events (extra "tensorboard")


def sequences(config: ConfigDict, *, batch_vectors: int) -> None:
    """Fields of batches of sequences."""
    config.batch_vectors = batch_vectors  # words or frames per update, padding included
    config.evaluation_batch_vectors = 4 * batch_vectors  # the same for evaluation and for new input
    config.buckets = 4  # lengths that sequences are padded to, at most


def text(name: str, *, per: str, min_count: int) -> ConfigDict:
    """A data set of texts; see data/text/load.py and data/text/vocabulary.py.

    Args:
        name: the data set.
        per: "vector", a label for every word, or "set", one for the text.
        min_count: how often a word must be seen in training to be known.
    """
    block = ConfigDict()
    block.kind = "text"  # what the vectors are: text or speech
    block.name = name  # see the arguments above
    block.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    block.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    block.fold = -1  # which tenth is the test, where the set has none; -1: the last
    block.encoding = "utf-8"  # of files of your own; or latin-1
    if per == "vector":
        block.token_column = ""  # where the words are; "": found out
        block.tag_column = ""  # where their labels are; "": found out
    else:
        block.tokenisation = ""  # whitespace, punctuation or none; "": the set's own
        block.text_column = ""  # where the text is; "": found out
        block.label_column = ""  # where its label is; "": found out
        block.unit = "words"  # or bytes
        block.max_length = 0  # words or bytes that a text is cut to; 0: none is cut
    vocabulary(block, min_count=min_count)
    return block


def vocabulary(block: ConfigDict, *, min_count: int) -> None:
    """Fields of how words become numbers; see data/text/vocabulary.py."""
    block.min_count = min_count  # a word seen less often in training counts as unknown
    block.max_size = 0  # words to know at most; 0: all
    block.lower = False  # look words up in lower case
    block.fold_digits = False  # read every digit as 0
    block.affixes = True  # know a word by its beginning, its end and its shape as well
    block.affix_min_count = 2  # an affix seen less often in training counts as unknown


def encoder(kind: str, *, dim: int, dropout_rate: float, attention: str, positions: str) -> ConfigDict:
    """A model of sequences: inputs, positions, the encoder of that kind; the head is the config's.

    Args:
        kind: one of `ENCODERS`.
        dim: width.
        dropout_rate: everywhere.
        attention: of a transformer: a mechanism for all layers, or one for each with + between them, where
            "none" is a layer of feed-forward alone.
        positions: "none", "sinusoidal" or "learned"; of a transformer also "rotary", "alibi", "t5", "shaw";
            "": rotary for a transformer, none for the others.
    """
    if kind not in ENCODERS:
        raise unknown("model", kind, ENCODERS)
    block = ConfigDict()
    block.kind = kind  # one of models.encoders.ENCODERS
    block.dim = dim  # width of the vectors
    block.dropout_rate = dropout_rate  # in inputs, encoder and head
    block.inputs = ConfigDict()
    block.positions = ConfigDict()
    usual = "rotary" if kind == "transformer" else "none"
    block.positions.kind = positions or usual  # one of models.positions.ABSOLUTE or RELATIVE
    if block.positions.kind == "learned":
        block.positions.max_length = 512  # vectors in the longest example
    block.head = ConfigDict()
    if kind == "window_fc":
        block.window = (2, 2)  # neighbours seen before and after
        block.num_layers = 1  # hidden layers
        block.hidden_dim = 0  # their width; 0: four times dim
        block.activation = "relu"  # or gelu
    elif kind == "cnn":
        block.num_layers = 3  # convolutions
        block.kernel_size = 3  # vectors in a window
        block.dilation = 1  # by what the dilation grows from layer to layer
        block.norm = "batch"  # or none
    elif kind == "multi_width_cnn":
        block.widths = (3, 4, 5)  # vectors in the windows
    elif kind == "gated_cnn":
        block.num_layers = 4  # convolutions
        block.kernel_size = 3  # vectors in a window
        block.hidden_dim = 0  # their channels; 0: dim
    elif kind == "rnn":
        block.cell = "lstm"  # or gru, plain
        block.num_layers = 1  # layers
        block.bidirectional = True  # one direction each way, beside one another
    else:
        block.num_layers = attention.count("+") + 1 if "+" in attention else 2  # blocks
        block.num_heads = 4  # attention heads
        block.hidden_dim = 0  # feed-forward width; 0: four times dim
        block.norm = "pre"  # or post
        layers = [_mechanism(word) for word in attention.split("+")]
        block.attention = ConfigDict(layers[0]) if len(layers) == 1 else tuple(layers)
    return block


def decoding(*, beam: int = 1, max_ratio: float = 2.0, max_extra: int = 10) -> ConfigDict:
    """How a sequence is looked for that a model makes; see models/decoding.py.

    Args:
        beam: how many hypotheses are kept.
        max_ratio: tokens for each vector of the input, at most,
        max_extra: and so many more.
    """
    block = ConfigDict()
    block.beam = beam  # hypotheses kept; 1: greedy
    block.length_penalty = 1.0  # by how much longer ones are favoured (Wu et al. 2016); 0: not at all
    block.temperature = 0.0  # of sampling; 0: none, the likeliest
    block.num_best = 1  # hypotheses given, beam at most
    block.max_ratio = max_ratio  # tokens for each vector of the input, at most
    block.max_extra = max_extra  # and so many more
    block.align = False  # say in an answer where the model looked
    block.seed = 0  # of sampling
    return block


# By size: the width, and of a transformer the layers on either side, heads and feed-forward width.
SIZES = {
    "tiny": {"dim": 128, "num_layers": 4, "num_heads": 4, "hidden_dim": 256},
    "small": {"dim": 256, "num_layers": 3, "num_heads": 8, "hidden_dim": 512},
    "base": {"dim": 512, "num_layers": 6, "num_heads": 8, "hidden_dim": 2048},
}


def encoder_decoder(
    kind: str, *, size: str, dropout_rate: float, attention: str, norm: str = "pre"
) -> ConfigDict:
    """A model that makes a sequence: encoder and decoder of one generation.

    Args:
        kind: "rnn", "convolution" or "transformer".
        size: one of `SIZES`.
        dropout_rate: everywhere.
        attention: from decoder to encoder. Of an rnn "none", "bahdanau" (additive, by the state before), or
            after Luong et al. "dot", "general", "concat", "location", "local_m", "local_p"; of the others
            "dot", as published; "": bahdanau or dot.
        norm: of a transformer, "pre" or "post".
    """
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    if kind not in GENERATIONS:
        raise unknown("model", kind, GENERATIONS)
    chosen = SIZES[size]
    block = ConfigDict()
    block.dim = chosen["dim"]  # width of the vectors
    block.dropout_rate = dropout_rate  # in inputs, encoder and decoder
    block.inputs = ConfigDict()
    block.positions = ConfigDict()
    block.positions.kind = POSITIONS[kind]  # one of models.positions
    if kind == "convolution":
        block.positions.max_length = 1024  # vectors in the longest sequence
    block.share_embeddings = False  # one table for both sides; needs a joint vocabulary
    block.tie_output = True  # the logits are products with the embeddings
    block.output_dropout_rate = 0.0  # before the logits
    block.encoder, block.decoder = GENERATIONS[kind](chosen, attention, norm)
    return block


def _rnn(size: Mapping[str, int], attention: str, norm: str) -> tuple[ConfigDict, ConfigDict]:
    attention = attention or "bahdanau"
    if attention not in ATTENTION:
        raise unknown("attention of an rnn", attention, ATTENTION)
    encoder, decoder = ConfigDict(), ConfigDict()
    encoder.kind, decoder.kind = "rnn", "rnn"
    for block in (encoder, decoder):
        block.cell = "gru"  # or lstm, plain
        block.num_layers = 1  # layers
    encoder.bidirectional = True  # one direction each way, beside one another
    encoder.hidden_dim = 0  # width of a direction's state; 0: half of dim
    decoder.hidden_dim = 0  # width of the state; 0: dim
    decoder.attention = ConfigDict(ATTENTION[attention])
    decoder.order = "bahdanau" if attention in ("bahdanau", "none") else "luong"  # before or after the cell
    decoder.input_feeding = True  # what was attended to goes into the next step
    return encoder, decoder


def _convolution(size: Mapping[str, int], attention: str, norm: str) -> tuple[ConfigDict, ConfigDict]:
    _only_dot("convolution", attention)
    encoder, decoder = ConfigDict(), ConfigDict()
    encoder.kind, decoder.kind = "gated_cnn", "convolution"
    for block in (encoder, decoder):
        block.num_layers = 4  # convolutions
        block.kernel_size = 3  # vectors in a window
        block.hidden_dim = 0  # width inside; 0: that of the vectors
    return encoder, decoder


def _transformer(size: Mapping[str, int], attention: str, norm: str) -> tuple[ConfigDict, ConfigDict]:
    _only_dot("transformer", attention)
    encoder, decoder = ConfigDict(), ConfigDict()
    encoder.kind, decoder.kind = "transformer", "transformer"
    for block in (encoder, decoder):
        block.num_layers = size["num_layers"]  # blocks
        block.num_heads = size["num_heads"]  # attention heads
        block.hidden_dim = size["hidden_dim"]  # feed-forward width; 0: four times dim
        block.norm = norm  # pre or post
    return encoder, decoder


def _only_dot(kind: str, attention: str) -> None:
    if attention not in ("", "dot"):
        raise unknown(f"attention of a {kind}", attention, ("dot",))


# As published; the sizes that convolutions begin with are made for learned ones.
POSITIONS = {"rnn": "none", "convolution": "learned", "transformer": "sinusoidal"}
GENERATIONS = {"rnn": _rnn, "convolution": _convolution, "transformer": _transformer}

# Of a recurrent decoder, by the word for it.
ATTENTION: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "bahdanau": {"kind": "additive", "hidden_dim": 128},
    "dot": {"kind": "dot"},
    "general": {"kind": "general"},
    "concat": {"kind": "concat", "hidden_dim": 128},
    "location": {"kind": "location", "max_length": 512},
    "local_m": {"kind": "local_m", "radius": 10, "score": "general"},
    "local_p": {"kind": "local_p", "radius": 10, "score": "general"},
}


def _mechanism(word: str) -> Mapping[str, Any]:
    return {"kind": word, **MECHANISMS.get(word, {})}
