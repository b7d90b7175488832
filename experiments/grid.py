"""A grid of runs in worker processes, one core each: resumable, and shown as one bar with an ETA."""

import dataclasses
import functools
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from errors import RunError, UserError
from training import launch
from training.progress import clock


@dataclasses.dataclass(frozen=True)
class GridRun:
    """One run of a study.

    Attributes:
        name: its folder under `DIR/runs`.
        config: what `train.train` is given.
        updates: training steps, for the progress bar.
    """

    name: str
    config: ConfigDict
    updates: int


def run_grid(
    runs: Sequence[GridRun],
    out: Path,
    *,
    jobs: int,
    console: Console,
    finished: Callable[[dict[str, dict[str, Any]]], None],
) -> dict[str, dict[str, Any]]:
    """Do every run that has not been done, `jobs` at a time.

    A run's result does not depend on the others or on `jobs`: each has a core of its own, and its
    arithmetic is that of one thread.

    Args:
        runs: the grid.
        out: the study's folder.
        jobs: worker processes; 0 means one per core.
        console: where to show progress.
        finished: called with all results so far, by run name, after each run.

    Returns:
        The results by run name.

    Raises:
        RunError: if runs failed; the others have been done and their results kept.
    """
    # The compiler's threads and NumPy's would fight over the cores that the workers share out.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.update(launch.allocator_environment())
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    jobs = min(jobs or len(cores) or os.cpu_count() or 1, max(len(runs), 1))
    context = multiprocessing.get_context("spawn")
    tasks, reports = context.Queue(), context.Queue()
    for run in runs:
        tasks.put((run.name, run.config.to_json_best_effort()))
    for _ in range(jobs):
        tasks.put(None)
    workers = [
        context.Process(
            target=_work,
            args=(tasks, reports, str(out), cores[index % len(cores)] if cores else None),
            daemon=True,
        )
        for index in range(jobs)
    ]
    results: dict[str, dict[str, Any]] = {}
    failures: list[str] = []
    with _Display(runs, jobs, console) as display:
        try:
            for worker in workers:
                worker.start()
            while len(results) + len(failures) < len(runs):
                try:
                    kind, name, value = reports.get(timeout=0.5)
                except queue.Empty:
                    display.refresh()
                    if not any(worker.is_alive() for worker in workers) and reports.empty():
                        left = [r.name for r in runs if r.name not in results]
                        raise RunError(f"the worker processes died; {len(left)} runs are left") from None
                    continue
                if kind == "step":
                    display.reached(name, value)
                elif kind == "failed":
                    failures.append(f"{name}: {value}")
                    display.say(f"failed: {failures[-1]}")
                else:
                    results[name] = value
                    display.done(name)
                    finished(results)
        finally:
            for worker in workers:
                worker.terminate()
    if failures:
        raise RunError(f"{len(failures)} of {len(runs)} runs failed; the first: {failures[0]}")
    return results


def _work(tasks, reports, out: str, core: int | None) -> None:
    """A worker: one run after the other, JAX imported once and each model compiled once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if core is not None:
        os.sched_setaffinity(0, {core})  # before JAX makes its threads
    from training import config as configs

    launch.compilation_cache()
    import train

    while (task := tasks.get()) is not None:
        name, text = task
        listener = functools.partial(_report_step, reports, name)
        try:
            result = train.train(configs.from_json(text), Path(out) / "runs" / name, listener=listener)
            reports.put(("done", name, result))
        except launch.Terminated:
            return
        except UserError as error:
            reports.put(("failed", name, str(error)))


def _end_with_parent() -> None:
    """End at once when the parent is gone, so that a study started anew has its runs to itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _report_step(reports, name: str, step: int) -> None:
    reports.put(("step", name, step))


class _Display:
    """The whole grid as one bar; a line now and then where there is no terminal."""

    LINE_EVERY = 10.0  # seconds

    def __init__(self, runs: Sequence[GridRun], jobs: int, console: Console):
        self._runs = {run.name: run for run in runs}
        self._steps = dict.fromkeys(self._runs, 0)
        self._updates = sum(run.updates for run in runs)
        self._done = 0
        self._jobs = jobs
        self._console = console
        self._start = self._printed = time.monotonic()
        self._skipped = 0  # updates of runs found done, which say nothing of the speed
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[status]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=self._updates, status="starting")

    def __enter__(self) -> "_Display":
        self._bar.start()
        self.refresh(force=True)
        return self

    def __exit__(self, *exception) -> None:
        self._bar.stop()

    def reached(self, name: str, step: int) -> None:
        self._steps[name] = step
        self.refresh()

    def done(self, name: str) -> None:
        run = self._runs[name]
        if self._steps[name] == 0:
            self._skipped += run.updates
        self._steps[name] = run.updates
        self._done += 1
        self.refresh(force=self._done == len(self._runs))

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def refresh(self, force: bool = False) -> None:
        spent = sum(self._steps.values())
        seconds = time.monotonic() - self._start
        trained = spent - self._skipped
        left = f"ETA {clock(seconds * (self._updates - spent) / trained)}" if trained > 0 else "compiling"
        status = f"{self._done}/{len(self._runs)} runs  {left}"
        self._bar.update(self._task, completed=spent, status=status)
        now = time.monotonic()
        if not self._console.is_terminal and (force or now - self._printed > self.LINE_EVERY):
            self._printed = now
            share = spent / self._updates if self._updates else 1.0
            self.say(f"{share:4.0%}  {status}  {clock(seconds)} elapsed")
