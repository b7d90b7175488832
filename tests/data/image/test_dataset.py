import subprocess
import sys

import numpy as np
import pytest

import errors
from data.image import dataset
from data.image.dataset import ImageDataset, ImageSplit


def split(size=6, side=4, classes=3):
    pixels = np.arange(size * side * side).reshape(size, side, side, 1).astype(np.uint8)
    return ImageSplit(pixels, (np.arange(size) % classes).astype(np.int32))


def image_dataset(**changes):
    fields = {
        "name": "x",
        "label_names": ("a", "b", "c"),
        "scale": 255.0,
        "train": split(6),
        "validation": split(3),
        "test": split(4),
    }
    return ImageDataset(**(fields | changes))


def test_digits_are_scikit_learns():
    sklearn = pytest.importorskip("sklearn.datasets").load_digits()
    data = dataset.load("digits")
    assert (len(data.train), len(data.validation), len(data.test)) == (1_200, 200, 397)
    assert data.scale == 16.0
    assert data.label_names == tuple("0123456789")

    def rows(pixels, labels):
        flat = pixels.reshape(len(labels), 64)
        return sorted(map(tuple, np.column_stack([labels, flat]).astype(int).tolist()))

    ours = [
        np.concatenate([getattr(part, field) for part in (data.train, data.validation, data.test)])
        for field in ("images", "labels")
    ]
    assert rows(*ours) == rows(sklearn.images, sklearn.target)
    assert np.ptp(np.bincount(data.test.labels)) < 30


def test_the_split_of_the_digits_is_pinned():
    assert (
        dataset.load("digits").test.fingerprint
        == "30845c496ef4d896c110c4b24c20ed620905f632a5c816bc4ca251c25e863b63"
    )


def test_subsets_of_a_data_set_with_its_own_validation():
    small, large, everything = (dataset.load("digits", train_size=n, seed=1) for n in (20, 50, 0))
    assert [len(data.train) for data in (small, large, everything)] == [20, 50, 1_200]
    assert np.array_equal(large.train.images[:20], small.train.images)
    assert np.array_equal(everything.train.images[:50], large.train.images)
    assert np.bincount(large.train.labels).tolist() == [5] * 10
    assert small.validation.fingerprint == everything.validation.fingerprint
    assert small.test.fingerprint == everything.test.fingerprint
    other = dataset.load("digits", train_size=20, seed=2)
    assert other.train.fingerprint != small.train.fingerprint
    assert len(dataset.load("digits", train_size=1).train) == 1


def test_fingerprint_is_of_everything_held():
    prints = {
        data.fingerprint
        for data in (
            image_dataset(),
            image_dataset(label_names=("a", "b", "d")),
            image_dataset(scale=16.0),
            image_dataset(train=split(5)),
            image_dataset(validation=split(5)),
            image_dataset(test=split(5)),
            image_dataset(validation=split(4), test=split(3)),
        )
    }
    assert len(prints) == 7
    assert image_dataset().fingerprint == image_dataset(name="y", scale=255).fingerprint
    shuffled = ImageSplit(split().images, split().labels[::-1].copy())
    assert shuffled.fingerprint != split().fingerprint
    reshaped = ImageSplit(split().images.reshape(6, 2, 8, 1), split().labels)
    assert reshaped.fingerprint != split().fingerprint


@pytest.mark.parametrize("label", [-1, 3])
def test_label_out_of_range(label, one_line):
    wrong = split()
    wrong.labels[4] = label
    source = dataset.Source(("a", "b", "c"), 255.0, {"train": split(), "test": wrong})
    with pytest.raises(errors.RunError) as raised:
        source.check("x")
    one_line(raised, f"x: label {label} of example 4 of test", "0 to 2")


def test_splits_of_different_sizes(one_line):
    source = dataset.Source(("a", "b", "c"), 255.0, {"train": split(), "test": split(side=5)})
    with pytest.raises(errors.UserError) as raised:
        source.check("x")
    one_line(raised, "x: ", "[4, 4, 1]", "test", "[5, 5, 1]")


@pytest.mark.parametrize(
    "pixels, labels",
    [
        (np.zeros((2, 3, 3, 1), np.float32), np.zeros(2, np.int32)),
        (np.zeros((2, 3, 3), np.uint8), np.zeros(2, np.int32)),
        (np.zeros((0, 3, 3, 1), np.uint8), np.zeros(0, np.int32)),
        (np.zeros((2, 3, 3, 1), np.uint8), np.zeros(2, np.int64)),
        (np.zeros((2, 3, 3, 1), np.uint8), np.zeros(3, np.int32)),
    ],
)
def test_split_of_other_arrays(pixels, labels):
    with pytest.raises(ValueError, match="must be"):
        ImageSplit(pixels, labels)


@pytest.mark.parametrize(
    "name, arguments, parts",
    [
        ("digit", {}, ["unknown data set 'digit'", "Did you mean 'digits'?", "folder:DIR"]),
        ("fashion_mnist", {}, ["not prepared", "python -m data.prepare fashion_mnist --data_dir"]),
        ("../digits", {}, ["unknown data set"]),
        ("", {}, ["unknown data set"]),
        ("folder:", {}, ["unknown data set"]),
        ("digits", {"train_size": 1_201}, ["1,201", "1,200 labelled examples of digits"]),
        ("digits", {"train_size": -1}, ["train_size -1"]),
        ("digits", {"train_size": 2.5}, ["train_size 2.5"]),
        ("digits", {"seed": -3}, ["seed -3"]),
        ("digits", {"validation_fraction": 1.0}, ["validation_fraction 1.0", "(0, 1)"]),
        ("folder:/does/not/exist", {}, ["/does/not/exist does not exist"]),
    ],
)
def test_what_is_not_allowed_is_told_in_one_line(name, arguments, parts, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        dataset.load(name, data_dir=str(tmp_path), **arguments)
    assert one_line(raised, *parts).exit_code == 2


def test_data_dir_comes_from_the_environment(tmp_path, monkeypatch, one_line):
    monkeypatch.setenv("ATTENTION_DATA_DIR", str(tmp_path / "here"))
    with pytest.raises(errors.UserError) as raised:
        dataset.load("cifar10")
    one_line(raised, tmp_path / "here")
    assert "--data_dir" not in str(raised.value)


def test_every_built_in_name_is_known_to_load(tmp_path):
    for name in dataset.names():
        if name in dataset.EMBEDDED:
            assert dataset.load(name, train_size=3).name == name
        else:
            with pytest.raises(errors.UserError, match="is not prepared"):
                dataset.load(name, data_dir=str(tmp_path))


def test_nothing_heavy_is_imported():
    code = """
import sys
import data.image.dataset
assert not {"tensorflow_datasets", "PIL", "pooch"} & set(sys.modules)
data.image.dataset.load("digits")
data.image.dataset.load("pointed_digits", train_size=5)
heavy = {"tensorflow", "jax", "sklearn", "grain", "torch", "pandas", "models", "tasks", "training"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
