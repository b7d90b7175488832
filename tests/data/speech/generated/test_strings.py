"""Strings whose recordings tell, sample by sample, where they are from."""

import numpy as np
import pytest

from data.readers import prepared
from data.speech import load
from data.speech.builders import fsdd
from data.speech.generated import strings, tones
from data.streams import Stream
from errors import UserError

LEVEL = 600  # far above the noise, which is within 98 of 2**15


def code(*numbers):
    """Samples that say these numbers, one each."""
    return LEVEL * (np.array(numbers, np.int16) + 1)


def runs(wave, silence):
    """The samples between silences, and the lengths of these."""
    loud = np.abs(wave.samples) > 0.01
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud, [0]])))
    inner = np.flatnonzero(np.diff(edges)[1::2] < silence)  # a sample of a tone may be near 0
    edges = np.delete(edges, np.concatenate([2 * inner + 1, 2 * inner + 2]))
    parts = [wave.samples[start:end] for start, end in edges.reshape(-1, 2)]
    return parts, np.diff(np.concatenate([[0], edges, [len(loud)]]))[::2]


def decoded(wave):
    """The numbers that each recording in a wave says."""
    return [np.round(part * 2**15 / LEVEL).astype(int) - 1 for part in runs(wave, 1)[0]]


def test_a_string_is_what_one_speaker_says_with_pauses():
    clips = {
        speaker: {word: [code(s, w, n) / np.float32(2**15) for n in range(4)] for w, word in enumerate("xyz")}
        for s, speaker in enumerate("ab")
    }
    lengths, speakers, pauses, recordings = [], [], [], []
    for index in range(60):
        found = strings.joined(clips, 1000, (2, 4), Stream(0, "test", index), group="g", where="here")
        said = decoded(found.sound)
        assert " ".join("xyz"[word] for _, word, _ in said) == found.text
        assert len({speaker for speaker, _, _ in said}) == 1
        assert (found.group, found.where, found.sound.rate) == ("g", "here", 1000)
        lengths.append(len(said))
        speakers.append(said[0][0])
        recordings += [recording for _, _, recording in said]
        pauses += runs(found.sound, 1)[1].tolist()
    assert (set(lengths), set(speakers), set(recordings)) == ({2, 3, 4}, {0, 1}, {0, 1, 2, 3})
    assert 20 <= min(pauses) < 40
    assert 180 < max(pauses) <= 200


@pytest.fixture
def coded_digits(monkeypatch):
    """Free Spoken Digits whose samples say index, digit and speaker."""

    def records(builder, split):
        for index in range(5) if split == "test" else range(5, 50):
            for digit in range(10):
                for speaker in range(len(fsdd.SPEAKERS)):
                    audio = code(index, digit, speaker)
                    yield {"audio": audio, "digit": digit, "speaker": speaker, "index": index}

    monkeypatch.setattr(prepared, "folder", lambda *args: None)
    monkeypatch.setattr(prepared, "open_folder", lambda directory: None)
    monkeypatch.setattr(prepared, "records", records)


@pytest.mark.parametrize("speaker_out", [None, "theo"])
def test_what_is_tested_was_never_heard(coded_digits, speaker_out):
    parts = load.transcribed("fsdd_strings", num_strings=150, speaker_out=speaker_out)
    assert [len(part) for part in vars(parts).values()] == [150, 150, 300]
    indices, speakers = {}, {}
    for name, part in vars(parts).items():
        said = [decoded(string.sound) for string in part]
        for of_it, string in zip(said, part, strict=True):
            assert " ".join(strings.DIGITS[digit] for _, digit, _ in of_it) == string.text
            assert len(of_it) in (range(6, 9) if string.group == "long" else range(2, 6))
        indices[name] = {index for of_it in said for index, _, _ in of_it}
        speakers[name] = {fsdd.SPEAKERS[speaker] for of_it in said for _, _, speaker in of_it}
    assert [string.group for string in parts.test] == 150 * [""] + 150 * ["long"]
    assert indices["test"] == set(range(5))
    assert len(indices["validation"]) == 5  # a tenth of 45, rounded
    assert indices["train"] == set(range(5, 50)) - indices["validation"]
    heard = set(fsdd.SPEAKERS) - {speaker_out}
    assert speakers["train"] == speakers["validation"] == heard
    assert speakers["test"] == ({"theo"} if speaker_out else heard)


def test_the_real_digits(prepared):
    found = load.transcribed("fsdd_strings", num_strings=20, data_dir=prepared("fsdd"))
    for string in [*found.train, *found.test]:
        words = len(string.text.split())
        assert 0.15 < string.sound.seconds / words < 1.5
        assert 0.02 < np.abs(string.sound.samples).max() <= 1.01  # some speakers are far from it


def test_tones_are_heard_in_their_order():
    for string in load.transcribed("tone_strings", num_strings=10).test:
        pitches = [
            tones.RATE * np.abs(np.fft.rfft(part, 8000)).argmax() / 8000
            for part in runs(string.sound, 100)[0]
        ]
        nearest = [np.abs(np.log(tones.PITCHES / pitch)).argmin() for pitch in pitches]
        assert " ".join(strings.TONES[number] for number in nearest) == string.text


def test_the_seed_draws_training_strings_alone():
    first, second = (load.transcribed("tone_strings", num_strings=6, split_seed=seed) for seed in (0, 1))
    for name, same in (("train", False), ("validation", True), ("test", True)):
        pairs = zip(getattr(first, name), getattr(second, name), strict=True)
        assert [a.sound.samples.tobytes() == b.sound.samples.tobytes() for a, b in pairs] == [same] * (
            12 if name == "test" else 6
        )


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("tone_strings", {"speaker_out": "theo"}, "speaker_out 'theo' is for fsdd_strings alone"),
        ("tone_strings", {"splits": "a,b"}, "splits 'a,b' is for data sets of TFDS alone"),
        ("tone_strings", {"num_strings": -1}, "num_strings -1 is not allowed: a whole number >= 1"),
        ("folder:x", {"num_strings": 5}, "num_strings 5 is for tone_strings and fsdd_strings alone"),
        ("fsdd_strings", {"speaker_out": "teo"}, "unknown speaker_out 'teo'. Did you mean 'theo'?"),
        ("fsdd_strings", {}, "data set 'fsdd' is not prepared"),
        ("no_such", {}, "unknown data set 'no_such'"),
    ],
)
def test_arguments_that_are_refused(tmp_path, name, arguments, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        load.transcribed(name, data_dir=str(tmp_path), **arguments)
