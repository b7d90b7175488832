import collections
import hashlib
import subprocess

import numpy as np
import pytest

import errors
from data.speech import load
from data.speech.builders import fsdd
from data.speech.frames import FrameEncoder


@pytest.fixture
def data_dir(prepared):
    return prepared("fsdd")


def test_the_published_recordings(data_dir):
    parts = load.labelled("fsdd", data_dir=data_dir)
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [2_430, 270, 300]
    for part, each in ((parts.train, 243), (parts.validation, 27), (parts.test, 30)):
        counts = collections.Counter(recording.label for recording in part)
        assert counts == dict.fromkeys("0123456789", each)
    encoder = FrameEncoder.fit(parts.train)
    frames = encoder.encode(parts.test).vectors["frames"]
    samples = np.array([len(recording.sound.samples) for recording in parts.test])
    assert frames.lengths.tolist() == (1 + (samples - 200) // 80).tolist()
    assert encoder.rate == 8_000
    assert 0.8 < frames.values.std() < 1.2


def test_speakers(data_dir):
    parts = load.labelled("fsdd", target="speaker", data_dir=data_dir)
    speakers = {recording.label for recording in parts.train}
    assert speakers == {"george", "jackson", "lucas", "nicolas", "theo", "yweweler"}
    assert collections.Counter(recording.label for recording in parts.validation) == dict.fromkeys(
        speakers, 45
    )


def test_the_list_that_is_hashed(tmp_path):
    contents = {"b.wav": b"1", "a.wav": b"2"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert (
        fsdd.listing(contents)
        == subprocess.run(
            ["sha256sum", "a.wav", "b.wav"], cwd=tmp_path, check=True, capture_output=True
        ).stdout
    )


def test_names_say_digit_speaker_and_split(wav_bytes):
    names = ["7_jackson_4.wav", "7_jackson_5.wav"]
    found = fsdd.Fsdd.decode({name: wav_bytes([-5, 300]) for name in names})
    assert found["test"] == [
        {"audio": pytest.approx([-5, 300]), "digit": "7", "speaker": "jackson", "index": 4}
    ]
    assert [record["index"] for record in found["train"]] == [5]


def test_missing_and_damaged_recordings(wav_bytes, tmp_path, monkeypatch, one_line):
    with pytest.raises(errors.UserError) as raised:
        fsdd.Fsdd.read(tmp_path)
    one_line(raised, tmp_path, "lacks 3,000 of 3,000", "0_george_0.wav")

    names = ("0_theo_3.wav", "0_theo_7.wav")
    monkeypatch.setattr(fsdd, "_NAMES", names)
    monkeypatch.setattr(fsdd.Fsdd, "SPLITS", {"train": 1, "test": 1})
    for name in names:
        (tmp_path / name).write_bytes(wav_bytes([1, 2]))
    with pytest.raises(errors.RunError) as raised:  # read as it should be, but not what was published
        fsdd.Fsdd.read(tmp_path)
    one_line(raised, "recordings", "expected 245,900 bytes")
    for content, parts in ((wav_bytes([1], rate=16_000), ["16,000 samples"]), (b"RIFF", ["no whole wav"])):
        (tmp_path / names[1]).write_bytes(content)
        with pytest.raises(errors.RunError) as raised:
            fsdd.Fsdd.read(tmp_path)
        one_line(raised, names[1], *parts)


def test_the_hash_is_of_the_published_files(real_data):
    folder = real_data("fsdd") / "recordings"
    content = fsdd.listing({path.name: path.read_bytes() for path in folder.glob("*.wav")})
    assert hashlib.sha256(content).hexdigest() == fsdd.Fsdd.RAW_FILES[0].sha256
