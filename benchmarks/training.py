"""The time of a training step: our models against the same ones written plainly in PyTorch.

    pip install -e .[bench]
    python -m benchmarks.training
    python -m benchmarks.training --threads=2 --models=vit --out=/tmp/training.csv

A step is forward pass, backward pass, clipping and AdamW on a batch of Fashion-MNIST's shape, as
configs/image.py has it; our side is the very step that train.py makes. Both sides are bound to the same
cores, have the allocator setting of train.py, and take turns (see benchmarks.interleaved). It takes less
than two minutes.
"""

import contextlib
import csv
import dataclasses
import importlib.util
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import image_problem
from benchmarks.interleaved import Quartiles, Worker, choose_cores, interleave, ratios
from errors import ArgumentParser, RunError, UserError, unknown
from training import launch

TARGETS = {"vit": 0.8, "cnn": 1.3}  # our time over PyTorch's, at most
OURS, PEER, PEER_AS_IT_COMES = "ours", "PyTorch", "PyTorch, as it comes"
SIDES = (OURS, PEER, PEER_AS_IT_COMES)
COLUMNS = ("model", "side", "parameters", "threads", "round", "ms_per_step")
WARMUP = 3


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What was measured of one model.

    Attributes:
        model: "vit" or "cnn".
        parameters: of either side.
        milliseconds: for each side, a step's time in each round.
    """

    model: str
    parameters: int
    milliseconds: dict[str, list[float]]

    def ratio(self, side: str) -> Quartiles:
        """Our time over a side's, paired by round."""
        return Quartiles.of(ratios(self.milliseconds[OURS], self.milliseconds[side]))

    def met(self, side: str) -> bool:
        """Whether the median ratio to a side reaches the target."""
        return self.ratio(side).median <= TARGETS[self.model]


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What the command line asks for."""

    models: tuple[str, ...]
    cores: tuple[int, ...]
    rounds: int
    steps: int
    out: Path

    def compare(self, model: str, console: Console) -> Comparison:
        """Measure one model on all sides."""
        with contextlib.ExitStack() as stack, console.status(f"{model}: preparing and compiling") as status:
            workers = [stack.enter_context(self._worker(side, model)) for side in SIDES]
            counts = {side: worker.facts["parameters"] for side, worker in zip(SIDES, workers, strict=True)}
            if len(set(counts.values())) > 1:
                raise RunError(f"the models to compare differ in parameters: {model} {counts}")
            for worker in workers:
                worker.run(WARMUP)
            status.update(f"{model}: {self.rounds} rounds of {self.steps} steps for each side")
            seconds = interleave(workers, rounds=self.rounds, steps=self.steps)
        times = {side: [1e3 * s for s in of_side] for side, of_side in zip(SIDES, seconds, strict=True)}
        return Comparison(model, counts[OURS], times)

    def _worker(self, side: str, model: str) -> Worker:
        environment = {**launch.allocator_environment(), "JAX_PLATFORMS": "cpu"}
        if side == PEER_AS_IT_COMES:
            environment.pop("GLIBC_TUNABLES", None)
        arguments: dict[str, str | int] = {"model": model}
        if side == OURS:
            prepare = "benchmarks.training_jax:prepare"  # JAX counts the cores it is bound to
        else:
            prepare = "benchmarks.training_torch:prepare"
            arguments["threads"] = len(self.cores)
        return Worker(prepare, arguments, cores=self.cores, environment=environment)

    def write(self, comparisons: Sequence[Comparison]) -> None:
        """One row for each turn of each side."""
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            with self.out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for found in comparisons:
                    for side, times in found.milliseconds.items():
                        for number, time in enumerate(times):
                            facts = (found.model, side, found.parameters, len(self.cores), number)
                            writer.writerow((*facts, f"{time:.3f}"))
        except OSError as error:
            raise RunError(f"could not write {self.out}: {error.strerror or error}") from error


def table(comparisons: Sequence[Comparison]) -> Table:
    """Medians, with the bounds of the middle half of all rounds; it fits 80 columns."""
    shown = Table(title="A training step: median (quartiles)", title_justify="left", box=None)
    for heading in ("model", "side"):
        shown.add_column(heading)
    for heading in ("ms", "ours / it", "target"):
        shown.add_column(heading, justify="right")
    for found in comparisons:
        for side in SIDES:
            name = found.model if side == OURS else ""
            times = Quartiles.of(found.milliseconds[side]).text(".0f")
            if side == OURS:
                shown.add_row(name, side, times, "", "")
            else:
                verdict = "[green]met[/]" if found.met(side) else "[red]not met[/]"
                target = f"≤ {TARGETS[found.model]} {verdict}"
                shown.add_row(name, side, times, found.ratio(side).text(".2f"), target)
    return shown


def conditions(benchmark: Benchmark) -> str:
    """What a reader must know to repeat the measurement."""
    height, width, channels = image_problem.IMAGE_SHAPE
    batch = image_problem.config(benchmark.models[0]).batch_size
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "torch"))
    return (
        f"Batch {batch} of {height} × {width} × {channels}, float32, {len(benchmark.cores)} thread(s) on "
        f"core(s) {', '.join(map(str, benchmark.cores))}; {benchmark.rounds} rounds of {benchmark.steps} "
        f"steps; {versions}.\n"
        f"{OURS} and {PEER} run with the allocator settings of train.py, {PEER_AS_IT_COMES} does not. "
        f"A ratio below 1 means ours is faster; it is taken round by round."
    )


def parse(argv: Sequence[str]) -> Benchmark:
    """The benchmark that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(prog="python -m benchmarks.training", description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(TARGETS), help="comma separated; default all")
    parser.add_argument("--threads", type=int, default=1, help="cores, and threads of either side")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each side, at least 2")
    parser.add_argument("--steps", type=int, default=5, help="training steps in a turn")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/training.csv"), help="CSV file")
    given = parser.parse_args(argv)
    models = tuple(given.models.split(","))
    for model in models:
        if model not in TARGETS:
            raise unknown("model", model, TARGETS)
    if given.rounds < 2 or given.steps < 1:
        raise UserError(
            f"--rounds is {given.rounds} and --steps {given.steps}; they must be at least 2 and 1"
        )
    return Benchmark(models, tuple(choose_cores(given.threads)), given.rounds, given.steps, given.out)


def main() -> None:
    """The command."""
    benchmark = parse(sys.argv[1:])
    if importlib.util.find_spec("torch") is None:
        raise UserError(
            "the peer of this benchmark needs PyTorch, which is not installed: pip install -e .[bench]"
        )
    console = Console()
    comparisons = [benchmark.compare(model, console) for model in benchmark.models]
    benchmark.write(comparisons)
    console.print(table(comparisons))
    console.print(conditions(benchmark), highlight=False, markup=False)
    console.print(f"wrote {benchmark.out}", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
