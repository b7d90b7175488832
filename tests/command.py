"""Runs this project's commands as a user would, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def environment(flags: str = "") -> dict[str, str]:
    """The caller's environment, with one device and the usual optimisation unless XLA gets other flags."""
    return {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}


# As a full disk does, this fails a write half-way through.
NO_ROOM = (
    "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
)


def arguments(*command: str, prelude: str = "") -> list[str]:
    """`train.py ...` or `-m experiments.data_size ...` with this interpreter, after a prelude.

    The prelude is Python that sets limits which the command inherits: it runs in the new process, since
    forking this one, with JAX's threads in it, is not safe.
    """
    if not prelude:
        return [sys.executable, *command]
    start = f"{prelude}; import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return [sys.executable, "-c", start, *command]


def start(*command: str, prelude: str = "", flags: str = "") -> subprocess.Popen:
    """Start a command."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments(*command, prelude=prelude), cwd=ROOT, env=environment(flags), **pipes)


def run(*command: str, check: int = 0, prelude: str = "") -> subprocess.CompletedProcess:
    """Run to the end and return the process with its output as text; `check` is the exit code due."""
    process = start(*command, prelude=prelude)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == check, output + errors
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def error_line(*command: str, code: int = 2, prelude: str = "") -> str:
    """The one line that a command fails with."""
    done = run(*command, check=code, prelude=prelude)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]
