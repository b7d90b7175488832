"""Image models by config word: golden parameter counts, models of one size, mistakes of one line."""

import math

import jax
import pytest
from flax import nnx

from errors import UserError
from models.images import IMAGE_MODELS
from tests.models.parameters import shaped

# A CNN and a ViT of about the same size each, and the images that they are for.
SIZES = {
    "xs": (
        {"widths": (8, 20, 25), "blocks": (0, 1, 2)},
        {"dim": 32, "num_layers": 2, "num_heads": 4, "patch_size": 4},
    ),
    "as they are": ({}, {}),
    "m": (
        {"widths": (64, 128, 252), "blocks": (2, 2, 2)},
        {"dim": 192, "num_layers": 6, "num_heads": 3, "patch_size": 4},
    ),
}
GOLDEN = {
    ("xs", (16, 16, 3), 5): (27_717, 27_717),
    ("as they are", (28, 28, 1), 10): (200_954, 204_938),
    ("m", (28, 28, 1), 10): (2_715_698, 2_684_170),
}


@pytest.mark.parametrize("size, image, classes", GOLDEN)
def test_parameters(size, image, classes):
    counts = []
    for kind, fields in zip(("cnn", "vit"), SIZES[size], strict=True):
        block = {"kind": kind, **fields}
        built = shaped(IMAGE_MODELS.build, block, image_shape=image, num_classes=classes)
        counts.append(sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(built, nnx.Param))))
    assert tuple(counts) == GOLDEN[size, image, classes]
    assert max(counts) <= 1.05 * min(counts)


@pytest.mark.parametrize(
    "block, message",
    [
        ({"kind": "vti"}, "unknown image model in config.model 'vti'. Did you mean 'vit'? Allowed: cnn, vit"),
        (
            {"kind": "cnn", "patch_size": 4},
            "config.model with kind 'cnn' has no field 'patch_size', which is of vit",
        ),
        ({"kind": "vit", "colour": 1}, "unknown field of config.model with kind 'vit' 'colour'"),
        ({"kind": "vit", "num_classes": 3}, "unknown field of config.model with kind 'vit' 'num_classes'"),
        ({"kind": "vit", "patch_size": 0}, "config.model.patch_size is 0; it must be an integer, at least 1"),
        (
            {"kind": "vit", "patch_size": 3},
            "config.model: patch_size 3 does not tile an image of 8 x 8 pixels",
        ),
        ({"kind": "vit", "dropout_rate": 1.5}, "config.model.dropout_rate is 1.5"),
        ({"kind": "vit", "pool": "max"}, "config.model.pool is 'max'; it must be one of mean, class"),
        (
            {"kind": "vit", "positions": "rotary"},
            "config.model.positions is 'rotary'; it must be one of learned",
        ),
        ({"kind": "vit", "num_heads": 5}, "config.model: dim 64 is not divisible by num_heads 5"),
        ({"kind": "cnn", "stem_stride": 0}, "config.model.stem_stride is 0"),
        ({"kind": "cnn", "norm": "layer"}, "config.model.norm is 'layer'; it must be one of batch, group"),
        (
            {"kind": "cnn", "widths": (4,)},
            "config.model: widths (4,) and blocks (0, 1, 1, 1) differ in length",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(block, message):
    with pytest.raises(UserError) as error:
        shaped(IMAGE_MODELS.build, block, "config.model", image_shape=(8, 8, 1), num_classes=3)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
