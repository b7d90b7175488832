import collections

import numpy as np
import pytest

import errors
from data.speech import load
from data.speech.builders.japanese_vowels import JapaneseVowels
from data.speech.frames import FrameEncoder


def test_the_published_utterances(prepared):
    parts = load.labelled("japanese_vowels", data_dir=prepared("japanese_vowels"))
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [243, 27, 370]
    speakers = "123456789"
    assert collections.Counter(recording.label for recording in parts.validation) == dict.fromkeys(
        speakers, 3
    )
    assert collections.Counter(recording.label for recording in parts.test) == dict(
        zip(speakers, (31, 35, 88, 44, 29, 24, 40, 50, 29), strict=True)
    )
    everything = [*parts.train, *parts.validation, *parts.test]
    lengths = [len(recording.sound) for recording in everything]
    assert (min(lengths), max(lengths)) == (7, 29)
    examples = FrameEncoder.fit(parts.train).encode(parts.train)
    assert examples.vectors["frames"].values.shape[1] == 12
    np.testing.assert_allclose(examples.vectors["frames"].values.std(axis=0, dtype=np.float64), 1, atol=1e-5)


@pytest.mark.parametrize("line", [b"1:2:3", b"1:" * 12 + b"10"])
def test_another_width_or_speaker(line, one_line):
    contents = {"JapaneseVowels_TRAIN.ts": line, "JapaneseVowels_TEST.ts": line}
    with pytest.raises(errors.RunError) as raised:
        JapaneseVowels.decode(contents)
    one_line(raised, "JapaneseVowels_TRAIN.ts: utterance 0", "expected 12")
