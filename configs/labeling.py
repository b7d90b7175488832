"""A label for every word: parts of speech, entities.

    python train.py --config=configs/labeling.py --workdir=runs/grammar
    python train.py --config=configs/labeling.py:dataset=ud_en_ewt,model=rnn --workdir=runs/pos
    python train.py --config=configs/labeling.py:model=transformer,attention=banded --workdir=runs/banded
    python train.py --config=configs/labeling.py:dataset=folder:treebank --workdir=runs/own

Arguments: `model` (window_fc, cnn, rnn, transformer), `attention` and `positions` of a transformer (see
configs/blocks.py), `crf` (choose the labels of a sentence together), `dataset` (grammar, ud_en_ewt,
ud_en_lines, ud_zh_gsd, wnut17, another prepared TFDS set, or folder:DIR with files of your own; single
files by --config.dataset.name=file:TRAIN,VALIDATION,TEST), `smoke`.

Expected on two CPU cores: grammar, seconds; English EWT, minutes; figures in the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="rnn",
        attention="dot_product",
        positions="",
        crf=False,
        dataset="grammar",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "grammar"

    config = ConfigDict()
    config.task = "sequence_labeling"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    config.duration = "20 steps" if smoke else "10 epochs"  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.0  # probability spread over all classes in the training targets
    blocks.sequences(config, batch_vectors=512 if small else 1024)

    config.dataset = blocks.text(chosen["dataset"], per="vector", min_count=2)
    config.model = blocks.encoder(
        chosen["model"],
        dim=64 if small else 128,
        dropout_rate=0.0 if small else 0.3,
        attention=chosen["attention"],
        positions=chosen["positions"],
    )
    config.model.inputs.word_dropout_rate = 0.0 if small else 0.1  # how often a word counts as unknown
    config.model.head.crf = chosen["crf"]  # choose the labels of a sequence together

    config.optimizer = blocks.optimizer(learning_rate=3e-3)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config
