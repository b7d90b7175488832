import numpy as np
import pytest

import errors
from data.speech.mel import LogMel, with_deltas


@pytest.mark.parametrize(
    "rate, window, hop, n_fft",
    [(8_000, 200, 80, 256), (16_000, 400, 160, 512), (22_050, 551, 220, 1024), (44_100, 1102, 441, 2048)],
)
def test_a_second_has_98_frames(rate, window, hop, n_fft):
    mel = LogMel(rate, 20)
    assert (mel.window, mel.hop, mel.n_fft) == (window, hop, n_fft)
    assert mel(np.zeros(rate, np.float32)).shape == (98, 20)
    assert mel.num_frames(rate) == 98


@pytest.mark.parametrize("samples, frames", [(0, 1), (160, 1), (200, 1), (279, 1), (280, 2), (1148, 12)])
def test_frames_of_short_signals(samples, frames):
    mel = LogMel(8_000)
    found = mel(np.zeros(samples, np.float32))
    assert len(found) == mel.num_frames(samples) == frames
    np.testing.assert_array_equal(found, np.float32(np.log(1e-10)))


def test_an_impulse_has_the_window_squared_at_every_frequency():
    """|FFT|^2 of one sample is hann(its place)^2, so a band holds that times the sum of its weights."""
    mel = LogMel(8_000, 10)
    samples = np.zeros(360, np.float32)  # frames begin at 0, 80 and 160
    samples[200] = 0.5
    found = mel(samples)
    places = np.array([200, 120, 40])  # in the three frames; the first one ends at 199
    hann = np.sin(np.pi * places / 200) ** 2
    hann[0] = 0
    expected = np.log(np.maximum((0.5 * hann[:, None]) ** 2 * mel.bands.sum(axis=0), 1e-10))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_sine_is_in_the_band_of_its_frequency():
    """Fourteen bands up to 4 kHz are linear below 1 kHz: centres 35.16 / 15 = 2.34 mel = 156 Hz apart."""
    mel = LogMel(8_000, 14)
    top = 15 + 27 * np.log(4) / np.log(6.4)
    assert top == pytest.approx(35.16, abs=0.01)
    for band in range(4):
        hertz = (band + 1) * top / 15 * 200 / 3
        samples = np.sin(2 * np.pi * hertz / 8_000 * np.arange(1_000)).astype(np.float32)
        assert (mel(samples).argmax(axis=1) == band).all()


def test_equal_areas():
    """The area under each triangle is 1; the frequencies are dense enough for a sum to be the integral."""
    bands = LogMel(100_000, 5).bands
    spacing = 50_000 / (len(bands) - 1)
    np.testing.assert_allclose(bands.sum(axis=0) * spacing, 1, atol=1e-3)


def test_a_frame_is_of_its_window_alone():
    mel = LogMel(8_000)
    samples = np.random.default_rng(0).standard_normal(1_000).astype(np.float32)
    frames = mel(samples)
    np.testing.assert_allclose(mel(samples[160 : 160 + 200]), frames[2:3], atol=1e-5)
    np.testing.assert_allclose(mel(samples[:-80]), frames[:-1], atol=1e-5)
    assert np.abs(np.diff(frames, axis=0)).max() > 1


def test_as_librosa_computes_it():
    librosa = pytest.importorskip("librosa", reason="librosa, to compare with, is not installed")
    samples = np.random.default_rng(0).standard_normal(11_025).astype(np.float32)
    mel = LogMel(11_025, 40)
    # There a window lies in the middle of the n_fft points that a frame takes of the signal.
    spare = mel.n_fft - mel.window
    theirs = librosa.feature.melspectrogram(
        y=np.pad(samples, (spare // 2, spare - spare // 2)),
        sr=11_025,
        n_fft=mel.n_fft,
        win_length=mel.window,
        hop_length=mel.hop,
        center=False,
        n_mels=40,
    )
    np.testing.assert_allclose(mel(samples), np.log(theirs.T), atol=1e-4)


def test_slopes():
    straight = np.array([[0.0], [3], [6], [9], [12], [15]], np.float32)
    # Inside, the slope; at the ends with repeated frames (1 (3 - 0) + 2 (6 - 0)) / 10 = 1.5,
    # then (1 (6 - 0) + 2 (9 - 0)) / 10 = 2.4.
    slopes = [1.5, 2.4, 3, 3, 2.4, 1.5]
    found = with_deltas(straight, 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 1], slopes, atol=1e-6)
    # Of these again: (1 (2.4 - 1.5) + 2 (3 - 1.5)) / 10, (1 (3 - 1.5) + 2 (3 - 1.5)) / 10, and so on.
    np.testing.assert_allclose(found[:3, 2], [0.39, 0.45, 0.24], atol=1e-6)
    np.testing.assert_array_equal(with_deltas(straight, 0), straight)
    np.testing.assert_array_equal(with_deltas(straight[:1], 1), [[0, 0]])
    assert with_deltas(straight[:0], 2).shape == (0, 3)


@pytest.mark.parametrize(
    "rate, num_mels, parts",
    [
        (99, 40, ["99 samples", "100"]),
        (8_000, 0, ["num_mels 0", "1"]),
        (8_000, 200, ["num_mels 200", "8000"]),
    ],
)
def test_what_is_not_allowed_is_one_line(rate, num_mels, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        LogMel(rate, num_mels)
    one_line(raised, *parts)
