"""Parameters and FLOPs of a model."""

import io

import jax.numpy as jnp
import pytest
from flax import nnx
from rich.console import Console

from models.images.cnn import CNN
from models.images.vit import ViT
from training import summary


class Logits:
    """The part of a task that is counted."""

    def evaluate(self, model, batch):
        return {"sum": model(batch["image"], train=False).sum()}


def test_parameters_by_part():
    model = nnx.eval_shape(
        lambda: ViT(
            image_shape=(4, 6, 3),
            num_classes=5,
            patch_size=2,
            dim=8,
            num_layers=1,
            num_heads=2,
            hidden_dim=32,
            rngs=nnx.Rngs(0),
        )
    )
    attention, feed_forward, norms = 4 * (8 * 8 + 8), 8 * 32 + 32 + 32 * 8 + 8, 3 * 16
    assert summary.parameter_counts(nnx.state(model, nnx.Param)) == {
        "embed": 12 * 8 + 8,
        "encoder": attention + feed_forward + norms,
        "head": 8 * 5 + 5,
        "position_table": 6 * 8,
    }


@pytest.mark.parametrize("images", [1, 3])
def test_flops_of_one_example_are_those_of_its_matrix_products(images):
    """A stem and a block of 3 x 3 convolutions; all else is a small rest."""
    model = nnx.eval_shape(
        lambda: CNN(image_shape=(16, 16, 4), num_classes=5, widths=(8,), blocks=(1,), rngs=nnx.Rngs(0))
    )
    structure, params, statistics = nnx.split(model, nnx.Param, ...)
    example = {"image": jnp.zeros((images, 16, 16, 4))}
    products = images * 2 * 9 * (4 * 8 + 8 * 8 + 8 * 8) * 16 * 16
    found = summary.flops_per_example(Logits(), structure, params, statistics, example)
    assert 0.8 * products < found < 1.1 * products


def test_table_shows_parts_and_sums():
    shown = io.StringIO()
    Console(file=shown, width=80).print(summary.table("cnn", {"stem": 1200, "head": 34}, 5.6e6))
    assert [line.split() for line in shown.getvalue().splitlines()] == [
        ["cnn"],
        ["part", "parameters"],
        ["stem", "1,200"],
        ["head", "34"],
        ["all", "1,234"],
        ["forward", "FLOPs", "per", "example", "5,600,000"],
    ]
