import dataclasses
import json

import numpy as np
import pytest

import errors
from data.speech.frames import FrameEncoder
from data.speech.mel import LogMel, with_deltas
from data.speech.types import Recording, Wave


def frames(*rows, label="a", **more):
    return Recording(np.array(rows, np.float32), label, **more)


TRAIN = [frames([0, 7], [2, 7], label="b"), frames([4, 7], label="a")]  # means 2 and 7, deviation sqrt(8/3)


def waves(rate, label="a", seconds=0.3, seed=0):
    samples = np.random.default_rng(seed).standard_normal(int(rate * seconds))
    return Recording(Wave(samples.astype(np.float32), rate), label)


def test_frames_are_standardised_by_train_alone():
    encoder = FrameEncoder.fit(TRAIN)
    assert encoder.mean == (2.0, 7.0)
    assert encoder.std == (pytest.approx((8 / 3) ** 0.5), 1.0)  # a constant channel is left at 0
    assert encoder.label_names == ("a", "b")
    assert encoder.width == 2
    found = encoder.encode([frames([2, 7], [10, 8], [2, 6], label="b"), frames([0, 7])])
    assert found.vectors["frames"].lengths.tolist() == [3, 1]
    x = 8 / (8 / 3) ** 0.5
    np.testing.assert_allclose(
        found.vectors["frames"].values, [[0, 0], [x, 1], [0, -1], [-x / 4, 0]], atol=1e-6
    )
    assert found.vectors["frames"].values.dtype == np.float32
    assert found.fields["label"].tolist() == [1, 0]
    assert found.fields["label"].dtype == np.int32


def test_frames_are_standardised_by_the_recording_itself_or_not_at_all():
    new = [frames([1, 5], [3, 5]), frames([9, 9])]
    values = {
        how: FrameEncoder.fit(TRAIN, normalize=how).encode(new).vectors["frames"].values.tolist()
        for how in ("recording", "none")
    }
    assert values == {"recording": [[-1, 0], [1, 0], [0, 0]], "none": [[1, 5], [3, 5], [9, 9]]}


def test_large_means_lose_no_precision():
    train = [frames(*np.tile([[1e6 + 1], [1e6 - 1]], (5_000, 1)))]
    encoder = FrameEncoder.fit(train)
    assert (encoder.mean, encoder.std) == ((1e6,), (1.0,))


def test_waves_become_log_mel_frames_at_the_lowest_rate():
    train = [waves(8_000), waves(16_000, "b")]
    encoder = FrameEncoder.fit(train, num_mels=12, deltas=1, normalize="none")
    assert (encoder.rate, encoder.channels, encoder.width) == (8_000, 12, 24)
    found = encoder.encode(train).vectors["frames"]
    assert found.lengths.tolist() == [28, 28]  # 1 + (2400 - 200) // 80
    np.testing.assert_array_equal(found[0], with_deltas(LogMel(8_000, 12)(train[0].sound.samples), 1))
    assert FrameEncoder.fit(train, num_mels=12, rate=16_000).rate == 16_000


def test_a_recording_is_encoded_alone_as_among_others():
    train = [waves(8_000), waves(8_000, "b", 0.02, 1), waves(8_000, "b", 0.5, 2)]
    encoder = FrameEncoder.fit(train)
    together = encoder.encode(train).vectors["frames"]
    for number, recording in enumerate(train):
        np.testing.assert_array_equal(encoder.encode([recording]).vectors["frames"].values, together[number])
    assert together.lengths.tolist() == [28, 1, 48]
    np.testing.assert_allclose(together.values.mean(axis=0, dtype=np.float64), 0, atol=1e-6)
    np.testing.assert_allclose(together.values.std(axis=0, dtype=np.float64), 1, atol=1e-5)


def test_json_holds_all_of_it():
    encoder = FrameEncoder.fit([frames([1, 2], [5, 4], tags=["p", ""])], deltas=2)
    assert FrameEncoder.from_json(json.loads(json.dumps(encoder.to_json()))) == encoder
    assert len(encoder.mean) == encoder.width == 6


def test_tags_stand_beside_frames():
    train = [frames([1, 2], [3, 4], [5, 6], label=None, tags=["n", "", "m"])]
    encoder = FrameEncoder.fit(train)
    assert encoder.tag_names == ("m", "n")
    found = encoder.encode([*train, frames([0, 0], label=None)])
    assert found.vectors["tags"].values.tolist() == [1, -1, 0, -1]
    assert found.vectors["tags"].values.dtype == np.int32
    assert "label" not in found.fields


def test_without_labels_there_are_none():
    encoder = FrameEncoder.fit(TRAIN)
    unknown = [dataclasses.replace(recording, label=None) for recording in TRAIN]
    assert encoder.encode(unknown).fields == {}
    assert len(encoder.encode([frames([1, 2]), Recording(np.zeros((0, 2), np.float32), "a")]).sizes) == 2


@pytest.mark.parametrize(
    "recording, parts",
    [
        (frames([1, 2, 3], where="x.csv:4"), ["x.csv:4", "[1, 3]", "frames of 2"]),
        (frames([1, np.nan], where="y"), ["y", "no numbers"]),
        (frames([1, 2], label="c", where="z"), ["z: ", "unknown label 'c'", "a, b"]),
        (frames([1, 2], label=None, where="u"), ["u has no label"]),
        (frames([1, 2], [1, 2], tags=["t"], where="v"), ["v has 1 tags for 2 frames"]),
        (frames([1, 2], tags=["t"], where="t"), ["t: ", "unknown tag 't'"]),
        (dataclasses.replace(waves(8_000), where="w.wav"), ["w.wav is a wave", "frames of 2"]),
    ],
)
def test_recordings_unlike_those_of_train(recording, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        FrameEncoder.fit(TRAIN).encode([TRAIN[0], recording])
    one_line(raised, *parts)


@pytest.mark.parametrize(
    "train, arguments, parts",
    [
        ([], {}, ["no training recordings"]),
        (TRAIN, {"deltas": 3}, ["deltas 3", "0, 1 or 2"]),
        (TRAIN, {"normalize": "utterance"}, ["unknown normalize 'utterance'", "recording"]),
        ([*TRAIN, frames([1, 2, 3], where="x")], {}, ["x has the shape [1, 3]"]),
        ([waves(8_000), TRAIN[0]], {}, ["is frames", "a wave"]),
        ([TRAIN[0], waves(8_000)], {}, ["is frames", "a wave"]),
        ([waves(8_000)], {"num_mels": 500}, ["num_mels 500"]),
        ([waves(8_000)], {"rate": 50}, ["50 samples"]),
        ([waves(8_000)], {"rate": -8_000}, ["rate -8000"]),
    ],
)
def test_what_is_not_allowed_is_one_line(train, arguments, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        FrameEncoder.fit(train, **arguments)
    one_line(raised, *parts)
