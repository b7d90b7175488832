import hashlib

import numpy as np
import pytest
from PIL import Image

import errors
from data.image import load


def write(path, value=0, size=(6, 4), mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)


def read(folder, **arguments):
    return load.labelled(f"folder:{folder}", **arguments)


def test_divided_by_the_user(tmp_path):
    for i, split in enumerate(("train", "validation", "test")):
        for j, name in enumerate(("cat", "ant")):
            write(tmp_path / split / name / "b.png", value=10 * i + j)
            write(tmp_path / split / name / "a.PNG", value=10 * i + j)
    (tmp_path / "train" / ".hidden").touch()
    (tmp_path / "train" / "cat" / ".DS_Store").touch()
    data = read(tmp_path)
    assert data.label_names == ("ant", "cat")
    assert data.scale == 255.0
    for i, split in enumerate((data.train, data.validation, data.test)):
        assert split.images.shape == (4, 4, 6, 1)  # PIL counts width first
        assert split.images[:, 0, 0, 0].tolist() == [10 * i + 1 - n for n in split.labels]
        assert sorted(split.labels.tolist()) == [0, 0, 1, 1]
    assert data.test.fingerprint == read(tmp_path).test.fingerprint
    assert len(read(tmp_path, train_size=2).train) == 2


def test_validation_is_held_out_where_there_is_none(tmp_path):
    for n in range(10):
        write(tmp_path / "train" / "a" / f"{n}.png", value=n)
        write(tmp_path / "train" / "b" / f"{n}.png", value=10 + n)
    write(tmp_path / "test" / "a" / "0.png", value=99)
    data = read(tmp_path)
    assert (len(data.train), len(data.validation), len(data.test)) == (18, 2, 1)
    held = set(data.train.images[:, 0, 0, 0]) | set(data.validation.images[:, 0, 0, 0])
    assert held == set(range(20))
    assert data.validation.labels.tolist() == [0, 1]


def test_divided_by_file_name(tmp_path):
    expected = set()
    for name in ("a", "b"):
        for n in range(60):
            value = n + 100 * (name == "b")
            write(tmp_path / name / f"{n}.png", value=value)
            if int(hashlib.sha256(f"{name}/{n}.png".encode()).hexdigest()[:8], 16) < 0.2 * 2**32:
                expected.add(value)
    before = read(tmp_path)
    assert set(before.test.images[:, 0, 0, 0].tolist()) == expected
    assert 12 < len(expected) < 40
    assert len(before.train) + len(before.validation) + len(before.test) == 120
    for n in range(60, 80):  # more images do not move those that were there
        write(tmp_path / "a" / f"{n}.png", value=250)
    after = read(tmp_path).test.images[:, 0, 0, 0]
    assert set(after[after < 250].tolist()) == expected


@pytest.mark.parametrize(
    "mode, value, channels, first",
    [
        ("RGB", (1, 2, 3), 3, [1, 2, 3]),
        ("L", 7, 1, [7]),
        ("1", 1, 1, [255]),
        ("P", 0, 3, [0, 0, 0]),
    ],
)
def test_modes(tmp_path, mode, value, channels, first):
    for split in ("train", "test"):
        write(tmp_path / split / "a" / "0.png", value=value, mode=mode)
    data = read(tmp_path)
    assert data.train.images.shape == (1, 4, 6, channels)
    assert data.train.images[0, 0, 0].tolist() == first


def test_one_image_to_train_on(tmp_path):
    write(tmp_path / "train" / "a" / "0.jpg", value=5)
    write(tmp_path / "test" / "a" / "0.jpg", value=6)
    data = read(tmp_path)
    assert np.array_equal(data.train.images, data.validation.images)


def broken(path):
    path.write_bytes(b"no image")


def truncated(path):
    path.write_bytes(path.read_bytes()[:45])


@pytest.mark.parametrize(
    "spoil, parts",
    [
        (lambda d: write(d / "train/b/1.png", size=(6, 5)), ["1.png is 6x5 L", "is 6x4 L"]),
        (lambda d: write(d / "train/b/1.png", 0, mode="RGB"), ["1.png is 6x4 RGB"]),
        (lambda d: write(d / "test/b/1.png", size=(5, 4)), ["test/b/1.png is 5x4"]),
        (lambda d: write(d / "train/b/1.png", 0, mode="RGBA"), ["1.png has mode RGBA", "RGB"]),
        (lambda d: broken(d / "train/b/0.png"), ["train/b/0.png cannot be read"]),
        (lambda d: truncated(d / "train/b/0.png"), ["train/b/0.png cannot be read"]),
        (lambda d: (d / "train/b/notes.txt").touch(), ["notes.txt is no image", ".png"]),
        (lambda d: (d / "train/notes.txt").touch(), ["notes.txt is no folder"]),
        (lambda d: (d / "train/empty").mkdir(), ["train/empty holds no images"]),
        (lambda d: write(d / "test/c/0.png"), ["class 'c'", "a, b"]),
        (lambda d: write(d / "val/a/0.png"), ["also 'val'", "validation"]),
        (lambda d: (d / "test").rename(d / ".test"), ["has train but no test"]),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, spoil, parts, one_line):
    for split in ("train", "test"):
        for name in ("a", "b"):
            write(tmp_path / split / name / "0.png")
    read(tmp_path)
    spoil(tmp_path)
    with pytest.raises(errors.UserError) as raised:
        read(tmp_path)
    one_line(raised, *parts)


def test_too_few_to_divide_by_name(tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        read(tmp_path)
    one_line(raised, "is empty")
    write(tmp_path / "a" / "0.png")
    with pytest.raises(errors.UserError) as raised:
        read(tmp_path)
    one_line(raised, "train and test folders")
