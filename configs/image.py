"""Image classification with a CNN or a Vision Transformer.

    python train.py --config=configs/image.py --workdir=runs/digits
    python train.py --config=configs/image.py:model=cnn,dataset=fashion_mnist --workdir=runs/cnn
    python train.py --config=configs/image.py:smoke --workdir=/tmp/smoke

Arguments: `model` (vit, cnn), `variant` (xs, s, m), `dataset` (digits, pointed_digits, fashion_mnist,
cifar10, another prepared TFDS set, or folder:DIR), `smoke` (a run of seconds, to see that all is well).

Expected on two CPU cores: digits, a minute, about 97 %; Fashion-MNIST in the results table of the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks
from errors import unknown

# What suits a data set's image size; another data set starts from "fashion_mnist".
DATASETS = {
    "digits": {"variant": "xs", "patch_size": 2, "duration": "1500 steps"},
    "pointed_digits": {"variant": "xs", "patch_size": 4, "duration": "4000 steps"},
    "pointed_digits_control": {"variant": "xs", "patch_size": 4, "duration": "2000 steps"},
    "fashion_mnist": {"variant": "s", "patch_size": 4, "duration": "10 epochs"},
    "cifar10": {"variant": "m", "patch_size": 4, "duration": "100 epochs"},
}
AUGMENTATION = {"cifar10": "shift_flip"}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(argument, model="vit", variant="", dataset="digits", smoke=False)
    suits = DATASETS.get(chosen["dataset"], DATASETS["fashion_mnist"])
    smoke = chosen["smoke"]

    config = ConfigDict()
    config.task = "image_classification"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples, augmentation and dropout
    config.batch_size = 64 if suits["variant"] == "xs" else 128  # examples per update
    config.duration = "60 steps" if smoke else suits["duration"]  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.0  # probability spread over all classes in the training targets

    config.dataset = ConfigDict()
    config.dataset.name = chosen["dataset"]  # see the arguments above
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.train_size = 0  # labelled images to use, those held out included; 0: all
    config.dataset.subset_seed = -1  # which ones; -1: by config.seed
    config.dataset.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    config.dataset.image_size = 0  # pad images with zeros to this side, pixels; 0: as they are
    config.dataset.mean = ()  # per channel, of pixels in [0, 1]; (): measured on the training images
    config.dataset.std = ()  # likewise
    config.dataset.augmentation = AUGMENTATION.get(chosen["dataset"], "none")  # or shift, flip, shift_flip

    config.model = ConfigDict()
    config.model.kind = chosen["model"]  # vit or cnn
    config.model.variant = chosen["variant"] or suits["variant"]  # size, one of models.variants.VARIANTS
    if chosen["model"] == "vit":
        config.model.patch_size = suits["patch_size"]  # pixels; 1: pixels as tokens
        config.model.dim = 0  # width; 0: the variant's
        config.model.num_layers = 0  # Transformer blocks; 0: the variant's
        config.model.num_heads = 0  # attention heads; 0: the variant's
        config.model.hidden_dim = 0  # feed-forward width; 0: four times dim
        config.model.pool = "mean"  # or class: an extra token that the head reads
        config.model.positions = "learned"  # or sinusoidal (two-dimensional), none
        config.model.norm = "pre"  # or post
        config.model.dropout_rate = 0.0  # on attention weights, feed-forward and residual branches
        config.model.attention = ConfigDict()
        config.model.attention.kind = "dot_product"  # one of models.mechanisms.MECHANISMS
    elif chosen["model"] == "cnn":
        config.model.widths = ()  # channels of each stage; (): the variant's
        config.model.blocks = ()  # residual blocks of each stage; (): the variant's
        config.model.stem_stride = 1  # 2 halves the image at once
        config.model.norm = "batch"  # or group
    else:
        raise unknown("model", chosen["model"], ("vit", "cnn"))

    config.optimizer = blocks.optimizer(learning_rate=3e-3 if suits["variant"] == "xs" else 1e-3)
    config.evaluation_batch_size = 500  # examples per evaluation batch
    blocks.loop(config, smoke=smoke, every="500 steps")
    return config
