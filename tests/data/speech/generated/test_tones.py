import collections

import numpy as np
import pytest

from data.speech import load
from data.speech.generated import tones


def runs(recording):
    """Pitch in Hz of each run of sound, told by counting where the wave rises through zero."""
    samples = recording.sound.samples
    loud = np.convolve(np.abs(samples), np.ones(40) / 40, mode="same") > 0.05
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud, [0]])))
    found = []
    for start, end in edges.reshape(-1, 2):
        part = samples[start + 30 : end - 30]  # what is loud reaches 20 samples into the silence
        rising = np.flatnonzero((part[:-1] < 0) & (part[1:] >= 0))
        found.append(tones.RATE * (len(rising) - 1) / (rising[-1] - rising[0]))
    return found


def test_the_order_of_the_pitches_is_the_label():
    for index in range(40):
        recording = tones.example(3, "train", index)
        order = np.argsort(np.argsort(runs(recording))) + 1
        assert "".join(map(str, order)) == recording.label


def test_every_recording_holds_the_same_three_tones():
    """So without the order there is nothing to tell the labels apart by."""
    for index in range(40):
        pitches = sorted(runs(tones.example(3, "train", index)))
        np.testing.assert_allclose(pitches, [400, 700, 1100], rtol=0.08)


def test_an_example_is_a_function_of_seed_split_and_number():
    def samples(*key):
        return tones.example(*key).sound.samples.tobytes()

    keys = [(0, "train", 0), (1, "train", 0), (0, "test", 0), (0, "train", 1)]
    assert len({samples(*key) for key in keys}) == 4
    assert samples(0, "train", 1) == samples(0, "train", 1)


def test_splits():
    first, second = (load.labelled("tones", split_seed=seed) for seed in (0, 1))
    assert [len(part) for part in (first.train, first.validation, first.test)] == [1_200, 300, 600]
    for part, same in (("train", False), ("validation", True), ("test", True)):
        pairs = zip(getattr(first, part)[:5], getattr(second, part)[:5], strict=True)
        assert all(np.array_equal(a.sound.samples, b.sound.samples) == same for a, b in pairs)
    counts = collections.Counter(recording.label for recording in first.test)
    assert set(counts) == set(tones.LABELS)
    assert max(counts.values()) / 600 < 0.22  # always the same answer is right one time in six
    seconds = [recording.sound.seconds for recording in first.test]
    assert 0.18 < min(seconds) < max(seconds) < 0.39
    assert max(np.abs(recording.sound.samples).max() for recording in first.test) <= 0.511


def test_pinned():
    recording = tones.example(0, "test", 0)
    assert recording.label == "123"
    assert recording.sound.samples[:3] == pytest.approx([-0.00803922, 0.12997562, 0.23963815], abs=1e-6)
