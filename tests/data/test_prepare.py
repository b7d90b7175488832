import contextlib
import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow_datasets as tfds

import errors
from data import catalogue, locations, prepare, raw_files
from data.image import load
from data.image.readers import records
from data.readers import prepared


@pytest.fixture
def run(tiny, tmp_path, monkeypatch, capsys):
    """Runs the command line on the tiny data set; gives exit code and what it printed."""
    known = prepare._builder
    monkeypatch.setattr(prepare, "_builder", lambda name: tiny.builder if name == "tiny" else known(name))

    def run(*arguments):
        arguments = arguments or ("tiny", "--from", tiny.folder)
        code = prepare.main([*map(str, arguments), "--data_dir", str(tmp_path / "data")])
        return code, capsys.readouterr()

    return run


def state_of(root):
    """All files below a folder, but the locks, with their content."""
    return {
        path.relative_to(root): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def test_prepared_once_and_then_left_alone(run, tiny, tmp_path):
    code, printed = run()
    assert code == 0
    assert printed.err == ""
    assert "12 train, 6 test images of 5x4x1" in printed.out.splitlines()[-1]
    before = state_of(tmp_path / "data")
    assert all(path.parts[:2] == ("tiny", "1.0.0") for path in before)

    code, printed = run()
    assert code == 0
    assert printed.out.startswith("tiny is already prepared in ")
    assert state_of(tmp_path / "data") == before

    source = records.labelled(tmp_path / "data" / "tiny" / "1.0.0")
    assert source.label_names == ("a", "b", "c")
    for split, (pixels, labels) in tiny.arrays.items():  # in published order
        assert np.array_equal(source.splits[split].images[..., 0], pixels)
        assert np.array_equal(source.splits[split].labels, labels)
    data = load.labelled("tiny", data_dir=str(tmp_path / "data"))
    assert (len(data.train), len(data.validation), len(data.test)) == (11, 1, 6)


def test_split_expressions(run, tiny, tmp_path):
    run()
    labels = [
        row["label"]
        for row in tfds.data_source("tiny:1.0.0", data_dir=tmp_path / "data", split="train[25%:50%]")
    ]
    assert labels == tiny.arrays["train"][1][3:6].tolist()


LABELS = np.arange(12) % 3


@pytest.mark.parametrize(
    "damage, code, parts",
    [
        (
            lambda tiny: tiny.write("train-images", np.zeros((12, 5, 4)), cut=slice(-1)),
            1,
            ["train-images: truncated"],
        ),
        (
            lambda tiny: (tiny.folder / "train-images").write_bytes(b"<html>"),
            1,
            ["train-images: not an idx file"],
        ),
        (lambda tiny: tiny.write("train-images", np.zeros((11, 5, 4))), 1, ["11 images, expected 12"]),
        (lambda tiny: tiny.write("train-labels", LABELS[:7]), 1, ["7 labels, expected 12"]),
        (lambda tiny: tiny.write("train-images", np.zeros((12, 4, 5))), 1, ["[4, 5, 1]", "[5, 4, 1]"]),
        (
            lambda tiny: tiny.write("train-labels", LABELS + (LABELS == 2)),
            1,
            ["label 3 of example 2", "0 to 2"],
        ),
        (lambda tiny: tiny.write("train-labels", LABELS[::-1]), 1, ["train-labels", "SHA-256"]),
        (lambda tiny: (tiny.folder / "test-labels").unlink(), 2, ["lacks 1 raw files: test-labels"]),
    ],
)
def test_bad_raw_files(run, tiny, tmp_path, damage, code, parts):
    damage(tiny)
    found, printed = run()
    assert found == code
    assert printed.err.count("\n") == 1
    assert all(part in printed.err for part in parts), printed.err
    assert state_of(tmp_path / "data") == {}


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["fashion_mnst"], ["'fashion_mnst'", "Did you mean 'fashion_mnist'?", "citeseer, cora, digits"]),
        (["pointed_digits"], ["pointed_digits needs no preparation"]),
        (["folder:x"], ["folder:x needs no preparation"]),
        (["cifar10", "--from", "/does/not/exist"], ["/does/not/exist is not a folder"]),
    ],
)
def test_bad_arguments(run, arguments, parts):
    code, printed = run(*arguments)
    assert code == 2
    assert printed.err.count("\n") == 1
    assert all(part in printed.err for part in parts), printed.err


def test_data_dir_that_cannot_be(tmp_path, capsys):
    (tmp_path / "file").touch()
    code = prepare.main(["digits", "--data_dir", str(tmp_path / "file" / "data")])
    error = capsys.readouterr().err
    assert code == 1
    assert error.count("\n") == 1
    assert str(tmp_path / "file") in error


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("write() failed: No space left on device; writing\n /x"),  # array_record
    ],
)
def test_full_disk(run, tiny, tmp_path, monkeypatch, error):
    def generate(self, examples):
        yield 0, {"image": examples[0][0], "label": 0}
        raise error

    monkeypatch.setattr(tiny.builder, "_generate_examples", generate)
    code, printed = run()
    assert code == 1
    assert printed.err.count("\n") == 1
    assert "no space left on the disk of" in printed.err
    assert state_of(tmp_path / "data") == {}
    monkeypatch.undo()


def test_a_write_that_fails_for_real(tmp_path):
    """A limit on the size of files stands in for the full disk, which needs no rights to make."""
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from data import prepare
sys.exit(prepare.main(["digits", "--data_dir", {str(tmp_path)!r}]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1, found.stderr
    assert "no data set was changed" in found.stderr
    assert state_of(tmp_path) == {}


def test_what_reads_back_differently_is_not_put_in_place(run, tiny, tmp_path, monkeypatch):
    def generate(self, examples):
        for i, (image, label) in enumerate(zip(*examples, strict=True)):
            yield i, {"image": image, "label": (label + 1) % 3}

    monkeypatch.setattr(tiny.builder, "_generate_examples", generate)
    code, printed = run()
    assert code == 1
    assert "reads back differently" in printed.err
    assert state_of(tmp_path / "data") == {}


def test_download_when_no_folder_is_given(run, tiny, tmp_path, monkeypatch):
    asked = []

    def download(downloads, folder):
        asked.append((downloads, folder))
        folder.parent.mkdir(parents=True)
        tiny.folder.rename(folder)

    monkeypatch.setattr(raw_files, "download", download)
    monkeypatch.setattr(tiny.builder, "DOWNLOADS", (raw_files.Download("https://e.org/x", ""),))
    code, printed = run("tiny")
    assert code == 0, printed.err
    assert asked == [(tiny.builder.DOWNLOADS, tmp_path / "data" / "downloads" / "tiny")]
    assert (tmp_path / "data" / "tiny" / "1.0.0" / "features.json").is_file()


def command(root):
    return [sys.executable, "-m", "data.prepare", "digits", "--data_dir", str(root)]


def test_two_at_once_take_turns(tmp_path):
    lock = locations.lock(tmp_path, "digits")
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = [subprocess.Popen(command(tmp_path), stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for process in waiting:
            assert "another process is preparing it" in process.stdout.readline()
        assert not (tmp_path / "digits").exists()
    said = [process.communicate(timeout=60)[0] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0]
    assert sum("is already prepared" in lines for lines in said) == 1
    assert len(load.labelled("digits:1.0.0", data_dir=str(tmp_path)).train) == 1_200


def test_a_kill_leaves_nothing_half_done(tmp_path):
    # The child stops, for the parent to kill it, once the first split is half written.
    code = f"""
import time
from data import prepare
from data.image.builders import digits
def records(examples):
    for i, (image, label) in enumerate(zip(*examples)):
        if i == 600:
            print("half", file=open({str(tmp_path / "half")!r}, "w"))
            time.sleep(60)
        yield {{"image": image, "label": int(label)}}
digits.Digits.records = staticmethod(records)
prepare.main(["digits", "--data_dir", {str(tmp_path / "data")!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "half").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    root = tmp_path / "data"
    assert locations.incomplete(root, "digits").is_dir()
    assert prepared.find("digits", root) is None
    assert prepared.names(root) == []

    subprocess.run(command(root), check=True, stdout=subprocess.DEVNULL)
    assert len(load.labelled("digits:1.0.0", data_dir=str(root)).train) == 1_200
    assert not locations.incomplete(root, "digits").exists()


def test_digits_as_prepared_are_digits_as_embedded(tmp_path):
    prepare.prepare("digits", data_dir=str(tmp_path), report=lambda line: None)
    stored = load.labelled("digits:1.0.0", data_dir=str(tmp_path))
    for split, embedded in zip(stored, load.labelled("digits"), strict=True):
        assert split.fingerprint == embedded.fingerprint


def test_no_tensorflow_anywhere(tmp_path):
    code = f"""
import sys
import tensorflow_datasets as tfds
from data import prepare
from data.image import batches, load
root = {str(tmp_path)!r}
assert prepare.main(["digits", "--data_dir", root]) == 0
source = tfds.data_source("digits:1.0.0", data_dir=root, split="train[:10%]")
assert len(source) == 120 and source[0]["image"].shape == (8, 8, 1)
data = load.labelled("digits:1.0.0", data_dir=root)
next(batches.batches(data.train, batch_size=8, seed=0))
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_every_name_has_its_builder():
    for name in catalogue.preparable():
        builder = prepare._builder(name)
        assert builder.name == name
        assert {"train", "test"} & builder.SPLITS.keys()
        assert builder.what()
        assert builder.CITATION.startswith("@")
        assert builder.HOMEPAGE.startswith("http")


def test_cached_downloads_are_inside_the_data_folder():
    root = locations.data_dir("~/x")
    assert root == pathlib.Path.home() / "x"
    assert root in locations.downloads(root, "a").parents


def test_prepare_raises_for_callers(tmp_path):
    with contextlib.suppress(errors.UserError):
        prepare.prepare("nothing", data_dir=str(tmp_path))
        pytest.fail("no error")


@pytest.mark.parametrize("arguments", [[], ["digits", "--form=x"], ["digits", "cifar10"]])
def test_wrong_arguments_are_one_line(arguments, capsys):
    assert prepare.main(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
