"""Strings of words joined from recordings of single words, as one dictates a number.

How string i is drawn, all choices uniform and independent:
 1. a speaker, who says all of it;
 2. how many words, `LENGTHS`, or `LONG` for those of the test that are reported apart;
 3. each word, and which of the speaker's recordings of it;
 4. the silence before, between and after the words, 20 to 200 ms each;
 5. noise on every sample, within 0.003 of it.

Recordings are divided among training, validation and test, so what is tested was never heard. String i is a
pure function of (seed, split, i) and the recordings of its split; the strings of the test are the same for
every seed.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

import errors
from data import subsets
from data.readers import prepared
from data.speech.builders import fsdd
from data.speech.generated import tones
from data.speech.types import Transcribed, Wave
from data.splits import Splits
from data.streams import Stream

NUM_EXAMPLES = {"train": 8_000, "validation": 400, "test": 600, "long": 300}
LENGTHS = (2, 5)  # words of a string, at least and at most
LONG = (6, 8)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
VOICES = {"bass": 0.95, "alto": 1.0, "soprano": 1.05}  # by what each moves the pitch of all tones
TONES = ("low", "middle", "high")
_SHARED_SEED = 0
_PAUSES = (0.02, 0.2)  # seconds
_NOISE = 0.003
_TONE_CLIPS = {"train": range(40), "validation": range(40, 50), "test": range(50, 60)}

Clips = Mapping[str, Mapping[str, Sequence[np.ndarray]]]  # by speaker and word: samples, float32 [n]


def of_tones(seed: int, num_strings: int) -> Splits[list[Transcribed]]:
    """Strings of low, middle and high tones, as in data/speech/generated/tones.py, which need no file."""
    clips = {
        split: {
            voice: {
                word: [_tone(voice, number, index) for index in indices] for number, word in enumerate(TONES)
            }
            for voice in VOICES
        }
        for split, indices in _TONE_CLIPS.items()
    }
    return _splits(Splits(**clips), tones.RATE, "tone strings", seed, num_strings)


def of_digits(
    seed: int,
    num_strings: int,
    speaker_out: str | None = None,
    data_dir: str | None = None,
    validation_fraction: float = 0.1,
) -> Splits[list[Transcribed]]:
    """Strings of Free Spoken Digits, those of the test from recordings of the official test split.

    Args:
        seed: draws training strings, and chooses the training recordings that are held out for validation.
        num_strings: to train on, and the most to validate and test on.
        speaker_out: a speaker who is in the test alone, and alone in it; None leaves none out.
        data_dir: where fsdd is prepared; see data/locations.py for the default.
        validation_fraction: share of the training recordings held out, the same of each speaker and digit.

    Raises:
        errors.UserError: fsdd is not prepared, or there is no such speaker.
        errors.RunError: its files are damaged.
    """
    if speaker_out is not None and speaker_out not in fsdd.SPEAKERS:
        raise errors.unknown("speaker_out", speaker_out, fsdd.SPEAKERS)
    builder = prepared.open_folder(prepared.folder("fsdd", "speech", data_dir, ()))
    train, test = (list(prepared.records(builder, split)) for split in ("train", "test"))
    indices = sorted({record["index"] for record in train})
    _, chosen = subsets.train_and_validation(
        np.zeros(len(indices), np.int64), len(indices), validation_fraction, seed, "held out recordings"
    )
    held_out = {indices[place] for place in chosen}
    heard = [speaker for speaker in fsdd.SPEAKERS if speaker != speaker_out]
    clips = Splits(
        _by_speaker((record for record in train if record["index"] not in held_out), heard),
        _by_speaker((record for record in train if record["index"] in held_out), heard),
        _by_speaker(test, fsdd.SPEAKERS if speaker_out is None else [speaker_out]),
    )
    return _splits(clips, fsdd.RATE, "digit strings", seed, num_strings)


def joined(
    clips: Clips, rate: int, lengths: tuple[int, int], stream: Stream, *, group: str = "", where: str
) -> Transcribed:
    """One string, drawn as is told above.

    Args:
        clips: what there is to join.
        rate: samples per second.
        lengths: how many words, at least and at most.
        stream: all that is drawn comes from it.
        group: of `Transcribed`.
        where: how messages name it.
    """

    def choice(options: Sequence) -> int:
        return int(stream.integers(len(options), 1)[0])

    def silence() -> np.ndarray:
        shortest, longest = (int(seconds * rate) for seconds in _PAUSES)
        return np.zeros(shortest + choice(range(longest - shortest + 1)), np.float32)

    speakers = sorted(clips)
    of_speaker = clips[speakers[choice(speakers)]]
    words = list(of_speaker)
    said, parts = [], [silence()]
    for _ in range(lengths[0] + choice(range(lengths[1] - lengths[0] + 1))):
        said.append(words[choice(words)])
        recordings = of_speaker[said[-1]]
        parts += [recordings[choice(recordings)], silence()]
    clean = np.concatenate(parts)
    noise = (stream.octets(len(clean)) - np.float32(127.5)) * np.float32(_NOISE / 127.5)
    return Transcribed(Wave(clean + noise, rate), where=where, text=" ".join(said), group=group)


def _splits(
    clips: Splits[Clips], rate: int, purpose: str, seed: int, num_strings: int
) -> Splits[list[Transcribed]]:
    def strings(of: Clips, split: str, lengths: tuple[int, int], group: str = "") -> list[Transcribed]:
        drawn_by = seed if split == "train" else _SHARED_SEED
        size = num_strings if split == "train" else min(NUM_EXAMPLES[split], num_strings)
        return [
            joined(
                of,
                rate,
                lengths,
                Stream(drawn_by, f"{purpose} {split}", index),
                group=group,
                where=f"{purpose} {split} {index}",
            )
            for index in range(size)
        ]

    return Splits(
        strings(clips.train, "train", LENGTHS),
        strings(clips.validation, "validation", LENGTHS),
        strings(clips.test, "test", LENGTHS) + strings(clips.test, "long", LONG, "long"),
    )


def _by_speaker(records: Iterable[Mapping], speakers: Iterable[str]) -> Clips:
    clips: dict[str, dict[str, list[np.ndarray]]] = {
        speaker: {word: [] for word in DIGITS} for speaker in speakers
    }
    for record in records:
        speaker = fsdd.SPEAKERS[record["speaker"]]
        if speaker in clips:
            samples = record["audio"].astype(np.float32) / np.float32(2**15)
            clips[speaker][DIGITS[record["digit"]]].append(samples)
    return clips


def _tone(voice: str, number: int, index: int) -> np.ndarray:
    """Recording `index` of a tone: pitch within 1 % of the voice's, 50 to 90 ms, amplitude 0.2 to 0.5."""
    steps = 1 << 16
    stream = Stream(_SHARED_SEED, f"{voice} tone", number, index)
    pitch, seconds, amplitude = (stream.integers(steps, 3) / steps).tolist()
    hertz = tones.PITCHES[number] * VOICES[voice] * (0.99 + 0.02 * pitch)
    return tones.tone(hertz, 0.05 + 0.04 * seconds, 0.2 + 0.3 * amplitude).astype(np.float32)
