"""Image classification with a CNN or a Vision Transformer.

    python train.py --config=configs/image.py --workdir=runs/digits
    python train.py --config=configs/image.py:model=cnn,dataset=fashion_mnist --workdir=runs/cnn
    python train.py --config=configs/image.py:smoke --config.model.attention.kind=banded --workdir=/tmp/smoke

Arguments: `model` (vit, cnn), `variant` (xs, s, m; left out, as suits the data set), `dataset` (digits,
pointed_digits, fashion_mnist, cifar10, another prepared TFDS set, or folder:DIR), `smoke` (a run of seconds,
to see that all is well).

Expected on two CPU cores: digits, a minute, about 97 %; Fashion-MNIST in results/README.md.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.image.load import labelled
from errors import unknown
from models.images.cnn import CNN
from models.images.vit import ViT
from spec import spec
from tasks.image_classification import ImageClassification
from training.optimizer import AdamW

# The two models of a size have parameter counts within 5 % of each other on the images that it is meant for,
# so that a comparison of the two compares convolution with attention, not small with large.
VARIANTS = {
    # About 28 thousand parameters, for images of 8 to 16 pixels a side.
    "xs": {
        "cnn": spec(CNN, widths=(8, 20, 25), blocks=(0, 1, 2)),
        "vit": spec(ViT, dim=32, num_layers=2, num_heads=4, hidden_dim=128),
    },
    # About 200 thousand, for images of 28 to 32 pixels. No block at full size: it cost most of the step's
    # time and gained nothing on Fashion-MNIST.
    "s": {
        "cnn": spec(CNN, widths=(16, 32, 72, 80), blocks=(0, 1, 1, 1)),
        "vit": spec(ViT, dim=64, num_layers=4, num_heads=4, hidden_dim=256),
    },
    # About 2.7 million, for CIFAR-10 on an accelerator.
    "m": {
        "cnn": spec(CNN, widths=(64, 128, 252), blocks=(2, 2, 2)),
        "vit": spec(ViT, dim=192, num_layers=6, num_heads=3, hidden_dim=768),
    },
}

# What suits a data set's image size; another data set is taken to be like Fashion-MNIST.
DATASETS: dict[str, dict[str, Any]] = {
    "digits": {"variant": "xs", "patch_size": 2, "duration": "1500 steps"},
    "pointed_digits": {"variant": "xs", "patch_size": 4, "duration": "4000 steps"},
    "pointed_digits_control": {"variant": "xs", "patch_size": 4, "duration": "2000 steps"},
    "fashion_mnist": {"variant": "s", "patch_size": 4, "duration": "10 epochs"},
    "cifar10": {"variant": "m", "patch_size": 4, "duration": "100 epochs"},
}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(argument, model="vit", variant=None, dataset="digits", smoke=False)
    name, smoke = chosen["dataset"], chosen["smoke"]
    suits = DATASETS.get(name, DATASETS["fashion_mnist"])
    variant = chosen["variant"] or suits["variant"]
    if variant not in VARIANTS:
        raise unknown("model variant", variant, VARIANTS)
    if chosen["model"] not in VARIANTS[variant]:
        raise unknown("model", chosen["model"], VARIANTS[variant])
    model = VARIANTS[variant][chosen["model"]].copy_and_resolve_references()
    if chosen["model"] == "vit":
        model.patch_size = suits["patch_size"]
    small = suits["variant"] == "xs"

    return experiment(
        ImageClassification,
        seed=0,
        duration="60 steps" if smoke else suits["duration"],
        batch_size=64 if small else 128,
        evaluation_batch_size=500,
        label_smoothing=0.0,
        dataset=spec(labelled, name=name, train_size=None, validation_fraction=0.1, split_seed=0),
        encoding={"augmentation": "shift_flip" if name == "cifar10" else "none"},
        model=model,
        optimizer=spec(
            AdamW,
            learning_rate=3e-3 if small else 1e-3,
            schedule="cosine",
            warmup=0.1,
            momentum=0.9,
            second_momentum=0.99,
            weight_decay=0.05,
            clip_norm=1.0,
        ),
        **blocks.every("500 steps", smoke=smoke),
    )
