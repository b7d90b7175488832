"""The benchmark of truncated attention: its arithmetic, its arguments, and that a step is what it says."""

import csv
import dataclasses
import io

import jax
import numpy as np
import pytest
from rich.console import Console

from benchmarks import truncated_attention
from benchmarks.truncated_attention import SIDES, TRUNCATED, Encoder, Measured, Step
from errors import RunError, UserError


def measured(name, frames, milliseconds, mebibytes):
    return Measured(name, frames // 98, frames, [milliseconds / 1e3] * 3, int(mebibytes * 2**20))


FOUND = [
    *(measured(TRUNCATED, frames, frames / 10, frames / 20) for frames in (100, 400, 1_600)),
    *(measured("full", frames, (frames / 10) ** 2, frames**1.5) for frames in (100, 400, 1_600)),
    *(measured("full, blockwise", frames, frames**2, frames) for frames in (100, 400, 1_600)),
]


def test_exponents_of_known_costs():
    found = truncated_attention.exponents(FOUND)
    assert found[TRUNCATED] == pytest.approx((1, 1), abs=1e-3)
    assert found["full"] == pytest.approx((2, 1.5), abs=1e-3)
    assert "length^1.00 (target: at most 1.2 in both, met)" in truncated_attention.verdicts(FOUND)
    slow = [*FOUND[3:], *(measured(TRUNCATED, f, f**1.3, f) for f in (100, 400, 1_600))]
    assert "memory ~ length^1.00 (target: at most 1.2 in both, not met)" in truncated_attention.verdicts(slow)


def test_a_frame_sees_as_far_as_the_windows_of_both_layers():
    """31 frames to either side in each of two layers; full attention sees everything."""
    frames = np.random.default_rng(0).standard_normal((130, 8)).astype(np.float32)
    changed = frames + 1.0 * np.eye(130, dtype=np.float32)[:, :, None]  # one frame in each
    mask = np.ones((131, 130), bool)
    for name, last in ((TRUNCATED, 62), ("full", 129)):
        encoder = Encoder(SIDES[name], 8)
        compiled = jax.jit(lambda x, encoder=encoder: encoder(x, mask)[:, 0])
        out = np.asarray(compiled(np.stack([frames, *changed])))
        assert np.flatnonzero(np.abs(out[1:] - out[0]).max(axis=1)).max() == last


def test_every_side_can_be_differentiated():
    for attention in SIDES.values():
        Step(attention, np.zeros((98, 8), np.float32))  # which raises where it can't


def test_measured_and_written(tmp_path, monkeypatch):
    for name, few in (("LAYERS", 1), ("WIDTH", 8), ("HEADS", 1), ("HIDDEN", 8)):
        monkeypatch.setattr(truncated_attention, name, few)
    monkeypatch.setattr(truncated_attention, "SIDES", {"full": SIDES["full"]})
    out = tmp_path / "new" / "x.csv"
    benchmark = truncated_attention.parse(
        ["--seconds=2,1", "--rounds=3", "--patience=0", f"--out={out}", f"--data_dir={tmp_path}"]
    )
    assert benchmark.seconds == (1, 2)
    samples, sound = truncated_attention.speech(benchmark.data_dir)
    assert sound == "noise"
    found = dataclasses.replace(benchmark, seconds=(1,)).run(samples, Console(quiet=True))
    assert [(one.attention, one.frames) for one in found] == [("full", 98)]
    assert all(one.temporary_bytes > 0 for one in found)
    benchmark.write(found)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 3
    assert tuple(rows[0]) == truncated_attention.COLUMNS
    with pytest.raises(RunError, match="could not write"):
        truncated_attention.parse([f"--out={tmp_path}"]).write(found)


def test_the_table_has_every_side_at_every_length():
    shown = Console(record=True, width=100, file=io.StringIO())
    shown.print(truncated_attention.table(FOUND))
    lines = [line for line in shown.export_text().splitlines() if "full, blockwise" in line]
    assert [line.split()[3] for line in lines] == ["100", "400", "1,600"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--seconds=5", "at least two different"),
        ("--seconds=5,5", "at least two different"),
        ("--seconds=0,5", "at least two different"),
        ("--seconds=5,x", "at least two different"),
        ("--rounds=2", "at least 3"),
        ("--threads=0", "--threads is 0"),
        ("--nonsense", "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_line(argument, message):
    with pytest.raises(UserError, match=message):
        truncated_attention.parse([argument])
