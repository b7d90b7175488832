import pytest

import errors
from data.readers import class_folders


@pytest.fixture
def touch(tmp_path):
    def touch(*files):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        return tmp_path

    return touch


def names(files):
    return {
        split: {label: [path.name for path in members] for label, members in by_class.items()}
        for split, by_class in files.items()
    }


def test_splits_and_classes(touch):
    folder = touch("train/b/2.x", "train/b/1.X", "train/a/3.x", "test/a/4.y", ".hidden", "train/a/.hidden")
    assert names(class_folders.read(folder, (".x", ".y"), "thing")) == {
        "train": {"a": ["3.x"], "b": ["1.X", "2.x"]},
        "test": {"a": ["4.y"]},
    }


def test_a_fifth_by_name():
    """SHA-256 begins with 25c1 for "a/3" and with 600f for "a/6": below and above 0.2 = 0x3333..."""
    kept = [number for number in range(10_000) if class_folders.is_test(f"a/{number}")]
    assert 1_900 < len(kept) < 2_100
    assert [number for number in range(12) if class_folders.is_test(f"a/{number}")] == [2, 3]


def test_parted_by_name(touch):
    files = [f"a/{number}" for number in range(12)]
    folder = touch(*(f"{file}.x" for file in files))
    found = names(class_folders.read(folder, (".x",), "thing"))
    expected = [f"{number}.x" for number in range(12) if class_folders.is_test(f"a/{number}.x")]
    assert found["test"]["a"] == sorted(expected)
    assert len(found["train"]["a"]) + len(expected) == 12


@pytest.mark.parametrize(
    "files, parts",
    [
        ([], ["is empty"]),
        (["a/1.x", "loose.x"], ["loose.x is no folder"]),
        (["a/1.z"], ["1.z is no thing file", ".x .y"]),
        (["train/a/1.x"], ["has train but no test"]),
        (["train/a/1.x", "test/a/1.x", "other/a/1.x"], ["also 'other'", "train, validation, test"]),
        (["train/a/1.x", "test/b/1.x"], ["class 'b'", "none of train's: a"]),
        (["a/1.x"], ["no thing of", "by its name"]),
    ],
)
def test_another_layout_is_one_line(touch, files, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        class_folders.read(touch(*files), (".x", ".y"), "thing")
    one_line(raised, *parts)


def test_nothing_there(tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        class_folders.read(tmp_path / "x", (".x",), "thing")
    one_line(raised, f"thing folder {tmp_path / 'x'} does not exist")
    (tmp_path / "a").mkdir()
    with pytest.raises(errors.UserError) as raised:
        class_folders.read(tmp_path, (".x",), "thing")
    one_line(raised, "holds no things")
