"""An image to a sentence: the captioner that shows, attends and tells (Xu et al. 2015).

    python train.py --config=configs/captioning.py --workdir=runs/digit_scenes
    python train.py --config=configs/captioning.py:dataset=fashion_scenes,attention=hard --workdir=runs/hard
    python train.py --config=configs/captioning.py:dataset=coco_captions --workdir=runs/coco
    python train.py --config=configs/captioning.py:dataset=folder:photos --workdir=runs/own
    python predict.py --run=runs/own one.jpg two.jpg

Arguments: `attention` (soft, hard, none), `dataset` (digit_scenes, fashion_scenes, which needs fashion_mnist
prepared, a prepared TFDS set of images with captions such as coco_captions, or folder:DIR with a table
captions.csv of your own), `smoke`.

Expected on one CPU core: scenes, 2 to 7 minutes; figures in results/README.md.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.image.load import captioned
from errors import unknown
from models.decoders.recurrent import RecurrentDecoder
from models.inputs import GridInputs
from spec import spec
from tasks.captioning import Captioning
from training.optimizer import AdamW


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(argument, attention="soft", dataset="digit_scenes", smoke=False)
    attention, name, smoke = chosen["attention"], chosen["dataset"], chosen["smoke"]
    scenes, digits = name.endswith("_scenes"), name == "digit_scenes"
    dropout = 0.0 if scenes else 0.5
    # Of scenes, a place must not see much more than it stands for, or one look would tell everything.
    inputs = (
        spec(GridInputs, widths=(16, 32), blocks=(0, 1), stem_stride=1 if digits else 2, stack=2)
        if scenes
        else spec(GridInputs, widths=(64, 128, 256), blocks=(2, 2, 2), stem_stride=2, dropout_rate=dropout)
    )
    # Soft attention looks at the right thing by then; only after that can hard attention learn.
    soft_steps = 10 if smoke else 1500 if scenes else 5000

    return experiment(
        Captioning,
        seed=0,
        duration="20 steps" if smoke else "30 epochs" if digits else "12 epochs",
        batch_tokens=1024,
        buckets=1 if smoke else 2,
        label_smoothing=0.0,
        # Most of a scene is worth no look.
        doubly_stochastic=1.0 if attention == "soft" and not scenes else 0.0,
        reward_weight=1.0,
        entropy_weight=0.02,
        dataset=spec(
            captioned,
            name=name,
            image_size=None if scenes else 128,
            train_size=200 if smoke and scenes else None,
            validation_fraction=0.1,
            split_seed=0,
        ),
        subwords={"unit": "word", "vocab_size": 10_000, "min_count": 1 if scenes else 5},
        model={
            "dim": 128 if scenes else 512,
            "inputs": inputs,
            "positions": "none",
            "encoder": "none",  # the places of the map as they are
            "tokens": {"tie_output": True, "dropout_rate": dropout},
            "decoder": _decoder(attention, soft_steps, dropout),
        },
        # An image of any size is told in as many words.
        decoding={"beam": 1, "max_ratio": 0.0, "max_extra": 24},
        optimizer=spec(AdamW, learning_rate=2e-3),
        **blocks.every("1 epoch", smoke=smoke),
    )


def _decoder(attention: str, soft_steps: int, dropout: float) -> ConfigDict:
    """An LSTM that attends before each word, or that sees the mean of all places at every step."""
    how: dict[str, dict[str, Any]] = {
        "none": {"attention": "none"},
        "soft": {"attention": {"kind": "additive", "hidden_dim": 128}, "gate": True},
        "hard": {
            "attention": {"kind": "additive", "hidden_dim": 128},
            "gate": True,
            "choice": "hard",
            "soft_steps": soft_steps,
        },
    }
    if attention not in how:
        raise unknown("attention", attention, how)
    return spec(RecurrentDecoder, cell="lstm", summary="mean", dropout_rate=dropout, **how[attention])
