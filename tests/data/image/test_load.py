import numpy as np
import pytest

import errors
from data import catalogue
from data.image import load
from data.image.types import LabelledImages, PublishedImages


def split(size=6, side=4, classes=3):
    pixels = np.arange(size * side * side).reshape(size, side, side, 1).astype(np.uint8)
    return LabelledImages.of(pixels, (np.arange(size) % classes).astype(np.int32))


def test_digits_are_scikit_learns():
    sklearn = pytest.importorskip("sklearn.datasets").load_digits()
    data = load.labelled("digits")
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
        load.labelled("digits").test.fingerprint
        == "30845c496ef4d896c110c4b24c20ed620905f632a5c816bc4ca251c25e863b63"
    )


def test_subsets_of_a_data_set_with_its_own_validation():
    small, large, everything = (load.labelled("digits", train_size=n, split_seed=1) for n in (20, 50, None))
    assert [len(data.train) for data in (small, large, everything)] == [20, 50, 1_200]
    assert np.array_equal(large.train.images[:20], small.train.images)
    assert np.array_equal(everything.train.images[:50], large.train.images)
    assert np.bincount(large.train.labels).tolist() == [5] * 10
    assert small.validation.fingerprint == everything.validation.fingerprint
    assert small.test.fingerprint == everything.test.fingerprint
    other = load.labelled("digits", train_size=20, split_seed=2)
    assert other.train.fingerprint != small.train.fingerprint
    assert len(load.labelled("digits", train_size=1).train) == 1


def test_fingerprint_is_of_shape_pixels_and_labels():
    shuffled = LabelledImages.of(split().images, split().labels[::-1].copy())
    reshaped = LabelledImages.of(split().images.reshape(6, 2, 8, 1), split().labels)
    assert len({images.fingerprint for images in (split(), shuffled, reshaped, split(5), split())}) == 4


@pytest.mark.parametrize("label", [-1, 3])
def test_label_out_of_range(label, one_line):
    wrong = split()
    wrong.labels[4] = label
    source = PublishedImages(("a", "b", "c"), 255.0, {"train": split(), "test": wrong})
    with pytest.raises(errors.RunError) as raised:
        source.check("x")
    one_line(raised, f"x: label {label} of example 4 of test", "0 to 2")


def test_splits_of_different_sizes(one_line):
    source = PublishedImages(("a", "b", "c"), 255.0, {"train": split(), "test": split(side=5)})
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
    with pytest.raises(ValueError, match="must"):
        LabelledImages.of(pixels, labels)


@pytest.mark.parametrize(
    "name, arguments, parts",
    [
        ("digit", {}, ["unknown data set 'digit'", "Did you mean 'digits'?", "folder:DIR"]),
        ("fashion_mnist", {}, ["not prepared", "python -m data.prepare fashion_mnist --data_dir"]),
        ("../digits", {}, ["unknown data set"]),
        ("", {}, ["unknown data set"]),
        ("folder:", {}, ["unknown data set"]),
        ("digits", {"train_size": 1_201}, ["1,201", "1,200 image(s) of digits"]),
        ("digits", {"train_size": -1}, ["train_size -1"]),
        ("digits", {"train_size": 2.5}, ["train_size 2.5"]),
        ("digits", {"train_size": 0}, ["train_size 0", "or None"]),
        ("digits", {"fold": 0}, ["fold 0", "a test of its own"]),
        ("pointed_digits", {"folds": 3}, ["folds 3", "a test of its own"]),
        ("digits", {"split_seed": -3}, ["seed -3"]),
        ("digits", {"validation_fraction": 1.0}, ["validation_fraction 1.0", "(0, 1)"]),
        ("folder:/does/not/exist", {}, ["/does/not/exist does not exist"]),
    ],
)
def test_what_is_not_allowed_is_told_in_one_line(name, arguments, parts, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.labelled(name, data_dir=str(tmp_path), **arguments)
    assert one_line(raised, *parts).exit_code == 2


def test_data_dir_comes_from_the_environment(tmp_path, monkeypatch, one_line):
    monkeypatch.setenv("ATTENTION_DATA_DIR", str(tmp_path / "here"))
    with pytest.raises(errors.UserError) as raised:
        load.labelled("cifar10")
    one_line(raised, tmp_path / "here")
    assert "--data_dir" not in str(raised.value)


def test_every_built_in_name_is_known_to_load(tmp_path):
    for name in catalogue.names("image"):
        if name == "digits" or name in catalogue.GENERATED["image"]:
            assert len(load.labelled(name, train_size=3).train) == 3
        else:
            with pytest.raises(errors.UserError, match="is not prepared"):
                load.labelled(name, data_dir=str(tmp_path))
