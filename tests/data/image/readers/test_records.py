import json

import numpy as np
import pytest
import tensorflow_datasets as tfds

import errors
from data.image import load
from data.readers import prepared
from tests.data.prepared import write

NAMES = ("left", "right", "up")


@pytest.fixture
def arrows(png):
    """Features and examples of an ordinary TFDS image data set: PNG images and class labels."""
    features = {
        "id": tfds.features.Text(),
        "image": tfds.features.Image(shape=(4, 6, 3), encoding_format="png"),
        "label": tfds.features.ClassLabel(names=NAMES),
    }
    random = np.random.default_rng(0)

    def examples(size, shape=(4, 6, 3)):
        pixels = random.integers(0, 256, (size, *shape)).astype(np.uint8)
        rows = [{"id": str(i), "image": png(image), "label": i % 3} for i, image in enumerate(pixels)]
        return pixels, rows

    return features, examples


def rows_of(split):
    """Content of a split whatever its order."""
    return sorted(zip([image.tobytes() for image in split.images], split.labels, strict=True))


def rows_made(pixels):
    return sorted((image.tobytes(), i % 3) for i, image in enumerate(pixels))


def test_any_tfds_image_data_set_by_name(tmp_path, arrows):
    features, examples = arrows
    (train, train_rows), (test, test_rows) = examples(40), examples(9)
    write(tmp_path, "arrows", {"train": train_rows, "test": test_rows}, features=features)
    data = load.labelled("arrows", data_dir=str(tmp_path), split_seed=1)
    assert data.label_names == NAMES
    assert data.scale == 255.0
    assert data.train.images.shape == (36, 4, 6, 3)
    assert rows_of(data.test) == rows_made(test)
    assert sorted(rows_of(data.train) + rows_of(data.validation)) == rows_made(train)
    assert len(load.labelled("arrows:1.0.0", data_dir=str(tmp_path), train_size=6).train) == 5
    assert prepared.names(tmp_path) == ["arrows"]


def test_a_validation_split_of_its_own_is_kept(tmp_path, arrows):
    features, examples = arrows
    validation, rows = examples(5)
    splits = {"train": examples(9)[1], "validation": rows, "test": examples(3)[1]}
    write(tmp_path, "arrows", splits, features=features)
    data = load.labelled("arrows", data_dir=str(tmp_path), train_size=3)
    assert (len(data.train), len(data.test)) == (3, 3)
    assert rows_of(data.validation) == rows_made(validation)


def test_without_a_test_split(tmp_path, arrows):
    features, examples = arrows
    validation, rows = examples(5)
    write(tmp_path, "two", {"train": examples(20)[1], "validation": rows}, features=features)
    data = load.labelled("two", data_dir=str(tmp_path))
    assert rows_of(data.test) == rows_made(validation)
    assert (len(data.train), len(data.validation)) == (18, 2)

    everything, rows = examples(50)
    write(tmp_path, "one", {"train": rows}, features=features)
    first, second = (load.labelled("one", data_dir=str(tmp_path), split_seed=seed) for seed in (0, 1))
    assert (len(first.train), len(first.validation), len(first.test)) == (36, 4, 10)
    assert first.test.fingerprint == second.test.fingerprint
    parts = rows_of(first.train) + rows_of(first.validation) + rows_of(first.test)
    assert sorted(parts) == rows_made(everything)


def test_versions_and_configs(tmp_path, arrows, one_line):
    features, examples = arrows
    for version, size in (("9.0.0", 9), ("10.0.0", 10)):
        splits = {"train": examples(size)[1], "test": examples(1)[1]}
        write(tmp_path, "arrows", splits, features=features, version=version)
    for name, size in (("arrows", 10), ("arrows:9.0.0", 9), ("arrows:10.0.0", 10)):
        data = load.labelled(name, data_dir=str(tmp_path))
        assert len(data.train) + len(data.validation) == size
    with pytest.raises(errors.UserError):
        load.labelled("arrows:8.0.0", data_dir=str(tmp_path))

    splits = {"train": examples(4)[1], "test": examples(1)[1]}
    write(tmp_path, "signs", splits, features=features, config="small")
    assert len(load.labelled("signs", data_dir=str(tmp_path)).train) == 3
    write(tmp_path, "signs", splits, features=features, config="large")
    assert len(load.labelled("signs/large:1.0.0", data_dir=str(tmp_path)).train) == 3
    assert prepared.names(tmp_path) == ["arrows", "signs/large", "signs/small"]
    with pytest.raises(errors.UserError) as raised:
        load.labelled("signs", data_dir=str(tmp_path))
    one_line(raised, "signs/large, signs/small")
    with pytest.raises(errors.UserError) as raised:
        load.labelled("arows", data_dir=str(tmp_path))
    one_line(raised, "Did you mean 'arrows'?", "signs/large")


@pytest.mark.parametrize(
    "changed, parts",
    [
        ({"label": tfds.features.Scalar(np.int64)}, ["label features are []"]),
        ({"other": tfds.features.ClassLabel(names=NAMES)}, ["['label', 'other']"]),
        ({"image": tfds.features.Tensor(shape=(4, 6), dtype=np.uint8)}, ["image features are []"]),
    ],
)
def test_what_is_no_image_classification(tmp_path, arrows, changed, parts, one_line):
    features, examples = arrows
    rows = [
        row | {"other": 0} | ({"image": np.zeros((4, 6), np.uint8)} if "image" in changed else {})
        for row in examples(2)[1]
    ]
    features = features | changed
    rows = [{key: row[key] for key in features} for row in rows]
    write(tmp_path, "odd", {"train": rows, "test": rows}, features=features)
    with pytest.raises(errors.UserError) as raised:
        load.labelled("odd", data_dir=str(tmp_path))
    one_line(raised, "no image classification data set", *parts)


def test_labels_that_tfds_leaves_open(tmp_path, arrows, one_line):
    features, examples = arrows
    rows = [row | {"label": -1} for row in examples(4)[1]]
    write(tmp_path, "open", {"train": rows, "test": rows}, features=features)
    with pytest.raises(errors.RunError) as raised:
        load.labelled("open", data_dir=str(tmp_path))
    one_line(raised, "label -1 of example 0 of train", "0 to 2")


def test_images_of_different_sizes(tmp_path, arrows, one_line):
    features, examples = arrows
    features["image"] = tfds.features.Image(shape=(None, None, 3), encoding_format="png")
    rows = examples(2)[1] + examples(1, shape=(5, 6, 3))[1]
    write(tmp_path, "mixed", {"train": rows, "test": rows}, features=features)
    with pytest.raises(errors.UserError) as raised:
        load.labelled("mixed", data_dir=str(tmp_path))
    one_line(raised, "one size", "[5, 6, 3]", "[4, 6, 3]")


def test_other_splits_and_formats(tmp_path, arrows, one_line):
    features, examples = arrows
    builder = write(tmp_path, "arrows", {"whole": examples(2)[1]}, features=features)
    with pytest.raises(errors.UserError) as raised:
        load.labelled("arrows", data_dir=str(tmp_path))
    one_line(raised, "no split called train, only whole")

    info = builder.data_path / "dataset_info.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"fileFormat": "tfrecord"}))
    with pytest.raises(errors.UserError) as raised:
        load.labelled("arrows", data_dir=str(tmp_path))
    one_line(raised, "tfrecord", "file_format='array_record'")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[content.index(b"\x89PNG") + 60] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: (path.parent / "dataset_info.json").write_text("{"),
        lambda path: (path.parent / "features.json").write_text("{"),
    ],
)
def test_damage_is_noticed(tmp_path, arrows, damage, one_line):
    features, examples = arrows
    splits = {"train": examples(30)[1], "test": examples(1)[1]}
    folder = write(tmp_path, "arrows", splits, features=features).data_path
    load.labelled("arrows", data_dir=str(tmp_path))
    (records,) = folder.glob("*train*")
    damage(tmp_path / "arrows" / "1.0.0" / records.name)
    with pytest.raises(errors.RunError) as raised:
        load.labelled("arrows", data_dir=str(tmp_path))
    assert one_line(raised, folder, "is damaged", "prepare it again").exit_code == 1
