"""Truncated against full self-attention over 5, 20 and 80 seconds of speech: time and memory by length.

    python -m benchmarks.truncated_attention
    python -m benchmarks.truncated_attention --seconds=5,20 --out=/tmp/truncated_attention.csv

One recording goes forward and backward through a Transformer encoder on log-mel frames, 98 a second.
Truncated attention sees 31 frames (0.3 s) to either side; full attention sees all of them, once with all
scores in memory and once block by block, which saves the memory and not the time. All sides run in this
process and take turns. The sound is that of Free Spoken Digits, joined, where these are prepared, and else
noise, which costs the same.

The exponent p of `cost ~ length^p` is fitted to each. A target that is missed is said, and is not an error.
It takes about two minutes.
"""

import os
import sys

from training import launch

if __name__ == "__main__":  # before JAX is imported
    launch.with_allocator()

import csv
import dataclasses
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from rich.console import Console
from rich.table import Table

from benchmarks.attention_timing import by_turns, random, slope
from benchmarks.interleaved import Quartiles, choose_cores
from data.speech import load as load_speech
from data.speech.mel import LogMel
from data.speech.types import Wave
from errors import ArgumentParser, RunError, UserError
from models.encoders.transformer import TransformerEncoder
from models.layers.linear import Linear
from models.rngs import named

TRUNCATED = "truncated"
SIDES: dict[str, dict[str, Any]] = {
    TRUNCATED: {"kind": "banded", "window": (31, 31)},
    "full": {"kind": "dot_product", "implementation": "dense"},
    "full, blockwise": {"kind": "dot_product", "implementation": "blockwise"},
}
MOST = 1.2  # the exponent of truncated attention in either cost, at most
COLUMNS = ("attention", "seconds", "frames", "round", "milliseconds", "temporary_mib")
RATE = 8_000  # samples per second
LAYERS, WIDTH, HEADS, HIDDEN = 2, 64, 2, 128
SECONDS = (5, 20, 80)


class Encoder(nnx.Module):
    """Frames to vectors through a Transformer encoder with one mechanism of attention."""

    def __init__(self, attention: dict[str, Any], channels: int):
        rngs = nnx.Rngs(params=0)
        self.inputs = Linear(channels, WIDTH, rngs=named(rngs, "inputs"))
        self.encoder = TransformerEncoder(
            WIDTH,
            num_layers=LAYERS,
            num_heads=HEADS,
            hidden_dim=HIDDEN,
            attention=attention,
            rngs=named(rngs, "encoder"),
        )

    def __call__(self, frames: jax.Array, mask: jax.Array) -> jax.Array:
        """Encode frames `[B, T, C]`."""
        return self.encoder(self.inputs(frames), mask)


class Step:
    """The forward and backward pass of an encoder on one recording, compiled.

    The loss is the sum of the output times fixed random numbers; gradients are taken in all parameters.

    Args:
        attention: the mechanism, as a config has it.
        frames: float32 `[T, C]`.
    """

    def __init__(self, attention: dict[str, Any], frames: np.ndarray):
        structure, parameters = nnx.split(Encoder(attention, frames.shape[1]))

        def loss(parameters, frames, mask, cotangent):
            return (nnx.merge(structure, parameters)(frames, mask) * cotangent).sum()

        batch = frames[None], np.ones((1, len(frames)), bool), random("cotangent", (1, len(frames), WIDTH))
        self._inputs = jax.device_put((parameters, *batch))
        self._lowered = jax.jit(jax.value_and_grad(loss)).lower(*self._inputs)

    def temporary_bytes(self) -> int:
        """The most memory that temporaries take at once."""
        # Where XLA on CPU hands steps to another library, it does not count that library's memory.
        apart: dict[str, str | bool] = {"xla_cpu_experimental_ynn_fusion_type": ""}
        options = apart if jax.default_backend() == "cpu" else None
        analysis = self._lowered.compile(compiler_options=options).memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes

    def bind(self) -> Callable[[], Any]:
        """The step as a function without arguments, which returns when the result is there."""
        program = self._lowered.compile()
        return lambda: jax.block_until_ready(program(*self._inputs))


@dataclasses.dataclass(frozen=True)
class Measured:
    """The cost of a step of one side at one length.

    Attributes:
        attention: the side.
        seconds: of sound.
        frames: of it.
        times: seconds of a step, by round.
        temporary_bytes: of a step.
    """

    attention: str
    seconds: int
    frames: int
    times: list[float]
    temporary_bytes: int


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What the command line asks for."""

    seconds: tuple[int, ...]
    cores: tuple[int, ...]
    rounds: int
    patience: float
    data_dir: str | None
    out: Path

    def run(self, samples: np.ndarray, console: Console) -> list[Measured]:
        """Measure every side at every length."""
        found = []
        for seconds in self.seconds:
            frames = LogMel(RATE)(np.resize(samples, seconds * RATE))
            with console.status(f"{seconds} s, {len(frames):,} frames"):
                steps = {name: Step(attention, frames) for name, attention in SIDES.items()}
                memory = {name: step.temporary_bytes() for name, step in steps.items()}
                runs = {name: step.bind() for name, step in steps.items()}
                times = by_turns(runs, rounds=self.rounds, seconds=self.patience)
            found += [Measured(name, seconds, len(frames), times[name], memory[name]) for name in SIDES]
        return found

    def write(self, found: Sequence[Measured]) -> None:
        """One row for each turn of each side."""
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            with self.out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for one in found:
                    for number, time in enumerate(one.times):
                        facts = (one.attention, one.seconds, one.frames, number)
                        writer.writerow((*facts, f"{1e3 * time:.3f}", f"{one.temporary_bytes / 2**20:.2f}"))
        except OSError as error:
            raise RunError(f"could not write {self.out}: {error.strerror or error}") from error


def speech(data_dir: str | None) -> tuple[np.ndarray, str]:
    """Samples at 8 kHz, as many as there are of Free Spoken Digits' test, and what they are."""
    try:
        recordings = load_speech.labelled("fsdd", data_dir=data_dir).test
    except UserError:
        return 0.1 * random("noise", (RATE,)), "noise"
    waves = [recording.sound for recording in recordings if isinstance(recording.sound, Wave)]
    return np.concatenate([wave.samples for wave in waves]), "Free Spoken Digits, joined"


def exponents(found: Sequence[Measured]) -> dict[str, tuple[float, float]]:
    """For each side the p of `cost ~ frames^p`: of the median time, and of the memory."""
    fitted = {}
    for name in SIDES:
        own = [one for one in found if one.attention == name]
        lengths = [one.frames for one in own]
        microseconds = [1e6 * float(np.median(one.times)) for one in own]
        memory = [float(one.temporary_bytes) for one in own]
        fitted[name] = slope(lengths, microseconds), slope(lengths, memory)
    return fitted


def table(found: Sequence[Measured]) -> Table:
    """Medians, with the bounds of the middle half of all rounds."""
    shown = Table(title="Forward and backward: median (quartiles)", title_justify="left", box=None)
    shown.add_column("attention")
    for heading in ("s", "frames", "ms", "temporary MiB"):
        shown.add_column(heading, justify="right")
    for one in sorted(found, key=lambda one: list(SIDES).index(one.attention)):
        times = Quartiles.of([1e3 * time for time in one.times]).text(".0f")
        memory = f"{one.temporary_bytes / 2**20:,.1f}"
        shown.add_row(one.attention, str(one.seconds), f"{one.frames:,}", times, memory)
    return shown


def verdicts(found: Sequence[Measured]) -> str:
    """The exponents, one line for each side."""
    lines = []
    for name, (time, memory) in exponents(found).items():
        line = f"{name}: time ~ length^{time:.2f}, memory ~ length^{memory:.2f}"
        if name == TRUNCATED:
            met = "met" if max(time, memory) <= MOST else "not met"
            line += f" (target: at most {MOST} in both, {met})"
        lines.append(line)
    return "\n".join(lines)


def conditions(benchmark: Benchmark, sound: str) -> str:
    """What a reader must know to repeat the measurement."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "flax"))
    return (
        f"{LAYERS} layers, width {WIDTH}, {HEADS} heads, hidden {HIDDEN}, batch 1, float32; {sound}; "
        f"{len(benchmark.cores)} thread(s) on core(s) {', '.join(map(str, benchmark.cores))}; {versions}."
    )


def parse(argv: Sequence[str]) -> Benchmark:
    """The benchmark that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(
        prog="python -m benchmarks.truncated_attention", description=__doc__.splitlines()[0]
    )
    lengths = ",".join(map(str, SECONDS))
    parser.add_argument("--seconds", default=lengths, help=f"of sound, comma separated; default {lengths}")
    parser.add_argument("--threads", type=int, default=1, help="cores, and threads of every side")
    parser.add_argument(
        "--rounds", type=int, default=9, help="turns of each side, at least 3; fewer where slow"
    )
    parser.add_argument("--patience", type=float, default=60.0, help="seconds for all rounds of a length")
    parser.add_argument("--data_dir", default=None, help="where prepared data sets are")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/benchmarks/truncated_attention.csv"), help="CSV file"
    )
    given = parser.parse_args(argv)
    try:
        seconds = tuple(sorted({int(word) for word in given.seconds.split(",")}))
    except ValueError:
        seconds = ()
    if len(seconds) < 2 or seconds[0] < 1:
        raise UserError(
            f"--seconds is {given.seconds!r}; at least two different whole numbers from 1 are needed"
        )
    if given.rounds < 3:
        raise UserError(f"--rounds is {given.rounds}; it must be at least 3")
    cores = tuple(choose_cores(given.threads))
    return Benchmark(seconds, cores, given.rounds, given.patience, given.data_dir, given.out)


def main() -> None:
    """The command."""
    benchmark = parse(sys.argv[1:])
    os.sched_setaffinity(0, benchmark.cores)  # before JAX counts the cores for its threads
    launch.compilation_cache()
    samples, sound = speech(benchmark.data_dir)
    console = Console()
    found = benchmark.run(samples, console)
    benchmark.write(found)
    console.print(table(found))
    console.print(verdicts(found), highlight=False, markup=False, soft_wrap=True)
    console.print(conditions(benchmark, sound), highlight=False, markup=False, soft_wrap=True)
    console.print(f"wrote {benchmark.out}", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
