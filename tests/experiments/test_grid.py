"""The grid of runs: one core each, what fails is named, the others go on, and it can be stopped."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from ml_collections import ConfigDict
from rich.console import Console

from errors import RunError, UserError
from experiments.framework.grid import GridRun, run_grid
from tests import command


def work(fields, workdir, listener):
    """In place of training: do as the config says, and tell where it was done."""
    listener(1)
    if fields["what"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if fields["what"] == "refuse":
        raise UserError("no such data")
    if fields["what"] == "break":
        raise ZeroDivisionError("by zero")
    listener(2)
    return {"pid": os.getpid(), "cores": sorted(os.sched_getaffinity(0)), "folder": workdir.name}


def run(tmp_path, *whats, jobs=2):
    """Results by run name, the error, what was printed, and the results known after each run."""
    runs = [GridRun(f"{number}-{what}", ConfigDict({"what": what}), 2) for number, what in enumerate(whats)]
    shown, known = io.StringIO(), []
    error = None
    try:
        run_grid(
            runs,
            tmp_path,
            jobs=jobs,
            console=Console(file=shown, width=200),
            finished=lambda results: known.append(dict(results)),
            do=work,
        )
    except RunError as raised:
        error = str(raised)
    return known[-1] if known else {}, error, shown.getvalue(), known


def test_every_run_is_done_once_on_one_core_and_workers_are_kept(tmp_path):
    results, error, shown, known = run(tmp_path, *["go"] * 6)
    assert error is None
    assert list(map(len, known)) == [1, 2, 3, 4, 5, 6]
    assert {found["folder"] for found in results.values()} == {f"{number}-go" for number in range(6)}
    cores = {found["pid"]: found["cores"] for found in results.values()}
    assert len(cores) == 2
    assert all(len(of) == 1 for of in cores.values())
    if len(os.sched_getaffinity(0)) > 1:
        assert len({tuple(of) for of in cores.values()}) == 2
    assert "100%  6/6 runs" in shown


def test_what_fails_is_named_and_the_others_are_done(tmp_path):
    results, error, shown, _ = run(tmp_path, "go", "die", "refuse", "go", "break", "go", jobs=1)
    assert list(results) == ["0-go", "3-go", "5-go"]
    assert error == "3 of 6 runs failed; the first: 1-die: its process died (SIGKILL(-9))"
    assert "failed: 2-refuse: no such data" in shown
    assert "failed: 4-break: ZeroDivisionError: by zero" in shown
    assert "in work" in shown  # where a fault of ours lies
    (core,) = {tuple(found["cores"]) for found in results.values()}  # a new process has the same core
    assert len(core) == 1


STUDY = """
import pathlib, sys, time
from ml_collections import ConfigDict
from rich.console import Console
from experiments.framework.grid import GridRun, run_grid
from training import launch

def work(fields, workdir, listener):
    import pathlib, time
    from training import launch
    with launch.Termination() as termination:
        (workdir / "begun").touch()
        while not termination.requested:
            time.sleep(0.01)
        (workdir / "checkpoint").touch()
        raise launch.Terminated("stopped")

def main():
    out = pathlib.Path(sys.argv[1])
    (out / "runs/a").mkdir(parents=True)
    run_grid([GridRun("a", ConfigDict(), 1)], out, jobs=1, console=Console(), finished=print, do=work)

launch.run(main)
"""


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_what_is_stopped_writes_its_checkpoint_and_leaves_no_process(tmp_path, sent, code):
    folder = tmp_path / "runs" / "a"
    arguments = [sys.executable, "-c", STUDY, str(tmp_path)]
    environment = {**command.environment(), "PYTHONPATH": str(command.ROOT)}
    process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (folder / "begun").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(sent)
    # The pipe is at its end only when the worker, which writes to it too, is gone.
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert (folder / "checkpoint").exists() == (sent != signal.SIGKILL)
