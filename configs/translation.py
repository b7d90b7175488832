"""A text in one language to the text in another: four generations of encoder and decoder.

    python train.py --config=configs/translation.py --workdir=runs/dates
    python train.py --config=configs/translation.py:dataset=multi30k --workdir=runs/m30k
    python train.py --config=configs/translation.py:dataset=multi30k,model=rnn --workdir=runs/rnn
    python train.py --config=configs/translation.py:dataset=folder:x,source=fi,target=sv --workdir=runs/own
    python predict.py --run=runs/m30k --beam=5 < text.de > text.en

Arguments: `model` (rnn, convolution, transformer), `attention` of an rnn (none, bahdanau, dot, general,
concat, location, local_m, local_p), `size` (tiny, small, base), `norm` of a transformer (pre, post),
`dataset` (dates, multi30k, tatoeba_en_zh, a prepared TFDS translation set, folder:DIR; single files by
--config.dataset.name=file:TRAIN,VALIDATION,TEST), `source` and `target` languages, `smoke`.

Expected on two CPU cores: dates, a minute; Multi30k, see results/README.md.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.text.load import parallel
from errors import unknown
from models.inputs import TokenInputs
from spec import spec
from tasks.translation import Translation
from training.optimizer import AdamW

# How long to train, and how large a model is, on Multi30k; other sets are taken to be as large.
MULTI30K: dict[str, dict[str, Any]] = {
    "rnn": {"duration": "8 epochs", "size": "small", "dropout": 0.3, "learning_rate": 2e-3},
    "convolution": {"duration": "8 epochs", "size": "small", "dropout": 0.3, "learning_rate": 2e-3},
    "transformer": {"duration": "18 epochs", "size": "tiny", "dropout": 0.2, "learning_rate": 3e-3},
}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention=None,
        size=None,
        norm="pre",
        dataset="dates",
        source="de",
        target="en",
        smoke=False,
    )
    smoke, kind, name = chosen["smoke"], chosen["model"], chosen["dataset"]
    if kind not in MULTI30K:
        raise unknown("model", kind, MULTI30K)
    suits, dates = MULTI30K[kind], name == "dates"
    dropout = 0.1 if dates else suits["dropout"]

    return experiment(
        Translation,
        seed=0,
        duration="20 steps" if smoke else "10 epochs" if dates else suits["duration"],
        batch_tokens=2048,
        buckets=6,
        label_smoothing=0.1,
        dataset=spec(
            parallel,
            name=name,
            source=chosen["source"],
            target=chosen["target"],
            validation_fraction=0.1,
            split_seed=0,
        ),
        subwords={"unit": "char" if dates else "bpe", "vocab_size": 4000, "lower": False},
        joint_vocabulary=True,
        max_length=None,
        model=blocks.encoder_decoder(
            kind,
            size=chosen["size"] or ("tiny" if dates else suits["size"]),
            dropout_rate=dropout,
            attention=chosen["attention"],
            inputs=spec(TokenInputs, dropout_rate=dropout),
            norm=chosen["norm"],
            share_embeddings=True,
        ),
        decoding={"beam": 1, "length_penalty": 1.0, "max_ratio": 2.0, "max_extra": 10},
        optimizer=spec(AdamW, learning_rate=suits["learning_rate"], second_momentum=0.98),
        **blocks.every("1 epoch" if dates else "2 epochs", smoke=smoke),
    )
