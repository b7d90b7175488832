"""A label for a recording: the digit spoken, or who speaks.

    python train.py --config=configs/speech.py --workdir=runs/tones
    python train.py --config=configs/speech.py:dataset=fsdd,target=digit --workdir=runs/digit
    python train.py --config=configs/speech.py:dataset=fsdd,target=speaker --workdir=runs/speaker
    python train.py --config=configs/speech.py:dataset=folder:recordings --workdir=runs/own

Arguments: `model` (transformer, rnn, cnn, multi_width_cnn, gated_cnn, window_fc), `attention` and
`positions` of a transformer (see configs/blocks.py), `pool` (mean, max, last, first, class, sum,
self_attentive), `dataset` (tones, fsdd, japanese_vowels, another prepared TFDS set of audio, or folder:DIR
with wavs of your own), `target` (what to tell, where a set has several labels: digit or speaker), `smoke`.

Expected on two CPU cores: tones, seconds; Free Spoken Digits, minutes; figures in results/README.md.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.speech.load import labelled
from models.inputs import FrameInputs
from spec import spec
from tasks.sequence_classification import SequenceClassification
from training.optimizer import AdamW


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention="dot_product",
        positions="sinusoidal",
        pool="mean",
        dataset="tones",
        target=None,
        smoke=False,
    )
    smoke, small = chosen["smoke"], chosen["dataset"] == "tones"

    return experiment(
        SequenceClassification,
        seed=0,
        duration="20 steps" if smoke else "12 epochs",
        batch_tokens=2048,
        buckets=4,
        label_smoothing=0.0 if small else 0.1,
        dataset=spec(
            labelled, name=chosen["dataset"], target=chosen["target"], validation_fraction=0.1, split_seed=0
        ),
        encoding={"kind": "frames", "num_mels": 40, "deltas": 0, "normalize": "train"},
        model={
            "dim": 64,
            "inputs": spec(FrameInputs, stack=1, dropout_rate=0.1),
            **blocks.encoder(
                chosen["model"],
                dropout_rate=0.1,
                attention=chosen["attention"],
                positions=chosen["positions"],
            ),
            "head": {"pool": chosen["pool"], "dropout_rate": 0.1},
        },
        optimizer=spec(AdamW, learning_rate=2e-3),
        **blocks.every("1 epoch", smoke=smoke),
    )
