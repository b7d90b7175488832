"""Fashion-MNIST as published, read from its raw files; writing records is tested on small sets."""

import numpy as np
import pytest

from data import splits
from data.image import load
from data.image.builders.fashion_mnist import FashionMnist
from data.image.types import LabelledImages


@pytest.fixture(scope="module")
def published(real_data):
    return FashionMnist.read(real_data("fashion_mnist"))


def test_the_published_files(published):
    assert {split: images.shape for split, (images, _) in published.items()} == {
        "train": (60_000, 28, 28, 1),
        "test": (10_000, 28, 28, 1),
    }
    assert (FashionMnist.CLASSES[0], FashionMnist.CLASSES[9]) == ("T-shirt/top", "Ankle boot")
    # The published order: the well-known first images are a boot and three tops and dresses.
    assert published["train"][1][:6].tolist() == [9, 0, 0, 3, 0, 2]
    for images, labels in published.values():
        assert np.bincount(labels).tolist() == [len(images) // 10] * 10
    # The mean and deviation that everyone uses: 0.2860 and 0.3530 of the 60,000.
    pixels = published["train"][0] / np.float32(255)
    assert pixels.mean(dtype=np.float64) == pytest.approx(0.2860, abs=5e-5)
    assert pixels.std(dtype=np.float64) == pytest.approx(0.3530, abs=5e-5)


def test_nested_training_sets(published):
    """A learning curve learns from, and chooses by, examples that are all in its larger sets."""
    of_split = {
        split: LabelledImages.of(images, labels.astype(np.int32))
        for split, (images, labels) in published.items()
    }
    fixed = {"validation_fraction": 0.1, "fold": None, "folds": None, "split_seed": 0}
    small, large = (
        splits.divide("fashion_mnist", of_split, load.LABELLED, train_size=size, **fixed)
        for size in (500, 2_000)
    )
    assert (len(small.train), len(small.validation)) == (450, 50)
    assert (len(large.train), len(large.validation)) == (1_800, 200)
    for few, many in ((small.train, large.train), (small.validation, large.validation)):
        assert np.array_equal(many.images[: len(few)], few.images)
        assert np.bincount(many.labels).tolist() == [len(many) // 10] * 10
