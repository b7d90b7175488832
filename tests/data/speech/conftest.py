"""Wav files of given numbers."""

import io
import wave

import numpy as np
import pytest

TYPES = {1: "u1", 2: "<i2", 4: "<i4"}


@pytest.fixture
def wav_bytes():
    """Encodes whole numbers `[n]` or `[n, channels]` as PCM of so many bytes a sample."""

    def encode(samples, rate=8_000, width=2):
        samples = np.asarray(samples)
        samples = samples[:, None] if samples.ndim == 1 else samples
        if width == 3:  # the lower three bytes of four
            content = samples.astype("<i4").view("u1").reshape(-1, 4)[:, :3].tobytes()
        else:
            content = samples.astype(TYPES[width]).tobytes()
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as file:
            file.setparams((samples.shape[1], width, rate, 0, "NONE", ""))
            file.writeframes(content)
        return buffer.getvalue()

    return encode
