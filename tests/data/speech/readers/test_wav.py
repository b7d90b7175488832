import io
import struct

import numpy as np
import pytest
from scipy.io import wavfile

import errors
from data.speech.readers import wav
from data.speech.types import Wave


@pytest.mark.parametrize(
    "width, samples, expected",
    [
        (1, [0, 128, 192, 255], [-1, 0, 0.5, 127 / 128]),  # 8 bits are unsigned
        (2, [-(2**15), 0, 2**14], [-1, 0, 0.5]),
        (3, [-(2**23), 0, 2**22, 1], [-1, 0, 0.5, 2**-23]),
        (4, [-(2**31), 0, 2**30], [-1, 0, 0.5]),
    ],
)
def test_pcm_of_every_width_has_full_scale_at_one(wav_bytes, width, samples, expected):
    wave = wav.decode(wav_bytes(samples, 11_025, width), "x")
    assert wave.rate == 11_025
    assert wave.samples.dtype == np.float32
    assert wave.samples.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_is_taken_as_it_is(dtype):
    buffer = io.BytesIO()
    wavfile.write(buffer, 16_000, np.array([-1.5, 0.25, 1.0], dtype))
    assert wav.decode(buffer.getvalue(), "x").samples.tolist() == [-1.5, 0.25, 1.0]


def test_channels_are_averaged(wav_bytes):
    stereo = wav_bytes([[2**14, -(2**14)], [2**13, 2**14], [0, -(2**15)]])
    assert wav.decode(stereo, "x").samples.tolist() == [0, 0.375, -0.5]


@pytest.mark.parametrize("shape", [(0,), (0, 2)])
def test_no_samples(wav_bytes, shape):
    assert wav.decode(wav_bytes(np.zeros(shape, np.int16)), "x").samples.shape == (0,)


def test_chunks_of_other_programs_are_passed_over(wav_bytes, tmp_path):
    content = wav_bytes([2**14, 2**13])
    content += b"bext" + struct.pack("<I", 4) + b"who?"
    content = content[:4] + struct.pack("<I", len(content) - 8) + content[8:]
    (tmp_path / "a.wav").write_bytes(content)
    assert wav.read(tmp_path / "a.wav").samples.tolist() == [0.5, 0.25]


def test_what_was_written_to_a_pipe_does_not_know_its_size(wav_bytes):
    content = wav_bytes([2**14, 2**13, 2**12])
    unknown = b"\xff" * 4
    piped = content[:4] + unknown + content[8:40] + unknown + content[44:]
    assert wav.decode(piped, "x").samples.tolist() == [0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"hello, world, I am no wav file",
        lambda content: content[:12],
        lambda content: content[:20],
        lambda content: content[:36],
        lambda content: content[:42],
        lambda content: content[:-2],
        lambda content: content[:-3],
        lambda content: content[:20] + b"\x07\x00" + content[22:],  # mu-law
        lambda content: content[:24] + bytes(4) + content[28:],  # no rate
        lambda content: content[:22] + bytes(2) + content[24:],  # no channels
        lambda content: content[:24] + b"\xff" * 4 + content[28:],  # four thousand million samples a second
    ],
)
def test_what_cannot_be_read_is_one_line(wav_bytes, damage, tmp_path, one_line):
    path = tmp_path / "a.wav"
    path.write_bytes(damage(wav_bytes(range(50))))
    with pytest.raises(errors.UserError) as raised:
        wav.read(path)
    one_line(raised, path)


def test_no_file_and_no_numbers(tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        wav.read(tmp_path / "b.wav")
    one_line(raised, tmp_path / "b.wav", "No such file")
    wavfile.write(tmp_path / "c.wav", 8_000, np.array([0, np.nan], np.float32))
    with pytest.raises(errors.UserError) as raised:
        wav.read(tmp_path / "c.wav")
    one_line(raised, "c.wav", "no numbers")


def tone(hertz, rate, seconds=0.5):
    return Wave(np.sin(2 * np.pi * hertz / rate * np.arange(int(rate * seconds))).astype(np.float32), rate)


def test_another_rate_is_the_same_sound():
    heard = tone(440, 44_100).at(8_000)
    assert heard.rate == 8_000
    assert heard.samples.dtype == np.float32
    assert heard.seconds == 0.5
    inner = slice(100, -100)
    np.testing.assert_allclose(heard.samples[inner], tone(440, 8_000).samples[inner], atol=2e-3)
    assert np.abs(tone(5_000, 44_100).at(8_000).samples[inner]).max() < 2e-2  # not folded back to 3 kHz


def test_lengths_at_another_rate():
    assert [len(Wave(np.zeros(n, np.float32), 44_100).at(8_000).samples) for n in (0, 1, 882)] == [0, 1, 160]
    wave = tone(440, 8_000)
    assert wave.at(8_000) is wave
