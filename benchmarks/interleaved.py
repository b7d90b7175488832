"""Programs that take turns on the same cores, so that each meets the same machine.

Times on a shared machine drift by more than the differences one wants to see. So every side lives in a
process of its own, prepared and compiled once, and runs for a moment when it is told to: A B A B ... A ratio
is taken within each round, from neighbours in time, and its quartiles over the rounds say how sure it is.
"""

import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from errors import RunError, UserError

ROOT = Path(__file__).parent.parent


class Quartiles(NamedTuple):
    """The middle of some measurements, and the bounds of their middle half."""

    lower: float
    median: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quartiles":
        """Of at least two values, interpolated linearly between neighbours."""
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))

    def text(self, precision: str) -> str:
        """As "median (lower–upper)", each by a format such as ".2f"."""
        return f"{self.median:{precision}} ({self.lower:{precision}}–{self.upper:{precision}})"


def ratios(ours: Sequence[float], peers: Sequence[float]) -> list[float]:
    """Our time over the peer's, round by round."""
    return [a / b for a, b in zip(ours, peers, strict=True)]


def choose_cores(number: int) -> list[int]:
    """The last `number` cores this process may use; the first ones are the busiest with other work.

    Raises:
        UserError: if there are fewer, or this system can't bind a process to cores.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise UserError(
            f"this benchmark binds both sides to the same cores, which {sys.platform} can't: use Linux"
        )
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= number <= len(allowed):
        raise UserError(f"--threads is {number}; this process may use 1 to {len(allowed)} core(s)")
    return allowed[-number:]


class Worker:
    """One side: a function prepared in a process of its own, and run on command.

    Args:
        prepare: `"module:function"`. The function gets `arguments` and returns a function
            `run(steps) -> seconds` and a dict of facts.
        arguments: for it, as JSON can write them.
        cores: to which the process is bound before the module is imported.
        environment: of the process.
    """

    def __init__(
        self,
        prepare: str,
        arguments: Mapping[str, Any],
        *,
        cores: Sequence[int],
        environment: Mapping[str, str],
    ):
        self._name = prepare
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the worker)
        request = json.dumps({"prepare": prepare, "arguments": dict(arguments), "cores": list(cores)})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.interleaved", request],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=dict(environment),
            cwd=ROOT,
        )
        self._facts: dict[str, Any] | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What `prepare` tells of this side; waits for it."""
        if self._facts is None:
            self._facts = self._answer()
        return self._facts

    def run(self, steps: int) -> float:
        """Let this side make so many steps; returns the seconds they took."""
        assert self.facts is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            print(steps, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self._errors.seek(0)
        said = [text for text in self._errors.read().splitlines() if text.strip()]
        raise RunError(f"{self._name} stopped with exit code {code}: {said[-1] if said else 'nothing said'}")

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def interleave(workers: Sequence[Worker], *, rounds: int, steps: int) -> list[list[float]]:
    """Seconds per step `[worker][round]`, the workers taking turns: A B A B ...

    Args:
        workers: the sides, warmed up: the first steps of a program compile it.
        rounds: turns of each.
        steps: steps in a turn.
    """
    times: list[list[float]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, seconds in zip(workers, times, strict=True):
            seconds.append(worker.run(steps) / steps)
    return times


def serve(prepare: str, arguments: Mapping[str, Any], cores: Sequence[int]) -> None:
    """The worker's end: bind, import, prepare, then run as often as told to."""
    os.sched_setaffinity(0, cores)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    module, function = prepare.split(":")
    run, facts = getattr(importlib.import_module(module), function)(**arguments)
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(int(line))), file=answers, flush=True)


if __name__ == "__main__":
    serve(**json.loads(sys.argv[1]))
