"""Workers take turns, keep to their cores, and say why they stopped."""

import os
from collections.abc import Callable

import pytest

from benchmarks.interleaved import Worker, interleave
from errors import RunError


def prepare(name: str) -> tuple[Callable[[int], float], dict]:
    """A side whose every turn takes as many seconds as it has steps, and that talks while it works."""

    def run(steps: int) -> float:
        if name == "fails":
            raise RuntimeError("out of luck")
        print("a library's chatter")
        return float(steps)

    print("more of it")
    return run, {"name": name, "cores": sorted(os.sched_getaffinity(0))}


def worker(name: str) -> Worker:
    core = max(os.sched_getaffinity(0))
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    target = "tests.benchmarks.test_interleaved:prepare"
    return Worker(target, {"name": name}, cores=[core], environment=environment)


def test_a_worker_is_bound_to_its_cores_and_answers_through_chatter():
    with worker("a") as side:
        assert side.facts == {"name": "a", "cores": [max(os.sched_getaffinity(0))]}
        assert side.run(3) == 3.0


def test_a_worker_that_fails_says_why():
    with worker("fails") as side, pytest.raises(RunError, match="exit code 1: RuntimeError: out of luck"):
        side.run(1)


def test_sides_alternate_and_times_are_per_step():
    turns = []

    class Side:
        def __init__(self, name: str, seconds: float):
            self.name, self.seconds = name, seconds

        def run(self, steps: int) -> float:
            turns.append((self.name, steps))
            return self.seconds

    sides = [Side("a", 8.0), Side("b", 2.0)]
    assert interleave(sides, rounds=3, steps=4) == [[2.0, 2.0, 2.0], [0.5, 0.5, 0.5]]
    assert turns == [("a", 4), ("b", 4)] * 3
