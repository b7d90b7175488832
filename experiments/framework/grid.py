"""A grid of runs in worker processes, one core each: resumable, and shown as one bar with an ETA.

Each core has an executor of loky's with a single process. So it is plain which run a process died of, the
other cores go on, and the process that takes its place has the same core. Processes of `multiprocessing`
would each import the study's main module once more, and `multiprocessing.Pool` waits for ever for one that
was killed.
"""

import contextlib
import dataclasses
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from pathlib import Path
from typing import Any

import loky
from loky.backend import get_context
from ml_collections import ConfigDict
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from errors import RunError, UserError
from training import launch
from training.progress import clock

# loky would replace a process that grows by 300 MB, as if it leaked; programs and data sets are kept.
ENVIRONMENT = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e15"}
# The compiler's threads and NumPy's would fight over the cores that the workers share out.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PATIENCE = 60.0  # seconds that a run which is stopped has for its checkpoint


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


Results = dict[str, dict[str, Any]]
Do = Callable[[dict[str, Any], Path, Callable[[int], None]], dict[str, Any]]


def train_run(fields: dict[str, Any], workdir: Path, listener: Callable[[int], None]) -> dict[str, Any]:
    """What a worker does with a run: JAX is imported once, and each model compiled once."""
    launch.compilation_cache()
    import train

    return train.train(ConfigDict(fields), workdir, listener=listener)


def run_grid(
    runs: Sequence[GridRun],
    out: Path,
    *,
    jobs: int | None,
    console: Console,
    finished: Callable[[Results], None],
    do: Do = train_run,
) -> Results:
    """Do every run that has not been done, `jobs` at a time.

    A run's result does not depend on the others or on `jobs`: each has a core of its own, and its
    arithmetic is that of one thread.

    Args:
        runs: the grid.
        out: the study's folder.
        jobs: worker processes; None means one per core.
        console: where to show progress.
        finished: called with all results so far, by run name, after each run.
        do: what is done with a config's fields, a folder, and a function to call with each step reached.

    Returns:
        The results by run name.

    Raises:
        RunError: if runs failed; the others have been done and their results kept.
        launch.Terminated: on SIGTERM; the runs under way have written their checkpoints.
    """
    for name in THREADS:
        os.environ.setdefault(name, "1")
    os.environ.update(launch.allocator_environment() | ENVIRONMENT)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
    jobs = min(jobs or (len(cores) if cores[0] is not None else os.cpu_count() or 1), max(len(runs), 1))
    waiting = iter(runs)
    results: Results = {}
    failures: list[str] = []
    with (
        _Display(runs, jobs, console) as display,
        launch.Termination() as termination,
        _workers(jobs, cores) as workers,
    ):
        for worker in workers:
            worker.begin(next(waiting, None), out, do)
        while busy := [worker for worker in workers if worker.run]:
            done, _ = wait([worker.future for worker in busy], timeout=0.2, return_when=FIRST_COMPLETED)
            for worker in busy:
                for step in worker.steps():
                    display.reached(worker.run.name, step)
                if worker.future not in done:
                    continue
                name = worker.run.name
                try:
                    results[name] = worker.future.result()
                    display.done(name)
                    finished(results)
                except BrokenProcessPool:
                    failures.append(f"{name}: its process died ({worker.cause()})")
                except UserError as error:
                    failures.append(f"{name}: {error}")
                except Exception as error:
                    display.say("".join(traceback.format_exception(error)))
                    failures.append(f"{name}: {traceback.format_exception_only(error)[-1].strip()}")
                if name not in results:
                    display.say(f"failed: {failures[-1]}")
                worker.begin(next(waiting, None), out, do)
            display.refresh()
            if termination.requested:
                raise launch.Terminated(f"stopped by SIGTERM; {len(runs) - len(results)} runs are left")
    if failures:
        raise RunError(f"{len(failures)} of {len(runs)} runs failed; the first: {failures[0]}")
    return results


@contextlib.contextmanager
def _workers(jobs: int, cores: Sequence[int | None]) -> Iterator[list["_Worker"]]:
    """Workers that are stopped in the end, whatever happens; a run under way writes its checkpoint first."""
    workers = [_Worker(cores[index % len(cores)]) for index in range(jobs)]
    try:
        yield workers
    finally:
        wait([worker.future for worker in workers if worker.interrupt()], timeout=PATIENCE)
        for worker in workers:
            worker.end()


class _Worker:
    """A core, the process on it, and the run that it is at."""

    def __init__(self, core: int | None):
        self._core = core
        self._executor: Any = None
        self._pid = 0
        self.run: Any = None
        self.future: Future = Future()

    def begin(self, run: GridRun | None, out: Path, do: Do) -> None:
        """Start a run, in a new process where there is none; None ends the work."""
        self.run = run
        if run is None:
            return
        if self._executor is None:
            context = get_context("loky")
            self._reports, theirs = context.Pipe()
            self._executor = loky.ProcessPoolExecutor(
                1, context=context, initializer=_start, initargs=(self._core, theirs)
            )
        self.future = self._executor.submit(_work, do, run.config.to_dict(), out / "runs" / run.name)

    def steps(self) -> Iterator[int]:
        """The steps that the run has reached since the last call."""
        with contextlib.suppress(EOFError, OSError):
            while self._reports.poll():
                kind, value = self._reports.recv()
                if kind == "pid":
                    self._pid = value
                else:
                    yield value

    def cause(self) -> str:
        """How the process died, which is gone then."""
        code = str(self.future.exception()).rpartition("are {")[2].partition("}")[0]
        self.end()
        return code or "no exit code"

    def interrupt(self) -> bool:
        """Ask the run under way to stop; whether there is one to wait for."""
        if not self.run or self.future.done():
            return False
        list(self.steps())  # the first report says which process it is
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        return bool(self._pid)

    def end(self) -> None:
        """Have no process any more."""
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)
            self._executor, self._pid = None, 0


_reports: Any = None  # a worker's end of the pipe to its parent


def _start(core: int | None, reports: Any) -> None:
    """A worker begins."""
    global _reports
    _reports = reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, args=(reports,), daemon=True).start()
    if core is not None:
        os.sched_setaffinity(0, {core})  # before JAX makes its threads
    reports.send(("pid", os.getpid()))


def _work(do: Do, fields: dict[str, Any], workdir: Path) -> dict[str, Any]:
    return do(fields, workdir, lambda step: _reports.send(("step", step)))


def _end_with_parent(reports: Any) -> None:
    """End at once when the parent is gone, so that a study started anew has its runs to itself."""
    connection.wait([reports])  # nothing is ever sent this way: it is ready when the other end is closed
    os._exit(1)


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
