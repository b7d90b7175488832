"""A tiny data set with raw files, and the real ones where they are at hand."""

import functools
import hashlib
import io
import os
import pathlib
import struct
import subprocess
import tempfile
from typing import ClassVar

import numpy as np
import pytest

PROJECT = pathlib.Path(__file__).parents[2]


def idx_bytes(array):
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


class TinyDataset:
    """12 and 6 images of 5 x 4 in three classes.

    Attributes:
        folder: where its raw files are, four of idx.
        arrays: images and labels by split.
        builder: the TFDS builder that reads them.
    """

    def __init__(self, folder):
        from data import raw_files
        from data.image.builders import base
        from data.image.readers import idx

        random = np.random.default_rng(0)
        self.folder = folder
        self.arrays = {
            split: (random.integers(0, 256, (size, 5, 4)), np.arange(size) % 3)
            for split, size in (("train", 12), ("test", 6))
        }
        files = []
        for split, arrays in self.arrays.items():
            for kind, array in zip(("images", "labels"), arrays, strict=True):
                content = self.write(f"{split}-{kind}", array)
                digest = hashlib.sha256(content).hexdigest()
                files.append(raw_files.RawFile(f"{split}-{kind}", len(content), digest))

        class Tiny(base.ImageBuilder):
            CLASSES = ("a", "b", "c")
            SHAPE = (5, 4, 1)
            SPLITS: ClassVar = {"train": 12, "test": 6}
            RAW_FILES = tuple(files)
            DESCRIPTION = HOMEPAGE = LICENSE = CITATION = "made up"

            @classmethod
            def decode(cls, contents):
                return {
                    split: (
                        idx.decode(contents[f"{split}-images"], f"{split}-images", 3)[..., None],
                        idx.decode(contents[f"{split}-labels"], f"{split}-labels", 1),
                    )
                    for split in cls.SPLITS
                }

        self.builder = Tiny

    def write(self, name, array, cut=None):
        """Writes a raw file, all of it or the part that the slice `cut` leaves."""
        content = idx_bytes(array)[cut or slice(None)]
        (self.folder / name).write_bytes(content)
        return content


@pytest.fixture
def tiny(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    return TinyDataset(folder)


@pytest.fixture
def png():
    """Encodes an array as PNG, as TFDS stores images."""
    from PIL import Image

    def encode(array):
        buffer = io.BytesIO()
        Image.fromarray(np.squeeze(array)).save(buffer, "png")
        return buffer.getvalue()

    return encode


@pytest.fixture(scope="session")
def real_data():
    """Folder of the real raw files of a data set; the test is skipped where there are none."""

    def folder(name):
        root = pathlib.Path(os.environ.get("ATTENTION_DATA") or PROJECT.parent / "shared" / "data")
        script = root / "unpack.sh"
        if not script.is_file():
            pytest.skip(f"no real data: {script} does not exist; set ATTENTION_DATA")
        cache = pathlib.Path(tempfile.gettempdir()) / f"attention-test-data-{os.getuid()}"
        cache.mkdir(exist_ok=True)
        if not (cache / name).is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as part:
                subprocess.run(["sh", script, part, name], check=True)
                try:
                    pathlib.Path(part, name).rename(cache / name)
                except OSError:  # another test process was quicker
                    assert (cache / name).is_dir()
        return cache / name

    return folder


# The folders of raw files that hold several sets.
RAW = {
    **dict.fromkeys(("ud_en_ewt", "ud_en_lines", "ud_zh_gsd"), "ud"),
    "wnut17": "ner",
    **dict.fromkeys(("mr", "subj", "sst2", "sst5", "trec"), "sentences"),
    "tatoeba_en_zh": "tatoeba",
    **dict.fromkeys(("xquad_en", "xquad_zh"), "reading"),
    "japanese_vowels": "speakers",
    **dict.fromkeys(("cora", "citeseer"), "planetoid"),
    **dict.fromkeys(("mutag", "ptc", "proteins", "nci1"), "graphs"),
    **dict.fromkeys(("esol", "freesolv", "lipophilicity", "bbbp", "bace"), "molecules"),
}


@pytest.fixture(scope="session")
def published(real_data):
    """What the builder of a data set reads from the real raw files, once in a session."""

    @functools.cache
    def read(name):
        from data import catalogue

        return catalogue.builder(name).read(real_data(RAW.get(name, name)))

    return read


@pytest.fixture(scope="session")
def prepared(real_data, tmp_path_factory):
    """Prepares a data set of real data, once in a session, and gives the data folder."""
    root = tmp_path_factory.mktemp("data")

    def data_dir(name):
        from data import prepare

        raw = real_data(RAW.get(name, name))
        prepare.prepare(name, raw_dir=raw, data_dir=root, report=lambda line: None)
        return str(root)

    return data_dir


@pytest.fixture
def one_line():
    """Checks that what was raised is a single line that says all of `parts`; returns the error."""

    def check(raised, *parts):
        message = str(raised.value)
        assert message
        assert "\n" not in message
        for part in parts:
            assert str(part) in message
        return raised.value

    return check
