"""Sound files as people have them: any rate, any sample format of wav, mono or not."""

import io
import struct
import warnings
from pathlib import Path

import numpy as np
from scipy.io import wavfile

import errors
from data.speech.types import Wave

_UNKNOWN_SIZE = b"\xff" * 4  # in the header of what a program wrote to a pipe
_HIGHEST_RATE = 1_000_000  # beyond, a header is damaged


def read(path: Path) -> Wave:
    """Reads a wav file: PCM of 8, 16, 24 or 32 bits or float; channels are averaged.

    Raises:
        errors.UserError: there is no such file, or it is no wav file that can be read to its end.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"{path} cannot be read: {error.strerror}") from error
    return decode(content, str(path))


def decode(content: bytes, where: str) -> Wave:
    """Decodes the content of a wav file, as `read` does.

    Args:
        content: of the file.
        where: how messages name it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", wavfile.WavFileWarning)
            # Many programs add chunks of their own, such as who recorded it.
            warnings.filterwarnings("ignore", "Chunk \\(non-data\\)", wavfile.WavFileWarning)
            if content[4:8] == _UNKNOWN_SIZE:
                warnings.filterwarnings("ignore", "Reached EOF", wavfile.WavFileWarning)
            rate, samples = wavfile.read(io.BytesIO(content))
    except (wavfile.WavFileWarning, ValueError, struct.error, ZeroDivisionError) as error:
        reason = " ".join(str(error).split())
        raise errors.UserError(
            f"{where} is no whole wav file ({reason}); PCM of 8, 16, 24 or 32 bits and float are read"
        ) from error
    except UnboundLocalError as error:  # SciPy's own, where a file ends before its data begin
        raise errors.UserError(f"{where} is no whole wav file (it has no data)") from error
    if not 1 <= rate <= _HIGHEST_RATE:
        raise errors.UserError(f"{where} has {rate:,} samples per second; 1 to {_HIGHEST_RATE:,} are allowed")
    scaled = _scaled(samples)
    if not np.isfinite(scaled).all():
        raise errors.UserError(f"{where} has samples that are no numbers (nan or infinite)")
    return Wave(mono(scaled), int(rate))


def mono(samples: np.ndarray) -> np.ndarray:
    """The mean of the channels of `[n]` or `[n, channels]`, float32 `[n]`."""
    mixed = samples.mean(axis=1) if samples.ndim == 2 else samples
    return mixed.astype(np.float32)


def _scaled(samples: np.ndarray) -> np.ndarray:
    """Samples as float64 with full scale at 1; 24 bits come as the upper ones of 32."""
    if samples.dtype.kind == "f":
        return samples.astype(np.float64)
    full = 2.0 ** (8 * samples.dtype.itemsize - 1)
    zero = full if samples.dtype.kind == "u" else 0.0  # 8 bits are unsigned
    return (samples - zero) / full
