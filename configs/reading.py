"""Answers to questions about passages, as spans of them: co-attention, R-Net's gate, a pointer.

    python train.py --config=configs/reading.py --workdir=runs/facts
    python train.py --config=configs/reading.py:dataset=xquad_en,self_matching=additive --workdir=runs/xquad
    python train.py --config=configs/reading.py:dataset=squad/v1.1 --workdir=runs/squad
    python train.py --config=configs/reading.py --config.dataset.name=file:TRAIN.json,DEV.json,TEST.json \
        --workdir=runs/own

Arguments: `model` (rnn, transformer, gated_cnn, cnn, window_fc), `attention` and `positions` of a transformer
(see configs/blocks.py), `self_matching` (the mechanism by which the passage reads itself, such as additive;
none), `dataset` (facts, xquad_en, xquad_zh, another prepared TFDS set as of SQuAD; files of your own as
above), `smoke`.

XQuAD is for evaluation: with nothing else, a tenth of its articles are the test, and a reader trained on the
rest shows that all runs, not what it could learn. To measure on it what was trained elsewhere, give its file
as TEST.

Expected on one CPU core: facts, 3 minutes; figures in the README.
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
        self_matching="none",
        dataset="facts",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "facts"

    config = ConfigDict()
    config.task = "reading"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    config.duration = "20 steps" if smoke else "20 epochs"  # "N steps", "N epochs" or "N examples"
    config.max_answer_length = 30  # tokens in an answer, at most
    blocks.sequences(config, batch_vectors=512 if smoke else 2048)
    config.buckets = 1 if smoke else 4  # lengths that passages are padded to, at most

    config.dataset = ConfigDict()
    config.dataset.name = chosen["dataset"]  # see the arguments above
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.validation_fraction = 0.1  # of articles, held out where the set has no such split
    blocks.vocabulary(config.dataset, min_count=1 if small else 2)

    config.model = blocks.encoder(
        chosen["model"],
        dim=64 if small else 128,
        dropout_rate=0.0 if small else 0.2,
        attention=chosen["attention"],
        positions=chosen["positions"],
    )
    config.model.inputs.word_dropout_rate = 0.0 if small else 0.05  # how often a word counts as unknown
    matching = chosen["self_matching"]  # a mechanism of models/mechanism_kinds.py, or none
    config.model.self_matching = ConfigDict({"kind": matching, **blocks.MECHANISMS.get(matching, {})})
    config.model.head.end = "pointer"  # where the end is looked for from the start; or independent

    config.optimizer = blocks.optimizer(learning_rate=3e-3)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config
