"""The image models a config can name, and their sizes in one table.

The two models of one size have parameter counts within 5 % of each other on the images that the size is
meant for, so that a comparison of the two compares convolution with attention, not small with large.
"""

from collections.abc import Mapping
from typing import Any

from flax import nnx

from errors import unknown
from models import fields
from models.cnn import CNN
from models.vit import ViT

MODELS: dict[str, Any] = {"cnn": CNN, "vit": ViT}

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    # About 28 thousand parameters, for images of 8 to 16 pixels a side.
    "xs": {
        "cnn": {"widths": (8, 20, 25), "blocks": (0, 1, 2)},
        "vit": {"dim": 32, "num_layers": 2, "num_heads": 4},
    },
    # About 200 thousand, for images of 28 to 32 pixels. No block at full size: it cost most of the step's
    # time and gained nothing on Fashion-MNIST.
    "s": {
        "cnn": {"widths": (16, 32, 72, 80), "blocks": (0, 1, 1, 1)},
        "vit": {"dim": 64, "num_layers": 4, "num_heads": 4},
    },
    # About 2.7 million, for CIFAR-10 on an accelerator.
    "m": {
        "cnn": {"widths": (64, 128, 252), "blocks": (2, 2, 2)},
        "vit": {"dim": 192, "num_layers": 6, "num_heads": 3},
    },
}


def build(
    model: Mapping[str, Any],
    *,
    image_shape: tuple[int, int, int],
    num_classes: int,
    rngs: nnx.Rngs,
) -> nnx.Module:
    """The model of a config block `{"kind": "vit", "variant": "s", **arguments}`.

    Args:
        model: `kind`, one of `MODELS`; `variant`, one of `VARIANTS`; further fields go to the model and
            win over the variant's.
        image_shape: height, width and channels.
        num_classes: classes.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown kind or variant, a field that the model does not have, or sizes that do
            not fit the image.
    """
    given = dict(model)
    kind, variant = given.pop("kind"), given.pop("variant")
    if kind not in MODELS:
        raise unknown("model", kind, MODELS)
    if variant not in VARIANTS:
        raise unknown("model variant", variant, VARIANTS)
    # 0 and () in a config stand for the variant's own size.
    chosen = {k: v for k, v in given.items() if v or k not in VARIANTS[variant][kind]}
    arguments = {**VARIANTS[variant][kind], **chosen}
    return fields.construct(
        "config.model",
        MODELS[kind],
        arguments,
        kind=kind,
        image_shape=image_shape,
        num_classes=num_classes,
        rngs=rngs,
    )
