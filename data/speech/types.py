"""Recordings in memory: a wave or frames, with a label, tags or a text."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import signal


class Wave(NamedTuple):
    """A mono signal.

    Attributes:
        samples: float32 [n]; full scale is -1 to 1.
        rate: samples per second.
    """

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate

    def at(self, rate: int) -> "Wave":
        """The same sound with `rate` samples per second, ceil(n * rate / self.rate) of them.

        Polyphase filtering, so nothing above half the lower rate is folded back.
        """
        if rate == self.rate:
            return self
        common = math.gcd(rate, self.rate)
        samples = self.samples
        if len(samples):
            samples = signal.resample_poly(samples, rate // common, self.rate // common)
        return Wave(samples.astype(np.float32), rate)


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """One recording as it is given, to be encoded by `data.speech.frames`.

    Attributes:
        sound: a wave, or frames that are vectors already, float32 `[T, C]`.
        label: what the recording is one of; None where that is not known.
        tags: a label for each of its frames, "" for a frame without one; None where there are none.
        where: how messages name it, such as its file.
    """

    sound: Wave | np.ndarray
    label: str | None = None
    tags: Sequence[str] | None = None
    where: str = "recording"


@dataclasses.dataclass(frozen=True, eq=False)
class Transcribed(Recording):
    """A recording and its text.

    Attributes:
        text: what is said; words with single spaces between them.
        group: recordings of a test that are to be reported apart; "" are the usual ones.
    """

    text: str = ""
    group: str = ""
