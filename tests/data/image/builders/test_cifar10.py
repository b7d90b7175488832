import hashlib
import io
import tarfile

import numpy as np
import pytest

import errors
from data import raw_files
from data.image.builders import cifar10
from data.image.builders.cifar10 import Cifar10


@pytest.fixture
def small(tmp_path, monkeypatch):
    """CIFAR-10's layout with two records to a file; a function that writes the files."""
    monkeypatch.setattr(cifar10, "_FILE_RECORDS", 2)
    monkeypatch.setattr(Cifar10, "SPLITS", {"train": 10, "test": 2})
    records = np.zeros((6, 2, 3073), np.uint8)
    records[:, :, 0] = np.arange(12).reshape(6, 2) % 10
    records[0, 1, 1:] = np.repeat([10, 20, 30], 1024)  # red, green, blue plane
    records[0, 1, 1 + 1024 + 2 * 32 + 5] = 99  # green, row 2, column 5
    names = [file.name for file in Cifar10.RAW_FILES]
    contents = {name: part.tobytes() for name, part in zip(names, records, strict=True)}
    monkeypatch.setattr(
        Cifar10,
        "RAW_FILES",
        tuple(
            raw_files.RawFile(name, len(content), hashlib.sha256(content).hexdigest())
            for name, content in contents.items()
        ),
    )

    def write(**changed):
        for name, content in contents.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(changed.get(path.stem, content))
        return tmp_path

    return write


def test_planes_become_channels(small):
    splits = Cifar10.read(small())
    pixels, labels = splits["train"]
    assert pixels.shape == (10, 32, 32, 3)
    assert labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert splits["test"][1].tolist() == [0, 1]
    assert pixels[1, 0, 0].tolist() == [10, 20, 30]
    assert pixels[1, 2, 5].tolist() == [10, 99, 30]
    assert pixels[1, 5, 2].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    "content, parts",
    [
        (bytes(2 * 3073 - 1), ["data_batch_3.bin: truncated", "6,145 bytes", "3,073"]),
        (bytes(3 * 3073), ["data_batch_3.bin: 3 records, expected 2"]),
        (b"\x0a" + bytes(2 * 3073 - 1), ["label 10 of example 4", "0 to 9"]),
        (bytes(2 * 3073), ["data_batch_3.bin", "SHA-256"]),
    ],
)
def test_damage(small, content, parts, one_line):
    with pytest.raises(errors.RunError) as raised:
        Cifar10.read(small(data_batch_3=content))
    one_line(raised, *parts)


def test_the_archive_as_downloaded(small, tmp_path):
    folder = small()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(folder / "cifar-10-batches-bin", "cifar-10-batches-bin")
    downloaded = tmp_path / "downloaded"
    downloaded.mkdir()
    (downloaded / "cifar-10-binary.tar.gz").write_bytes(buffer.getvalue())
    for split, (pixels, labels) in Cifar10.read(downloaded).items():
        assert np.array_equal(pixels, Cifar10.read(folder)[split][0])
        assert np.array_equal(labels, Cifar10.read(folder)[split][1])


def test_the_published_files(real_data):
    published = Cifar10.read(real_data("cifar10"))
    (images, labels), (_, others) = published["train"], published["test"]
    assert np.bincount(labels).tolist() == [5_000] * 10
    assert np.bincount(others).tolist() == [1_000] * 10
    # The means that everyone uses: 0.4914, 0.4822, 0.4465 of the 50,000.
    sums = images.sum(axis=(0, 1, 2), dtype=np.int64)
    np.testing.assert_allclose(sums / 50_000 / 1024 / 255, [0.4914, 0.4822, 0.4465], atol=5e-5)
    assert [Cifar10.CLASSES[label] for label in labels[:3]] == ["frog", "truck", "truck"]
