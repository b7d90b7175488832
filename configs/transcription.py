"""Speech to text: frames in, characters or words out.

    python train.py --config=configs/transcription.py --workdir=runs/tones
    python train.py --config=configs/transcription.py:dataset=fsdd_strings --workdir=runs/a
    python train.py --config=configs/transcription.py:dataset=fsdd_strings,speaker_out=theo --workdir=runs/b
    python train.py --config=configs/transcription.py:dataset=folder:recordings --workdir=runs/own
    python predict.py --run=runs/a --align=DIR one.wav two.wav

Arguments: `model` (rnn, convolution, transformer), `attention` (of an rnn what its decoder attends by, see
configs/translation.py; of a transformer what its encoder does, full or truncated), `size` (tiny, small,
base), `dataset` (tone_strings, fsdd_strings, librispeech or another prepared TFDS set of recordings and text,
folder:DIR with wavs of your own), `speaker_out` (of fsdd_strings, tested on alone), `unit` (char, word, bpe),
`smoke`.

Expected on one CPU core: strings of tones or digits by an rnn, 3 minutes each; figures in the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks
from errors import unknown

# Of a transformer's encoder: each frame attends to all, or to a second on either side.
ATTENTION = {"full": {"kind": "dot_product"}, "truncated": {"kind": "truncated", "window": (25, 25)}}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="rnn",
        attention="",
        size="tiny",
        dataset="tone_strings",
        speaker_out="",
        unit="char",
        smoke=False,
    )
    smoke, kind, attention = chosen["smoke"], chosen["model"], chosen["attention"]
    few = smoke and chosen["dataset"].endswith("_strings")

    config = ConfigDict()
    config.task = "transcription"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    config.duration = "10 steps" if smoke else "6 epochs"  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.1  # probability spread over all tokens in training targets
    blocks.sequences(config, batch_vectors=8192)
    config.buckets = 1 if smoke else 4  # lengths that recordings are padded to, at most

    config.dataset = ConfigDict()
    config.dataset.name = chosen["dataset"]  # see the arguments above
    config.dataset.num_strings = 40 if few else 0  # of generated sets, to train on; 0: 8,000
    config.dataset.speaker_out = chosen["speaker_out"]  # of fsdd_strings, in the test alone
    config.dataset.splits = ""  # of a TFDS set: TRAIN,TEST or TRAIN,VALIDATION,TEST; "": the usual ones
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    config.dataset.unit = chosen["unit"]  # what a token is: char, word, bpe or unigram
    config.dataset.vocabulary = 1000  # tokens to know at most
    config.dataset.lower = False  # read and write lower case alone
    config.dataset.num_mels = 40  # bands of the spectrum of a frame
    config.dataset.deltas = 0  # 1: with slopes, 2: with slopes of slopes as well
    config.dataset.normalize = "train"  # channels by training statistics, or by each "recording", or "none"
    config.dataset.rate = 0  # samples per second to bring all to; 0: the lowest of the training part

    in_encoder = kind == "transformer"
    config.model = blocks.encoder_decoder(
        kind, size=chosen["size"], dropout_rate=0.2, attention="" if in_encoder else attention
    )
    if in_encoder:
        if attention and attention not in ATTENTION:
            raise unknown("attention of a transformer's encoder", attention, ATTENTION)
        config.model.encoder.attention = ConfigDict(ATTENTION[attention or "full"])
    config.model.inputs.stack = 1  # how many neighbouring frames make one vector
    config.model.inputs.subsampling = 4  # by what strided convolutions divide the number of vectors
    config.decoding = blocks.decoding(max_ratio=1.0)
    config.optimizer = blocks.optimizer(learning_rate=2e-3, second_momentum=0.98)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config
