"""A label for a text: sentiment, the kind of a question, subjectivity.

    python train.py --config=configs/classification.py --workdir=runs/grammar
    python train.py --config=configs/classification.py:dataset=trec,model=multi_width_cnn --workdir=runs/trec
    python train.py --config=configs/classification.py:dataset=sst2,model=transformer --workdir=runs/sst2
    python train.py --config=configs/classification.py:dataset=folder:reviews --workdir=runs/own

Arguments: `model` (cnn, multi_width_cnn, rnn, transformer, window_fc), `attention` and `positions` of a
transformer (see configs/blocks.py), `pool` (mean, max, last, first, class, sum, self_attentive), `dataset`
(grammar, trec, sst2, sst5, subj, mr, imdb, another prepared TFDS set, or folder:DIR with
files of your own; single files by --config.dataset.name=file:TRAIN,VALIDATION,TEST), `smoke`.

Expected on two CPU cores: grammar, seconds; TREC, a minute; SST-2, minutes; figures in the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks

# How long to train; another data set as long as TREC.
DURATIONS = {"grammar": "20 epochs", "trec": "10 epochs", "sst2": "5 epochs", "imdb": "3 epochs"}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention="dot_product",
        positions="",
        pool="max",
        dataset="grammar",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "grammar"
    duration = DURATIONS.get(chosen["dataset"], DURATIONS["trec"])

    config = ConfigDict()
    config.task = "sequence_classification"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    config.duration = "20 steps" if smoke else duration  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.0 if small else 0.1  # probability spread over all classes in training targets
    blocks.sequences(config, batch_vectors=1024)

    config.dataset = blocks.text(chosen["dataset"], per="set", min_count=1 if small else 2)
    config.model = blocks.encoder(
        chosen["model"],
        dim=64 if small else 300 if chosen["model"] == "multi_width_cnn" else 128,
        dropout_rate=0.0 if small else 0.2,
        attention=chosen["attention"],
        positions=chosen["positions"],
    )
    config.model.inputs.word_dropout_rate = 0.0 if small else 0.1  # how often a word counts as unknown
    config.model.head.dropout_rate = 0.0 if small else 0.5  # before the last layer
    config.model.head.pool = chosen["pool"]  # how the vectors become one; one of models.pool.POOLS

    config.optimizer = blocks.optimizer(learning_rate=2e-3)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config
