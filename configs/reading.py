"""Answers to questions about passages, as spans of them: co-attention, R-Net's gate, a pointer.

    python train.py --config=configs/reading.py --workdir=runs/facts
    python train.py --config=configs/reading.py:dataset=xquad_en,self_matching=additive --workdir=runs/xquad
    python train.py --config=configs/reading.py:dataset=squad/v1.1 --workdir=runs/squad
    python train.py --config=configs/reading.py --config.dataset.name=file:TRAIN.json,DEV.json,TEST.json \
        --workdir=runs/own

Arguments: `model` (rnn, transformer, gated_cnn, cnn, multi_width_cnn, window_fc), `attention` and
`positions` of a transformer (see configs/blocks.py), `self_matching` (the mechanism by which the passage
reads itself, such as additive; none), `dataset` (facts, xquad_en, xquad_zh, another prepared TFDS set as of
SQuAD; files of your own as above), `smoke`.

XQuAD is for evaluation: with nothing else, a tenth of its articles are the test, and a reader trained on the
rest shows that all runs, not what it could learn. To measure on it what was trained elsewhere, give its file
as TEST.

Expected on one CPU core: facts, 3 minutes; figures in results/README.md.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.text.load import questions
from models.inputs import TokenInputs
from spec import spec
from tasks.reading import Reading
from training.optimizer import AdamW


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="rnn",
        attention="dot_product",
        positions=None,
        self_matching="none",
        dataset="facts",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "facts"
    dropout = 0.0 if small else 0.2

    return experiment(
        Reading,
        seed=0,
        duration="20 steps" if smoke else "20 epochs",
        max_answer_length=30,
        batch_tokens=512 if smoke else 2048,
        buckets=1 if smoke else 4,
        dataset=spec(questions, name=chosen["dataset"], validation_fraction=0.1, split_seed=0),
        vocabulary={"min_count": 1 if small else 2, "affixes": True, "affix_min_count": 2},
        model={
            "dim": 64 if small else 128,
            "inputs": spec(TokenInputs, word_dropout_rate=0.0 if small else 0.05, dropout_rate=dropout),
            **blocks.encoder(
                chosen["model"],
                dropout_rate=dropout,
                attention=chosen["attention"],
                positions=chosen["positions"],
            ),
            "self_matching": chosen["self_matching"],
            "head": {"end": "pointer"},
            "dropout_rate": dropout,
        },
        optimizer=spec(AdamW, learning_rate=3e-3),
        **blocks.every("1 epoch", smoke=smoke),
    )
