"""Speed and time left, of training alone."""

import io

import pytest
from rich.console import Console

from training import progress
from training.progress import RunProgress, StepTimer, clock


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still: `now[0]` seconds."""
    time = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: time[0])
    return time


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (9.4, "0:09"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (36061, "10:01:01")],
)
def test_clock(seconds, text):
    assert clock(seconds) == text


def test_the_first_report_is_not_counted_since_it_holds_the_compilation(now):
    timer = StepTimer()
    assert timer.rate == 0
    now[0] += 60
    timer.tick(10)
    assert timer.rate == 0
    now[0] += 2
    timer.tick(10)
    assert timer.rate == 5
    now[0] += 2
    timer.tick(30)
    assert timer.rate == 10


def test_a_pause_is_not_counted(now):
    timer = StepTimer()
    timer.tick(10)
    now[0] += 1
    with timer.pause():
        now[0] += 1000
    now[0] += 1
    timer.tick(10)
    assert timer.rate == 5
    with timer.pause():
        now[0] += 1000
    now[0] += 2
    timer.tick(10)
    assert timer.rate == 5


def test_a_pause_before_the_first_report_does_nothing(now):
    timer = StepTimer()
    with timer.pause():
        now[0] += 5
    timer.tick(1)
    now[0] += 1
    timer.tick(3)
    assert timer.rate == 3


def test_where_there_is_no_terminal_it_prints_lines(now):
    shown, reached = io.StringIO(), []
    console = Console(file=shown, width=40)
    with RunProgress(200, 32, start=80, console=console, listener=reached.append) as run:
        now[0] += 30
        run.reached(90, {"loss": 2.3456789, "accuracy": 0.25})
        now[0] += 2
        with run.timer.pause():
            run.say("[bold] validation")
            now[0] += 500
        run.reached(110, {"loss": 1.0})
    assert shown.getvalue().splitlines() == [
        "step 90/200  loss 2.346  accuracy 0.25  compiling",
        "[bold] validation",
        "step 110/200  loss 1  320 examples/s  ETA 0:09",
    ]
    assert reached == [90, 110]


def test_without_a_console_it_only_tells_the_listener(now, capsys):
    reached = []
    with RunProgress(20, 32, listener=reached.append) as run:
        run.reached(10, {"loss": 1.0})
        run.say("nothing to see")
    assert reached == [10]
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_is_a_bar(now):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    with RunProgress(20, 32, console=console) as run:
        run.reached(10, {"loss": 1.0})
        now[0] += 1
        run.reached(12, {"loss": 1.0})
        run.say("a line above it")
    text = shown.getvalue()
    assert "12/20" in text
    assert "64 examples/s  ETA 0:04" in text
    assert "a line above it" in text
    assert "loss" not in text
