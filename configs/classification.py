"""A label for a text: sentiment, the kind of a question, subjectivity.

    python train.py --config=configs/classification.py --workdir=runs/grammar
    python train.py --config=configs/classification.py:dataset=trec,model=multi_width_cnn --workdir=runs/trec
    python train.py --config=configs/classification.py:dataset=sst2,model=transformer --workdir=runs/sst2
    python train.py --config=configs/classification.py:dataset=folder:reviews --workdir=runs/own

Arguments: `model` (cnn, multi_width_cnn, gated_cnn, rnn, transformer, window_fc), `attention` and `positions`
of a transformer (see configs/blocks.py), `pool` (mean, max, last, first, class, sum, self_attentive), `unit`
(words, bytes), `dataset` (grammar, trec, sst2, sst5, subj, mr, imdb, another prepared TFDS set, or folder:DIR
with files of your own; single files by --config.dataset.name=file:TRAIN,VALIDATION,TEST), `smoke`.

Expected on two CPU cores: grammar, seconds; TREC, a minute; SST-2, minutes; figures in results/README.md.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.text.load import labelled
from errors import unknown
from models.inputs import ByteInputs, TokenInputs
from spec import spec
from tasks.sequence_classification import SequenceClassification
from training.optimizer import AdamW

# How long to train; another data set as long as TREC.
DURATIONS = {"grammar": "20 epochs", "trec": "10 epochs", "sst2": "5 epochs", "imdb": "3 epochs"}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention="dot_product",
        positions=None,
        pool="max",
        unit="words",
        dataset="grammar",
        smoke=False,
    )
    smoke, small, name = chosen["smoke"], chosen["dataset"] == "grammar", chosen["dataset"]
    dropout = 0.0 if small else 0.2
    inputs = {
        "words": spec(TokenInputs, word_dropout_rate=0.0 if small else 0.1, dropout_rate=dropout),
        "bytes": spec(ByteInputs, dropout_rate=dropout),
    }
    if chosen["unit"] not in inputs:
        raise unknown("unit", chosen["unit"], inputs)

    return experiment(
        SequenceClassification,
        seed=0,
        duration="20 steps" if smoke else DURATIONS.get(name, DURATIONS["trec"]),
        batch_tokens=1024,
        buckets=4,
        label_smoothing=0.0 if small else 0.1,
        dataset=spec(labelled, name=name, validation_fraction=0.1, split_seed=0),
        encoding={"kind": "words", "unit": chosen["unit"], "min_count": 1 if small else 2},
        model={
            "dim": 64 if small else 300 if chosen["model"] == "multi_width_cnn" else 128,
            "inputs": inputs[chosen["unit"]],
            **blocks.encoder(
                chosen["model"],
                dropout_rate=dropout,
                attention=chosen["attention"],
                positions=chosen["positions"],
            ),
            "head": {"pool": chosen["pool"], "dropout_rate": 0.0 if small else 0.5},
        },
        optimizer=spec(AdamW, learning_rate=2e-3),
        **blocks.every("1 epoch", smoke=smoke),
    )
