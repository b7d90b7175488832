"""Sets as TFDS prepares them; its own feature for audio needs TensorFlow even to be read."""

import json
import sys
from typing import ClassVar

import numpy as np
import pytest
import tensorflow_datasets as tfds

import errors
from data import builder, prepare
from data.speech import load
from data.speech.readers import records

AUDIO = {
    "pythonClassName": "tensorflow_datasets.core.features.audio_feature.Audio",
    "audio": {
        "dtype": "int64",
        "encoding": "NONE",
        "fileFormat": "wav",
        "sampleRate": "16000",
        "shape": {"dimensions": ["-1"]},
    },
}
WAVES = ([2**14, -(2**13)], [2**15 - 1], [0, 0, 2**12])
LABELS = ("no", "yes", "no")


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Prepares a set of other features and records; gives its folder."""

    def prepared(features, splits, **facts):
        class Small(builder.Builder):
            SPLITS: ClassVar = {split: len(examples) for split, examples in splits.items()}
            RAW_FILES = ()
            SUPERVISED = facts.get("supervised")
            METADATA = facts.get("metadata", {})
            DESCRIPTION = HOMEPAGE = LICENSE = CITATION = "made up"

            @classmethod
            def features(cls):
                return features

            @classmethod
            def what(cls):
                return "recordings"

            @classmethod
            def decode(cls, contents):
                return splits

        monkeypatch.setattr(prepare, "_builder", lambda name: Small)
        return prepare.prepare("small", raw_dir=tmp_path, data_dir=tmp_path, report=lambda line: None)

    return prepared


def audio_set(prepared, description=AUDIO, splits=("train",), waves=WAVES):
    features = {
        "audio": tfds.features.Tensor(shape=(None, *np.shape(waves[0])[1:]), dtype=np.int64),
        "label": tfds.features.ClassLabel(names=("no", "yes")),
    }
    examples = [
        {"audio": np.array(wave, np.int64), "label": label} for wave, label in zip(waves, LABELS, strict=True)
    ]
    folder = prepared(features, dict.fromkeys(splits, examples), supervised=("audio", "label"))
    stored = json.loads((folder / "features.json").read_text())
    stored["featuresDict"]["features"]["audio"] = description
    (folder / "features.json").write_text(json.dumps(stored))
    return folder


def test_audio_of_tfds_is_read_without_tensorflow(prepared):
    found = records.labelled(audio_set(prepared), None)["train"]
    assert [recording.label for recording in found] == ["no", "yes", "no"]
    assert [recording.sound.samples.tolist() for recording in found] == [
        [0.5, -0.25],
        [1 - 2**-15],
        [0, 0, 0.125],
    ]
    assert {recording.sound.rate for recording in found} == {16_000}
    assert found[2].where.endswith("1.0.0, example 2 of train")
    assert "tensorflow" not in sys.modules


def test_what_is_missing_is_held_out(prepared, tmp_path):
    audio_set(prepared, splits=("train", "validation"))
    parts = load.labelled("small", data_dir=str(tmp_path))  # its validation becomes the test
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [2, 1, 3]


def test_channels_are_averaged(prepared):
    shape = {"shape": {"dimensions": ["-1", "2"]}}
    waves = ([[2**14, -(2**14)], [2**13, 2**14]], [[2, 2]], [[4, 0]])
    folder = audio_set(prepared, {**AUDIO, "audio": {**AUDIO["audio"], **shape}}, waves=waves)
    assert records.labelled(folder, None)["train"][0].sound.samples.tolist() == [0, 0.375]


def test_frames_are_not_scaled(prepared):
    features = {
        "frames": tfds.features.Tensor(shape=(None, 2), dtype=np.int32),
        "who": tfds.features.ClassLabel(names=["n"]),
    }
    examples = [{"frames": np.array([[1, 2], [3, 4]], np.int32), "who": "n"}]
    found = records.labelled(prepared(features, {"train": examples}), "who")["train"]
    assert found[0].sound.tolist() == [[1, 2], [3, 4]]
    assert found[0].sound.dtype == np.float32


def test_files_in_records_are_refused(prepared, one_line):
    folder = audio_set(prepared, {**AUDIO, "audio": {**AUDIO["audio"], "lazyDecode": True}})
    with pytest.raises(errors.UserError) as raised:
        records.labelled(folder, None)
    one_line(raised, "lazy_decode")


def test_no_rate_no_sound_no_label(prepared, one_line):
    folder = audio_set(prepared, {**AUDIO, "audio": {**AUDIO["audio"], "sampleRate": "0"}})
    for target, parts in (
        (None, ["samples per second"]),
        ("labels", ["unknown target 'labels'", "Did you mean 'label'?"]),
    ):
        with pytest.raises(errors.UserError) as raised:
            records.labelled(folder, target)
        one_line(raised, folder, *parts)


@pytest.mark.parametrize(
    "features, record, parts",
    [
        (
            {"x": np.int32, "a": tfds.features.ClassLabel(names=["n"])},
            {"x": 1, "a": "n"},
            ["no data set of rec"],
        ),
        (
            {
                "x": tfds.features.Tensor(shape=(None, 2), dtype=np.float32),
                "a": tfds.features.ClassLabel(names=["n"]),
                "b": tfds.features.ClassLabel(names=["n"]),
            },
            {"x": np.zeros((1, 2), np.float32), "a": "n", "b": "n"},
            ["needs a target", "['a', 'b']"],
        ),
    ],
)
def test_other_sets(prepared, features, record, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        records.labelled(prepared(features, {"train": [record]}), None)
    one_line(raised, *parts)


def texts_set(prepared, splits, **facts):
    features = {"speech": tfds.features.Tensor(shape=(None,), dtype=np.int16), "text": tfds.features.Text()}
    examples = {
        split: [{"speech": np.array([2**14, 0], np.int16), "text": text} for text in texts]
        for split, texts in splits.items()
    }
    return prepared(features, examples, **{"metadata": {"rate": 8_000}, **facts})


def test_recordings_with_texts(prepared, tmp_path, one_line):
    splits = {"train": ["one TWO"], "train_more": [" three\nfour ", "five"], "dev": ["six", "seven"]}
    folder = texts_set(prepared, splits)

    def texts(splits, **arguments):
        parts = load.transcribed("small", data_dir=str(tmp_path), splits=splits, **arguments)
        return [[recording.text for recording in part] for part in vars(parts).values()]

    assert texts("train,dev[:1],dev[1:]", lower=True) == [["one two"], ["six"], ["seven"]]
    train, validation, test = texts("train+train_more,dev", validation_fraction=0.4)
    assert len(validation) == 1
    assert sorted(train + validation) == ["five", "one TWO", "three four"]
    assert test == ["six", "seven"]
    recording = records.transcribed(folder, "train,dev")["test"][1]
    assert (recording.sound.samples.tolist(), recording.sound.rate) == ([0.5, 0], 8_000)
    assert recording.where.endswith("1.0.0, example 1 of dev")
    for given, part in (
        (None, "small: 1 recording to train on; to hold one out, 2 are needed"),
        ("train", "TRAIN,TEST or TRAIN,VALIDATION,TEST"),
        ("train,test", "'train,test' of"),
    ):
        with pytest.raises(errors.UserError) as raised:
            texts(given)
        one_line(raised, part)


def test_the_usual_splits_of_librispeech(prepared, tmp_path, monkeypatch):
    splits = {"train_clean100": ["one"], "dev_clean": ["two"], "dev_other": ["three"], "test_clean": ["four"]}
    folder = texts_set(prepared, splits)
    folder.parent.rename(tmp_path / "librispeech")
    parts = load.transcribed("librispeech", data_dir=str(tmp_path))
    assert [[each.text for each in part] for part in vars(parts).values()] == [["one"], ["two"], ["four"]]


def test_no_text(prepared, one_line):
    with pytest.raises(errors.UserError) as raised:
        records.transcribed(audio_set(prepared), "train,train")
    one_line(raised, "needs one feature of text", "none")
