"""A label for every word: parts of speech, entities.

    python train.py --config=configs/labeling.py --workdir=runs/grammar
    python train.py --config=configs/labeling.py:dataset=ud_en_ewt,model=rnn --workdir=runs/pos
    python train.py --config=configs/labeling.py:model=transformer,attention=banded --workdir=runs/banded
    python train.py --config=configs/labeling.py:dataset=folder:treebank --workdir=runs/own

Arguments: `model` (window_fc, cnn, multi_width_cnn, gated_cnn, rnn, transformer), `attention` and
`positions` of a transformer (see configs/blocks.py), `crf` (choose the labels of a sentence together),
`dataset` (grammar, ud_en_ewt, ud_en_lines, ud_zh_gsd, wnut17, another prepared TFDS set, or folder:DIR with
files of your own; single files by --config.dataset.name=file:TRAIN,VALIDATION,TEST), `smoke`.

Expected on two CPU cores: grammar, seconds; English EWT, minutes; figures in results/README.md.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.text.load import tagged
from models.inputs import TokenInputs
from spec import spec
from tasks.sequence_labeling import SequenceLabeling
from training.optimizer import AdamW


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="rnn",
        attention="dot_product",
        positions=None,
        crf=False,
        dataset="grammar",
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "grammar"
    dropout = 0.0 if small else 0.3

    return experiment(
        SequenceLabeling,
        seed=0,
        duration="20 steps" if smoke else "10 epochs",
        batch_tokens=512 if small else 1024,
        buckets=4,
        label_smoothing=0.0,
        dataset=spec(tagged, name=chosen["dataset"], validation_fraction=0.1, split_seed=0),
        encoding={"kind": "words", "min_count": 2, "affixes": True, "affix_min_count": 2},
        model={
            "dim": 64 if small else 128,
            "inputs": spec(TokenInputs, word_dropout_rate=0.0 if small else 0.1, dropout_rate=dropout),
            **blocks.encoder(
                chosen["model"],
                dropout_rate=dropout,
                attention=chosen["attention"],
                positions=chosen["positions"],
            ),
            "head": {"crf": chosen["crf"], "dropout_rate": dropout},
        },
        optimizer=spec(AdamW, learning_rate=3e-3),
        **blocks.every("1 epoch", smoke=smoke),
    )
