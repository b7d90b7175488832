"""Tones: a generated task in which only the order of sounds decides.

A recording is a low, a middle and a high tone, one after the other, and the label is their order: "213" is
middle, low, high. All six recordings of the same draw hold the very same tones, so that whoever hears the
frames without their order is right one time in six.

How example i is drawn, all choices uniform and independent:
 1. one of the six orders;
 2. for each tone its pitch, within 5 % of 400, 700 and 1,100 Hz; its length, 50 to 90 ms; its amplitude, 0.2
    to 0.5; and the silence after it, 10 to 40 ms;
 3. noise on every sample, within 0.01 of it.

Example i is a pure function of (seed, split, i). Validation and test are the same for every seed.
"""

import itertools

import numpy as np

from data.speech.types import Recording, Wave
from data.splits import Splits
from data.streams import Stream

RATE = 8_000
LABELS = tuple("".join(order) for order in itertools.permutations("123"))
NUM_EXAMPLES = {"train": 1_200, "validation": 300, "test": 600}
PITCHES = np.array([400.0, 700.0, 1100.0])  # Hz
_SHARED_SEED = 0
_STEPS = 1 << 16  # of what is drawn from a range


def splits(seed: int) -> Splits[list[Recording]]:
    """The three splits, the training examples drawn by `seed`."""
    return Splits(
        *(
            [example(seed if split == "train" else _SHARED_SEED, split, index) for index in range(size)]
            for split, size in NUM_EXAMPLES.items()
        )
    )


def example(seed: int, split: str, index: int) -> Recording:
    """Example `index` of a split."""
    stream = Stream(seed, f"tones {split}", index)
    label = LABELS[int(stream.integers(len(LABELS), 1)[0])]
    drawn = stream.integers(_STEPS, (4, 3)) / _STEPS  # in [0, 1), of each tone
    pitches = PITCHES * (0.95 + 0.1 * drawn[0])
    seconds = 0.05 + 0.04 * drawn[1]
    amplitudes = 0.2 + 0.3 * drawn[2]
    silent = ((0.01 + 0.03 * drawn[3]) * RATE).astype(np.int64)
    parts = []
    for place in (int(word) - 1 for word in label):
        parts += [tone(pitches[place], seconds[place], amplitudes[place]), np.zeros(silent[place])]
    clean = np.concatenate(parts)
    noise = (stream.octets(len(clean)) - 127.5) / 12_750
    return Recording(Wave((clean + noise).astype(np.float32), RATE), label, where=f"tones {split} {index}")


def tone(hertz: float, seconds: float, amplitude: float) -> np.ndarray:
    """A sine, float64 `[floor(seconds * RATE)]`."""
    return amplitude * np.sin(2 * np.pi * hertz / RATE * np.arange(int(seconds * RATE)))
