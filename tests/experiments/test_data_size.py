"""The study as a whole, at a size of seconds: killed, begun again, drawn again."""

import csv
import json
import signal
import time

from tests import command

STUDY = (
    "-m",
    "experiments.data_size",
    "--preset=smoke",
    "--models=cnn",
    "--sizes=30",
    "--seeds=3",
    "--updates=8",
    "--jobs=1",
    "--set=model.widths=(4,)",
    "--set=model.blocks=(1,)",
)
# Most of it is compiling, also in the workers.
FAST = "import os; os.environ['XLA_FLAGS'] = '--xla_backend_optimization_level=0'"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_killed_and_restarted_it_does_what_is_missing(tmp_path):
    process = command.start(*STUDY, f"--out={tmp_path}", prelude=FAST)
    deadline = time.monotonic() + 300
    while not (tmp_path / "results.csv").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < len(rows(tmp_path / "results.csv")) < 3
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/result.json")}

    printed = command.run(*STUDY, f"--out={tmp_path}", prelude=FAST).stdout
    assert done.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*")}.items()
    table = rows(tmp_path / "results.csv")
    cells = [(row["model"], row["train_size"], row["seed"], row["updates"]) for row in table]
    assert cells == [("cnn", "30", seed, "8") for seed in "012"]
    assert all(0 <= float(row["test_accuracy"]) <= 1 for row in table)
    assert "3/3 runs" in printed
    assert "too few sizes with both models to tell a crossing" in printed
    assert STUDY[1] in json.loads((tmp_path / "manifest.json").read_text())["command"]

    files = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert {path.name for path in files} == {
        "results.csv",
        "curve.png",
        "curve.svg",
        "report.html",
        "manifest.json",
    }
    for name in ("curve.png", "curve.svg", "report.html"):
        (tmp_path / name).unlink()
    command.run(*STUDY, "--draw", f"--out={tmp_path}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == files
