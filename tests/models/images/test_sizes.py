"""Sizes by name: golden parameter counts, and pairs that are of one size."""

import math

import jax
import pytest
from flax import nnx

from errors import UserError
from models import variants
from models.images import MODELS, VARIANTS

DIGITS = ((8, 8, 1), 10, 2)  # shape, classes, the ViT's patch size
POINTED = ((16, 16, 3), 5, 4)
FASHION = ((28, 28, 1), 10, 4)
CIFAR = ((32, 32, 3), 10, 4)

GOLDEN = {
    ("xs", "cnn", POINTED): 27_717,
    ("xs", "vit", POINTED): 27_717,
    ("s", "cnn", FASHION): 200_954,
    ("s", "vit", FASHION): 204_938,
    ("m", "cnn", FASHION): 2_715_698,
    ("m", "vit", FASHION): 2_684_170,
}
MEANT_FOR = {"xs": (DIGITS, POINTED), "s": (FASHION,), "m": (CIFAR,)}


def count(variant, kind, images):
    shape, classes, patch_size = images
    model = {"kind": kind, "variant": variant}
    if kind == "vit":
        model["patch_size"] = patch_size
    built = nnx.eval_shape(
        lambda: variants.build(model, image_shape=shape, num_classes=classes, rngs=nnx.Rngs(0))
    )
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(built, nnx.Param)))


@pytest.mark.parametrize("variant, kind, images", GOLDEN)
def test_parameters(variant, kind, images):
    assert count(variant, kind, images) == GOLDEN[variant, kind, images]


def test_every_variant_of_every_model_has_its_golden_count():
    assert {(variant, kind) for variant, kind, _ in GOLDEN} == {(v, k) for v in VARIANTS for k in MODELS}
    assert MEANT_FOR.keys() == VARIANTS.keys()


@pytest.mark.parametrize("variant, images", [(v, images) for v in MEANT_FOR for images in MEANT_FOR[v]])
def test_models_of_a_size_match_within_5_percent(variant, images):
    counts = [count(variant, kind, images) for kind in MODELS]
    assert max(counts) <= 1.05 * min(counts), counts


def build(**model):
    return variants.build(model, image_shape=(8, 8, 1), num_classes=3, rngs=nnx.Rngs(0))


def test_fields_win_over_the_variant_and_zeros_do_not():
    vit = {"kind": "vit", "variant": "xs", "patch_size": 4}
    model = nnx.eval_shape(lambda: build(**vit, dim=12, num_layers=0, num_heads=3, hidden_dim=7))
    assert (model.dim, len(model.encoder.blocks)) == (12, 2)
    assert model.encoder.blocks[0].attention.head_dim == 4
    cnn = nnx.eval_shape(lambda: build(kind="cnn", variant="xs", widths=(2, 3), blocks=(1, 1)))
    assert cnn.head.in_features == 3
    assert nnx.eval_shape(lambda: build(kind="cnn", variant="xs", widths=())).stem.out_features == 8


@pytest.mark.parametrize(
    "model, message",
    [
        ({"kind": "vti", "variant": "xs"}, "unknown model 'vti'. Did you mean 'vit'? Allowed: cnn, vit"),
        (
            {"kind": "vit", "variant": "xl"},
            "unknown model variant 'xl'. Did you mean 'xs'? Allowed: m, s, xs",
        ),
        ({"kind": "cnn", "variant": "xs", "patch_size": 4}, "patch_size"),
        ({"kind": "vit", "variant": "xs", "patch_size": 4, "colour": 1}, "colour"),
    ],
)
def test_an_unknown_word_is_one_line(model, message):
    with pytest.raises(UserError) as error:
        build(**model)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "vit", "patch_size": 0},
        {"kind": "vit", "patch_size": -4},
        {"kind": "vit", "patch_size": 4, "dropout_rate": 1.5},
        {"kind": "vit", "patch_size": 4, "dim": -8},
        {"kind": "cnn", "stem_stride": 0},
    ],
)
def test_a_number_that_makes_no_sense_is_one_line(fields):
    with pytest.raises(UserError):
        nnx.eval_shape(lambda: build(variant="xs", **fields))
