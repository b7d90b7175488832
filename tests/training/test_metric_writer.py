"""Metrics on disk, also after a crash."""

import csv
import json
import sys

import pytest

from errors import UserError
from training.metric_writer import MetricWriter, read


def rows(workdir):
    with (workdir / "metrics.csv").open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@pytest.fixture
def written(tmp_path):
    """A run that logged at steps 10, 20 and 30."""
    writer = MetricWriter(tmp_path)
    writer.write(10, "train", {"loss": 2, "accuracy": 0.25})
    writer.write(20, "train", {"loss": 1.5})
    writer.write(20, "validation", {"accuracy": 0.5})
    writer.write(30, "train", {"loss": 1e-7})
    return tmp_path


def test_a_row_per_event_and_a_row_per_value(written):
    assert [json.loads(line) for line in (written / "metrics.jsonl").read_text().splitlines()] == [
        {"step": 10, "split": "train", "loss": 2.0, "accuracy": 0.25},
        {"step": 20, "split": "train", "loss": 1.5},
        {"step": 20, "split": "validation", "accuracy": 0.5},
        {"step": 30, "split": "train", "loss": 1e-7},
    ]
    assert rows(written) == [
        ("step", "split", "metric", "value"),
        ("10", "train", "loss", "2.0"),
        ("10", "train", "accuracy", "0.25"),
        ("20", "train", "loss", "1.5"),
        ("20", "validation", "accuracy", "0.5"),
        ("30", "train", "loss", "1e-07"),
    ]


def test_resuming_drops_what_will_be_written_again(written):
    writer = MetricWriter(written, start_step=20)
    assert [row["step"] for row in read(written / "metrics.jsonl")] == [10, 20, 20]
    assert [row[0] for row in rows(written)] == ["step", "10", "10", "20", "20"]
    writer.write(30, "train", {"loss": 0.5})
    assert read(written / "metrics.jsonl")[-1] == {"step": 30, "split": "train", "loss": 0.5}
    assert rows(written)[-1] == ("30", "train", "loss", "0.5")


def test_resuming_drops_what_was_measured_at_the_end_whichever_step_was_best(written):
    MetricWriter(written, start_step=30).write(20, "final_test", {"accuracy": 0.5})
    assert read(written / "metrics.jsonl")[-1]["split"] == "final_test"
    MetricWriter(written, start_step=30)
    assert [row["split"] for row in read(written / "metrics.jsonl")] == [
        "train",
        "train",
        "validation",
        "train",
    ]
    assert all(row[1] != "final_test" for row in rows(written))


def test_starting_anew_drops_everything(written):
    MetricWriter(written)
    assert read(written / "metrics.jsonl") == []
    assert rows(written) == [("step", "split", "metric", "value")]


def test_a_line_cut_off_by_a_crash_is_left_out(written):
    path = written / "metrics.jsonl"
    path.write_text(path.read_text()[:-9])
    assert [row["step"] for row in read(path)] == [10, 20, 20]
    MetricWriter(written, start_step=1000).write(30, "train", {"loss": 0.5})
    assert [row["step"] for row in read(path)] == [10, 20, 20, 30]
    assert len(path.read_text().splitlines()) == 4


def test_no_file_is_no_rows(tmp_path):
    assert read(tmp_path / "metrics.jsonl") == []


def test_tensorboard_without_its_extra_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match="tensorboard"):
        MetricWriter(tmp_path, tensorboard=True)


def test_tensorboard_gets_every_value_when_asked(tmp_path, monkeypatch):
    events = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            events.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            events.append((name, value, step))

        def flush(self):
            pass

    module = type("tensorboardX", (), {"SummaryWriter": SummaryWriter})
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    MetricWriter(tmp_path, start_step=4, tensorboard=True).write(5, "train", {"loss": 2, "accuracy": 0.5})
    assert events == [(str(tmp_path / "tensorboard"), 5), ("train/loss", 2.0, 5), ("train/accuracy", 0.5, 5)]
