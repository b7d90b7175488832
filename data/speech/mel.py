"""Log-mel frames: what a sound is made of, a hundred times a second.

A frame is a window of 25 ms; the next begins 10 ms later. Nothing is padded around the signal, so a second
of it has 98 frames, and frame t depends on samples t * hop to t * hop + window alone. The scale is Slaney's
(linear up to 1 kHz, logarithmic above; triangles of equal area), that of librosa by default.

Davis, Mermelstein, "Comparison of parametric representations for monosyllabic word recognition", 1980;
Slaney, "Auditory Toolbox", 1998.
"""

import dataclasses
import functools

import numpy as np
from scipy import fft, signal

import errors

WINDOW_SECONDS = 0.025
HOP_SECONDS = 0.010
FLOOR = 1e-10  # of the power before the logarithm: about what rounding to 16 bits leaves


@dataclasses.dataclass(frozen=True)
class LogMel:
    """Waves to log-mel frames.

    Attributes:
        rate: samples per second of the waves.
        num_mels: bands M between 0 Hz and half the rate.

    Raises:
        errors.UserError: the rate is too low, or a band so narrow that no frequency falls into it.
    """

    rate: int
    num_mels: int = 40

    def __post_init__(self):
        if self.rate < 100:
            raise errors.UserError(
                f"{self.rate} samples per second are too few for a frame every 10 ms; at least 100 are needed"
            )
        if self.num_mels < 1:
            raise errors.UserError(f"num_mels {self.num_mels} is not allowed; at least 1 is needed")
        empty = np.flatnonzero(~self.bands.any(axis=0))
        if len(empty):
            raise errors.UserError(
                f"num_mels {self.num_mels} is too many at {self.rate} samples per second: band {empty[0]} "
                "holds none of the frequencies of a 25 ms window"
            )

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return round(WINDOW_SECONDS * self.rate)

    @property
    def hop(self) -> int:
        """Samples from a frame to the next."""
        return round(HOP_SECONDS * self.rate)

    @property
    def n_fft(self) -> int:
        """Points of the Fourier transform, the next power of two that holds a frame."""
        return 1 << max(self.window - 1, 0).bit_length()

    def num_frames(self, samples: int) -> int:
        """Frames of a signal of so many samples; at least one."""
        return 1 + max(samples - self.window, 0) // self.hop

    @functools.cached_property
    def bands(self) -> np.ndarray:
        """The weight of each frequency in each band, float32 `[n_fft // 2 + 1, M]`."""
        edges = _hertz(np.linspace(0.0, _mel(self.rate / 2), self.num_mels + 2))
        lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
        frequencies = np.linspace(0.0, self.rate / 2, self.n_fft // 2 + 1)[:, None]
        rising = (frequencies - lower) / (centre - lower)
        falling = (upper - frequencies) / (upper - centre)
        triangles = np.maximum(0.0, np.minimum(rising, falling))
        return (triangles * 2 / (upper - lower)).astype(np.float32)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """The frames of a wave: `log(max(|FFT(hann * frame)|^2 @ bands, 1e-10))`.

        Args:
            samples: float32 `[n]`; zeros are added to less than a window.

        Returns:
            float32 `[num_frames(n), M]`.
        """
        samples = np.pad(samples, (0, max(self.window - len(samples), 0)))
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.window)[:: self.hop]
        hann = signal.get_window("hann", self.window).astype(np.float32)
        spectrum = fft.rfft(frames * hann, self.n_fft)
        power = spectrum.real**2 + spectrum.imag**2
        return np.log(np.maximum(power @ self.bands, FLOOR)).astype(np.float32)


def with_deltas(frames: np.ndarray, order: int) -> np.ndarray:
    """Frames with how they change: slopes by regression over five frames, the ends repeated.

    Args:
        frames: `[T, C]`.
        order: 0 adds nothing, 1 the slopes, 2 the slopes of the slopes besides.

    Returns:
        `[T, C * (order + 1)]`.
    """
    parts = [frames]
    for _ in range(order):
        if not len(frames):
            break
        around = np.pad(parts[-1], ((2, 2), (0, 0)), mode="edge")
        after, before = around[3:-1] - around[1:-3], around[4:] - around[:-4]
        parts.append((after + 2 * before) / np.float32(10))
    return np.concatenate(parts, axis=1) if len(frames) else np.tile(frames, order + 1)


def _mel(hertz: float) -> float:
    """Slaney's scale: 15 mels at 1 kHz, and 27 more for each factor of 6.4."""
    return hertz * 3 / 200 if hertz < 1000 else 15 + 27 * float(np.log(hertz / 1000) / np.log(6.4))


def _hertz(mels: np.ndarray) -> np.ndarray:
    return np.where(mels < 15, mels * 200 / 3, 1000 * 6.4 ** ((mels - 15) / 27))
