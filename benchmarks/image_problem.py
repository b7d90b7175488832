"""What both sides of the training benchmark train on: Fashion-MNIST's shapes, with random pixels.

What the config imports makes no array and no thread of JAX, so that PyTorch's side has the cores to itself.
"""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from configs import image

IMAGE_SHAPE = (28, 28, 1)
NUM_CLASSES = 10
MODELS = ("vit", "cnn")


def config(model: str) -> ConfigDict:
    """The config that training on Fashion-MNIST starts from."""
    return image.get_config(f"model={model},dataset=fashion_mnist")


def batches(batch_size: int, number: int = 8) -> list[dict[str, Any]]:
    """Batches as the data pipeline gives them: standardised images `[B, 28, 28, 1]`, labels, weights."""
    draw = np.random.default_rng(0)
    return [
        {
            "image": draw.standard_normal((batch_size, *IMAGE_SHAPE), np.float32),
            "label": draw.integers(NUM_CLASSES, size=batch_size, dtype=np.int32),
            "weight": np.ones(batch_size, np.float32),
        }
        for _ in range(number)
    ]
