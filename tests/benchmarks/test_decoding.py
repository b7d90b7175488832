"""The benchmark of decoding: that its sides do the same, its arithmetic, and its arguments."""

import csv
import io

import numpy as np
import pytest
from flax import nnx
from rich.console import Console

from benchmarks import decoding
from benchmarks.decoding import LONG, MODELS, Benchmark, Side
from errors import RunError, UserError


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    size = {"dim": 8, "num_layers": 1, "num_heads": 2, "hidden_dim": 6}
    monkeypatch.setitem(decoding.blocks.SIZES, "tiny", size)
    monkeypatch.setattr(decoding, "VOCABULARY", 50)


def test_with_and_without_a_cache_the_same_tokens_are_made_and_none_ends():
    found = [Side("transformer", 1, 6, cached).bind("tiny", 2)() for cached in (True, False)]
    np.testing.assert_array_equal(found[0].tokens, found[1].tokens)
    np.testing.assert_allclose(found[0].log_probability, found[1].log_probability, rtol=1e-5)
    assert (found[0].tokens[:, 0] > decoding.END).sum() == 2 * 6
    assert not found[0].finished.any()


def test_every_model_is_made():
    made = [nnx.eval_shape(lambda name=name: decoding.make(name, "tiny")) for name in MODELS]
    assert {type(model.decoder).__name__ for model in made} == {
        "RecurrentDecoder",
        "ConvolutionalDecoder",
        "TransformerDecoder",
    }


def test_measured_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(Benchmark, "groups", [[Side("transformer", 1, 6)]])
    out = tmp_path / "new" / "x.csv"
    benchmark = decoding.parse(["--size=tiny", "--batch=2", "--rounds=3", "--patience=0", f"--out={out}"])
    found = benchmark.run(Console(quiet=True))
    benchmark.write(found)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 3
    assert tuple(rows[0]) == decoding.COLUMNS
    speed, time = float(rows[0]["sentences_per_second"]), float(rows[0]["milliseconds"])
    assert speed * time == pytest.approx(2_000, rel=0.01)
    with pytest.raises(RunError, match="could not write"):
        decoding.parse([f"--out={tmp_path}"]).write(found)


def test_speed_and_gain_of_known_times():
    """16 sentences in 0.5 s are 32 a second; 0.5 s against 3 s is 6 times as fast."""
    cached, uncached = (Side("transformer", 1, LONG, cached) for cached in (True, False))
    found = {cached: [0.5] * 3, uncached: [3.0] * 3}
    shown = Console(record=True, width=100, file=io.StringIO())
    shown.print(decoding.parse([]).table(found))
    assert "32.0 (32.0–32.0)" in shown.export_text()
    assert "6.0 (6.0–6.0) times as fast (target: 5, met)" in decoding.verdict(found)
    assert "not met" in decoding.verdict({**found, uncached: [2.0] * 3})


def test_what_is_compared():
    groups = decoding.parse([]).groups
    assert [len(group) for group in groups] == [4, 4, 2]
    assert {side.beam for side in groups[1]} == {5}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--batch=0", "--batch is 0; it must be at least 1"),
        ("--tokens=1", "--tokens is 1"),
        ("--rounds=2", "--rounds is 2"),
        ("--threads=0", "--threads is 0"),
        ("--nonsense", "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_line(argument, message):
    with pytest.raises(UserError, match=message):
        decoding.parse([argument])
