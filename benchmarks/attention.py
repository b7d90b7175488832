"""Speed, memory and error of every mechanism: against dense, jax.nn, Flax, and libraries for PyTorch.

    python -m benchmarks.attention --preset=quick     # five minutes at most, on two idle cores
    pip install -e .[bench]                           # adds PyTorch and the libraries
    python -m benchmarks.attention --preset=full --out=/tmp/attention

All sides run in this process, on the same threads, and take turns; ratios are taken round by round. It
prints every target with what was measured, and writes all measurements as CSV and a figure. A target that is
missed is said, and is not an error.

Memory is asked for as train.py does it, or with --allocator=plain as a notebook does: then every large
temporary is new memory, which costs most where all scores are stored.
"""

import os
import sys

from training import launch

if __name__ == "__main__":  # before JAX and PyTorch are imported
    # After a call PyTorch's threads would wait in a loop, on the cores of whoever comes next.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "--allocator=plain" not in sys.argv:
        launch.with_allocator()

import dataclasses
import importlib
import importlib.util
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx
from rich.console import Console

import attention
from attention import dot_product
from benchmarks import attention_figure, attention_tables
from benchmarks.attention_cases import (
    AT,
    ATTEND_BAND,
    BAND,
    BAND_WINDOW,
    DENSE_BAND,
    GRID,
    LIBRARIES,
    LONG,
    MECHANISMS,
    at_length,
    attend_banded,
    exact,
    matmul,
    mechanism,
    unit,
)
from benchmarks.attention_results import BYTES, ERROR, SECONDS, Record, Results
from benchmarks.attention_timing import DIRECTIONS, FORWARD, Program, Shape, by_turns
from benchmarks.interleaved import choose_cores
from errors import ArgumentParser, unknown


@dataclasses.dataclass(frozen=True)
class Preset:
    """How much is measured.

    Attributes:
        lengths: for time and memory over the length.
        rounds: turns of each side, where they fit in the time.
        seconds: for the rounds of one race; three rounds are made in any case.
        backward: whether every mechanism's backward pass is measured over the lengths, and not the memory
            of a few alone.
        patient: whether a side that stores all scores is run at larger shapes of the grid once it was far
            behind at two in a row.
        long: shape at which blockwise has its targets.
        band: shape at which banded has its targets.
        grid: shapes among which "auto" has its target.
        at: shape at which errors and libraries are measured.
    """

    lengths: tuple[int, ...]
    rounds: int
    seconds: float
    backward: bool
    patient: bool
    long: Shape = LONG
    band: Shape = BAND
    grid: tuple[Shape, ...] = GRID
    at: Shape = AT


PRESETS = {
    "quick": Preset((512, 2048, 8192), rounds=9, seconds=1.0, backward=False, patient=False),
    "full": Preset((512, 1024, 2048, 4096, 8192), rounds=15, seconds=20.0, backward=True, patient=True),
}
BACKWARD = ("dense", "blockwise", "banded", "linear")  # whose backward pass has a target in memory
STORING = ("dense", "jax.nn")  # sides that store all scores, and fall further behind with the length
FAR_BEHIND = 2.0  # times the quickest
SLOW = 30.0  # times the quickest, where a single measurement is enough


class Side(NamedTuple):
    """A side of a race.

    Attributes:
        name: of the side.
        run: a compiled program of ours or of JAX's, or any function without arguments.
        cost: value of the cost parameter.
    """

    name: str
    run: Program | Callable[[], Any]
    cost: int = 0

    @property
    def identity(self) -> Any:
        """The same for sides that run one and the same program."""
        return self.run.identity if isinstance(self.run, Program) else self.run

    def bind(self) -> Callable[[], Any]:
        """A function that runs it once, to the end."""
        return self.run.bind() if isinstance(self.run, Program) else self.run


@dataclasses.dataclass
class Benchmark:
    """What the command line asks for, and what has been found.

    Attributes:
        preset: how much to measure.
        cores: to which this process is bound.
        allocator: "tuned" as by train.py, or "plain" as in a notebook.
        out: path of the files, without a suffix.
    """

    preset: Preset
    cores: tuple[int, ...]
    allocator: str
    out: Path
    results: Results = dataclasses.field(default_factory=Results)

    def __post_init__(self) -> None:
        self.peers: Any = None
        if installed("torch"):
            self.peers = importlib.import_module("benchmarks.attention_peers")
            self.peers.use_threads(len(self.cores))

    def run(self, console: Console) -> list[Path]:
        """Measure everything and write the files, whose paths are returned."""
        for part in (self.targets, self.choices, self.lengths, self.errors, self.libraries):
            start = time.monotonic()
            with console.status(f"measuring: {part.__name__}"):
                part()
            console.print(f"{part.__name__}: {time.monotonic() - start:.0f} s", style="dim")
        measurements = self.out.with_name(self.out.name + ".csv")
        self.results.write(measurements)
        return [measurements, *attention_figure.draw(self.results, self.out)]

    def race(
        self,
        part: str,
        shape: Shape,
        direction: str,
        sides: Iterable[Side],
        *,
        seconds: float | None = None,
        within: float | None = None,
    ) -> None:
        """Let sides take turns. Those with one and the same program run it once for all of them."""
        sides = list(sides)
        compile_together([side.run for side in sides if isinstance(side.run, Program)])
        leaders: dict[Any, Side] = {}
        for side in sides:
            leaders.setdefault(side.identity, side)
        times = by_turns(
            {identity: side.bind() for identity, side in leaders.items()},
            rounds=self.preset.rounds,
            seconds=seconds or self.preset.seconds,
            within=within,
        )
        for side in sides:
            program = leaders[side.identity].name
            self.results.add(
                Record(part, side.name, program, direction, *shape, side.cost, SECONDS, number, value)
                for number, value in enumerate(times[side.identity])
            )

    def targets(self) -> None:
        """Blockwise against its peers, and banded against dense under its mask."""
        shape, product = self.preset.long, matmul()
        for direction in DIRECTIONS:
            sides = [
                Side("blockwise", mechanism("blockwise").program(shape, direction)),
                Side("jax.nn", Program(jax.nn.dot_product_attention, shape, direction)),
                Side("Flax", Program(nnx.dot_product_attention, shape, direction)),
                Side("matmul", product),
                *self._torch(shape, direction),
            ]
            self.race("targets", shape, direction, sides, seconds=10 * self.preset.seconds)
        shape = self.preset.band
        banded = partial(attention.banded_attention, window=BAND_WINDOW)
        dense = exact("dense", window=BAND_WINDOW)(dot_product, shape, 0)
        for direction in DIRECTIONS:
            sides = [
                Side("banded", Program(banded, shape, direction)),
                Side(DENSE_BAND, Program(dense, shape, direction)),
                Side(ATTEND_BAND, Program(attend_banded, shape, direction)),
            ]
            self.race("targets", shape, direction, sides, seconds=4 * self.preset.seconds)

    def choices(self) -> None:
        """The choice of "auto" against all that it could have chosen, and torch."""
        for direction in DIRECTIONS:
            behind: dict[str, int] = {}
            for shape in self.preset.grid:
                sides = [
                    Side("dense", mechanism("dense").program(shape, direction)),
                    Side("blockwise", mechanism("blockwise").program(shape, direction)),
                    Side("jax.nn", Program(jax.nn.dot_product_attention, shape, direction)),
                    *self._torch(shape, direction),
                    Side("auto", Program(exact("auto")(dot_product, shape, 0), shape, direction)),
                ]
                if not self.preset.patient:
                    sides = [
                        side for side in sides if side.name not in STORING or behind.get(side.name, 0) < 2
                    ]
                self.race("auto", shape, direction, sides, within=FAR_BEHIND)
                for side in sides:
                    found = self.results.values(part="auto", side=side.name, shape=shape, direction=direction)
                    behind[side.name] = behind.get(side.name, 0) + 1 if len(found) == 1 else 0

    def lengths(self) -> None:
        """Time and memory of every mechanism over the length."""
        for T in self.preset.lengths:
            shape = at_length(T)
            for direction in DIRECTIONS:
                timed = direction == FORWARD or self.preset.backward
                programs = {
                    m.name: m.program(shape, direction) for m in MECHANISMS if timed or m.name in BACKWARD
                }
                compile_together(programs.values())
                self.results.add(
                    Record("lengths", name, name, direction, *shape, mechanism(name).usual, BYTES, 0, memory)
                    for name, memory in ((name, p.temporary_bytes) for name, p in programs.items())
                )
                if timed:
                    sides = [Side(name, program, mechanism(name).usual) for name, program in programs.items()]
                    sides += [
                        Side("jax.nn", Program(jax.nn.dot_product_attention, shape, direction)),
                        *self._torch(shape, direction),
                    ]
                    self.race("lengths", shape, direction, sides, within=SLOW)

    def errors(self) -> None:
        """How far the approximations are from dense, and their time, over their cost parameter."""
        shape = self.preset.at
        dense = {shared: reference(shape, shared) for shared in (False, True)}
        exactly = {shared: np.asarray(program.bind()()) for shared, program in dense.items()}
        programs = {
            (m.name, cost): m.program(shape, FORWARD, cost)
            for m in MECHANISMS
            if m.approximates
            for cost in m.costs
        }
        sides = [Side(name, program, cost) for (name, cost), program in programs.items()]
        self.race("errors", shape, FORWARD, [Side("dense", dense[False]), *sides])
        for (name, cost), program in programs.items():
            error = relative_error(program.bind()(), exactly[mechanism(name).shared])
            self.results.add([Record("errors", name, name, FORWARD, *shape, cost, ERROR, 0, error)])

    def libraries(self) -> None:
        """Every library for PyTorch against ours of the same kind."""
        shape = self.preset.at
        for library in LIBRARIES:
            if self.peers is None or not installed(library.module):
                continue
            ours = mechanism(library.mechanism)
            for direction in DIRECTIONS:
                peer = self.peers.bind(self.peers.build(library, shape), shape, direction)
                sides = [
                    Side(ours.name, ours.program(shape, direction, library.cost), library.cost),
                    Side(library.package, peer, library.cost),
                ]
                self.race("libraries", shape, direction, sides)

    def _torch(self, shape: Shape, direction: str) -> list[Side]:
        if self.peers is None:
            return []
        return [Side("torch", self.peers.bind(self.peers.fused, shape, direction))]


def compile_together(programs: Iterable[Program]) -> None:
    """Compile on two threads: XLA alone does not always keep two cores busy."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda program: program.compiled, programs))


def reference(shape: Shape, shared: bool) -> Program:
    """What approximations are compared with: dense attention, with queries as keys where these are shared."""
    dense = exact("dense")(dot_product, shape, 0)

    def on_shared(query, key, value):
        return dense(query, unit(query), value)

    return Program(on_shared if shared else dense, shape, FORWARD)


def relative_error(found: Any, exactly: np.ndarray) -> float:
    """Root mean square of the difference, over that of what is right."""
    difference = np.asarray(found, np.float64) - exactly
    return float(np.linalg.norm(difference) / np.linalg.norm(exactly.astype(np.float64)))


def installed(module: str) -> bool:
    """Whether a module's package can be imported."""
    return importlib.util.find_spec(module.split(".")[0]) is not None


def conditions(benchmark: Benchmark, seconds: float) -> str:
    """What a reader must know to repeat the measurement."""
    packages = ["jax", "flax"] + ["torch"] * (benchmark.peers is not None)
    packages += [library.package for library in LIBRARIES if installed(library.module)]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    missing = [name for name in ("torch",) if not installed(name)]
    missing += [library.package for library in LIBRARIES if not installed(library.module)]
    cores = ", ".join(map(str, benchmark.cores))
    lines = [
        f"float32, {len(benchmark.cores)} threads on cores {cores}, {benchmark.allocator} allocator;",
        f"{versions}.",
        "Loss: the sum of the output times fixed random numbers; gradients in query, key and value.",
    ]
    if missing:
        lines.append(f"not installed, so left out: {', '.join(missing)} (pip install -e .[bench])")
    lines.append(f"{seconds:.0f} s in all")
    return "\n".join(lines)


def parse(argv: Sequence[str]) -> Benchmark:
    """The benchmark that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(prog="python -m benchmarks.attention", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="quick", help=f"one of {', '.join(PRESETS)}; default quick")
    parser.add_argument("--allocator", choices=("tuned", "plain"), default="tuned", help="default tuned")
    parser.add_argument("--threads", type=int, default=2, help="cores, and threads of every side")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/benchmarks/attention"),
        help="path of the files to write, without a suffix; .csv, .png and .svg are added",
    )
    given = parser.parse_args(argv)
    if given.preset not in PRESETS:
        raise unknown("preset", given.preset, PRESETS)
    return Benchmark(PRESETS[given.preset], tuple(choose_cores(given.threads)), given.allocator, given.out)


def main() -> None:
    """The command."""
    benchmark = parse(sys.argv[1:])
    os.sched_setaffinity(0, benchmark.cores)  # before JAX counts the cores for its threads
    launch.compilation_cache()
    console, start = Console(), time.monotonic()
    files = benchmark.run(console)
    for table in attention_tables.all_of(benchmark.results):
        console.print(table)
        console.print()
    console.print(attention_tables.summary(benchmark.results))
    console.print(conditions(benchmark, time.monotonic() - start), highlight=False, markup=False)
    console.print(f"wrote {', '.join(map(str, files))}", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
