import numpy as np
import pytest
import tensorflow_datasets as tfds

from data.image import load


def test_prepared_from_the_published_files(prepared):
    root = prepared("fashion_mnist")
    data = load.labelled("fashion_mnist", data_dir=str(root))
    assert (len(data.train), len(data.validation), len(data.test)) == (54_000, 6_000, 10_000)
    assert data.label_names[0] == "T-shirt/top"
    assert data.label_names[9] == "Ankle boot"
    assert np.bincount(data.train.labels).tolist() == [5_400] * 10
    assert np.bincount(data.validation.labels).tolist() == [600] * 10
    assert np.bincount(data.test.labels).tolist() == [1_000] * 10
    # The mean and deviation that everyone uses: 0.2860 and 0.3530 of the 60,000.
    pixels = np.concatenate([data.train.images, data.validation.images]) / np.float32(255)
    assert pixels.mean(dtype=np.float64) == pytest.approx(0.2860, abs=5e-5)
    assert pixels.std(dtype=np.float64) == pytest.approx(0.3530, abs=5e-5)


def test_nested_training_sets(prepared):
    root = str(prepared("fashion_mnist"))
    small, large = (load.labelled("fashion_mnist", data_dir=root, train_size=n) for n in (500, 2_000))
    assert (len(small.train), len(small.validation)) == (450, 50)
    assert (len(large.train), len(large.validation)) == (1_800, 200)
    for part in ("train", "validation"):
        few, many = getattr(small, part), getattr(large, part)
        assert np.array_equal(many.images[: len(few)], few.images)
        assert np.bincount(many.labels).tolist() == [len(many) // 10] * 10


def test_split_expressions_and_order(prepared):
    source = tfds.data_source("fashion_mnist:1.0.0", data_dir=prepared("fashion_mnist"), split="train[:10%]")
    assert len(source) == 6_000
    # The published order: the well-known first images are a boot and three tops and dresses.
    assert [source[i]["label"] for i in range(6)] == [9, 0, 0, 3, 0, 2]
    assert source[0]["image"].shape == (28, 28, 1)
