"""How far a run is, how fast, and when it will be done."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


def clock(seconds: float) -> str:
    """Seconds as `m:ss`, or `h:mm:ss` from an hour on."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class StepTimer:
    """Time spent in training steps alone.

    Evaluation, checkpoints and the first, compiling steps are not counted, so that examples/s is the speed
    of training and the ETA does not jump after an evaluation.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.seconds = 0.0
        self._since: float | None = None

    def tick(self, steps: int) -> None:
        """`steps` more steps are done."""
        now = time.perf_counter()
        if self._since is not None:
            self.steps += steps
            self.seconds += now - self._since
        self._since = now

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Leave out what happens inside."""
        before = time.perf_counter()
        yield
        if self._since is not None:
            self._since += time.perf_counter() - before

    @property
    def rate(self) -> float:
        """Steps per second so far; 0 before the second report."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


class RunProgress:
    """Shows a run on the console: a live bar on a terminal, plain lines elsewhere.

    Args:
        total: the run's last step.
        batch_size: examples per step, on average.
        start: the step it starts from.
        console: where to show; None shows nothing.
        listener: called with each step reached, for a study that shows many runs as one.
    """

    def __init__(
        self,
        total: int,
        batch_size: float,
        *,
        start: int = 0,
        console: Console | None = None,
        listener: Callable[[int], None] | None = None,
    ):
        self.timer = StepTimer()
        self._total, self._batch_size = total, batch_size
        self._step = start
        self._console = console
        self._listener = listener
        self._bar: Progress | None = None
        if console is not None and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}  {task.fields[speed]}"),
                console=console,
            )
            self._task = self._bar.add_task("training", total=total, completed=start, speed="compiling")

    def __enter__(self) -> "RunProgress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *exception) -> None:
        if self._bar:
            self._bar.stop()

    def speed(self) -> str:
        """Examples per second and time left, as text."""
        rate = self.timer.rate
        if not rate:
            return "compiling"
        left = clock((self._total - self._step) / rate)
        return f"{rate * self._batch_size:,.0f} examples/s  ETA {left}"

    def reached(self, step: int, metrics: Mapping[str, float]) -> None:
        """A step whose metrics are known has been reached."""
        self.timer.tick(step - self._step)
        self._step = step
        if self._listener:
            self._listener(step)
        if self._bar:
            self._bar.update(self._task, completed=step, speed=self.speed())
        elif self._console:
            shown = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
            self.say(f"step {step}/{self._total}  {shown}  {self.speed()}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        if self._console:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
