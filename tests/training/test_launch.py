"""How a command starts and ends."""

import os
import signal
import subprocess
import sys

import pytest

from errors import RunError, UserError
from tests.command import ROOT
from training import launch


def failing(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    "main, code, errors",
    [
        (lambda: None, 0, ""),
        (lambda: 3, 3, ""),
        (failing(UserError("no such model")), 2, "error: no such model\n"),
        (failing(RunError("disk full")), 1, "error: disk full\n"),
        (failing(launch.Terminated("stopped")), 143, "error: stopped\n"),
        (failing(KeyboardInterrupt()), 130, "interrupted\n"),
    ],
    ids=["none", "code", "user", "run", "terminated", "interrupted"],
)
def test_exit_codes_and_one_line(main, code, errors, capsys):
    with pytest.raises(SystemExit) as caught:
        launch.run(main)
    assert caught.value.code == code
    assert capsys.readouterr() == ("", errors)


def test_nobody_reads_on_is_a_quiet_end():
    """As of `train.py --show | head`; in a process of its own, whose standard output is closed for good."""
    lines = "import sys\nfrom training import launch\nlaunch.run(lambda: print('line\\n' * 100_000))"
    process = subprocess.Popen(
        [sys.executable, "-c", lines], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "line\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 141)
    process.stderr.close()


def test_a_mistake_of_ours_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        launch.run(lambda: 1 // 0)


def tunables(monkeypatch, given):
    monkeypatch.setattr(launch.sys, "platform", "linux")
    monkeypatch.setenv("GLIBC_TUNABLES", given)
    return launch.allocator_environment()["GLIBC_TUNABLES"].split(":")


def test_memory_is_kept_in_huge_pages_on_linux(monkeypatch):
    found = tunables(monkeypatch, "")
    assert "glibc.malloc.hugetlb=1" in found
    assert "glibc.malloc.mmap_threshold=1073741824" in found


def test_what_the_user_has_set_stays(monkeypatch):
    found = tunables(monkeypatch, "glibc.malloc.hugetlb=0:glibc.rtld.nns=4")
    assert found[:2] == ["glibc.malloc.hugetlb=0", "glibc.rtld.nns=4"]
    assert sum("hugetlb" in setting for setting in found) == 1
    assert tunables(monkeypatch, ":".join(found)) == found


def test_elsewhere_the_environment_is_left_alone(monkeypatch):
    monkeypatch.setattr(launch.sys, "platform", "darwin")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert launch.allocator_environment() == dict(os.environ)


def test_a_command_starts_itself_anew_once(monkeypatch):
    started = []
    monkeypatch.setattr(launch.sys, "platform", "linux")
    monkeypatch.setattr(launch.sys, "orig_argv", ["python", "-m", "experiments.data_size", "--seeds=2"])
    monkeypatch.setattr(launch.os, "execve", lambda *arguments: started.append(arguments))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    launch.with_allocator()
    [(program, arguments, environment)] = started
    assert arguments == [program, "-m", "experiments.data_size", "--seeds=2"]
    monkeypatch.setenv("GLIBC_TUNABLES", environment["GLIBC_TUNABLES"])
    launch.with_allocator()
    assert len(started) == 1


def test_sigterm_is_noted_inside_and_as_before_outside():
    before = signal.getsignal(signal.SIGTERM)
    with launch.Termination() as termination:
        assert not termination.requested
        signal.raise_signal(signal.SIGTERM)
        assert termination.requested
    assert signal.getsignal(signal.SIGTERM) is before
