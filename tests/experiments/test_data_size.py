"""The study as a whole, at a size of seconds: killed, begun again, drawn again."""

import csv
import json
import signal
import time

from tests import command

STUDY = ("-m", "experiments.data_size", "--preset=smoke", "--seeds=1", "--updates=8")


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_killed_and_restarted_it_does_what_is_missing(tmp_path):
    process = command.start(*STUDY, f"--out={tmp_path}")
    deadline = time.monotonic() + 120
    while not (tmp_path / "results.csv").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < len(rows(tmp_path / "results.csv")) < 4
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/result.json")}

    printed = command.run(*STUDY, f"--out={tmp_path}").stdout
    assert done.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*")}.items()
    table = rows(tmp_path / "results.csv")
    cells = [(row["train_size"], row["model"], row["updates"]) for row in table]
    assert cells == [(size, model, "8") for size in ("30", "90") for model in ("cnn", "vit")]
    assert all(0 <= float(row["test_accuracy"]) <= 1 for row in table)
    assert "4/4 runs" in printed
    assert "no crossing within the data" in printed or "overtakes" in printed
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
