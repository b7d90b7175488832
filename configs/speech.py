"""A label for a recording: the digit spoken, or who speaks.

    python train.py --config=configs/speech.py --workdir=runs/tones
    python train.py --config=configs/speech.py:dataset=fsdd,target=digit --workdir=runs/digit
    python train.py --config=configs/speech.py:dataset=fsdd,target=speaker --workdir=runs/speaker
    python train.py --config=configs/speech.py:dataset=folder:recordings --workdir=runs/own

Arguments: `model` (transformer, rnn, cnn, multi_width_cnn, window_fc), `attention` and `positions` of a
transformer (see configs/blocks.py), `pool` (mean, max, last, first, class, sum, self_attentive), `dataset`
(tones, fsdd, japanese_vowels, another prepared TFDS set of audio, or folder:DIR with wavs of your own),
`target` (what to tell, where a set has several labels: digit or speaker), `smoke`.

Expected on two CPU cores: tones, seconds; Free Spoken Digits, minutes; figures in the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention="dot_product",
        positions="sinusoidal",
        pool="mean",
        dataset="tones",
        target="",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "tones"

    config = ConfigDict()
    config.task = "sequence_classification"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    config.duration = "20 steps" if smoke else "12 epochs"  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.0 if small else 0.1  # probability spread over all classes in training targets
    blocks.sequences(config, batch_vectors=2048)

    config.dataset = ConfigDict()
    config.dataset.kind = "speech"  # what the vectors are: text or speech
    config.dataset.name = chosen["dataset"]  # see the arguments above
    config.dataset.target = chosen["target"]  # which label, where a set has several; "": its first
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    config.dataset.num_mels = 40  # bands of the spectrum of a frame
    config.dataset.deltas = 0  # 1: with slopes, 2: with slopes of slopes as well
    config.dataset.normalize = "train"  # channels by training statistics, or by each "recording", or "none"
    config.dataset.rate = 0  # samples per second to bring all to; 0: the lowest of the training part

    config.model = blocks.encoder(
        chosen["model"],
        dim=64,
        dropout_rate=0.1,
        attention=chosen["attention"],
        positions=chosen["positions"],
    )
    config.model.inputs.stack = 1  # how many neighbouring frames make one vector
    config.model.head.pool = chosen["pool"]  # how the vectors become one; one of models.pool.POOLS

    config.optimizer = blocks.optimizer(learning_rate=2e-3)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config
