"""Sentences per second of greedy and beam search, by four generations of decoders; and what a cache is worth.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --batch=1 --tokens=40 --size=tiny --out=/tmp/decoding.csv

Sentences of so many tokens become sentences of as many, by the models of configs/translation.py with random
parameters that never end a sentence. Besides, the Transformer's greedy search over 64 tokens is timed with
its cache of keys and values, and without: then each step runs the decoder over all 64 places, as the fixed
shapes of a compiled loop ask for. All sides run in this process and take turns.

A target that is missed is said, and is not an error. It takes about half a minute.
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
import jax.numpy as jnp
import numpy as np
from flax import nnx
from rich.console import Console
from rich.table import Table

from benchmarks.attention_timing import by_turns
from benchmarks.interleaved import Quartiles, choose_cores, ratios
from configs import blocks
from errors import ArgumentParser, RunError, UserError
from models.decoders.decoder import Cache, Memory
from models.encoder_decoder import ENCODER_DECODER, END, EncoderDecoder
from models.inputs import TokenInputs
from models.search import Search, decode
from spec import spec

MODELS = {
    "rnn, no attention": ("rnn", "none"),
    "rnn, Bahdanau": ("rnn", "bahdanau"),
    "convolution": ("convolution", None),
    "transformer": ("transformer", None),
}
BEAMS = (1, 5)
VOCABULARY = 4000
LONG = 64  # tokens over which the cache is put to the test
LEAST = 5.0  # times as fast as without
COLUMNS = ("model", "beam", "cached", "batch", "tokens", "round", "milliseconds", "sentences_per_second")


class Uncached:
    """A model that remembers tokens alone, and runs its decoder anew over all places at each step."""

    def __init__(self, model: EncoderDecoder):
        self.model, self.encode = model, model.encode

    def start(self, memory: Memory, length: int) -> Cache:
        """No tokens yet."""
        batch = len(memory.mask)
        return Cache(memory, (jnp.zeros((batch, length), jnp.int32), jnp.zeros(batch, jnp.int32)))

    def step(self, cache: Cache, token: jax.Array) -> tuple[jax.Array, Cache]:
        """The logits after one more token, and all tokens."""
        before, index = cache.past
        rows = jnp.arange(len(index))
        before = before.at[rows, index].set(token)
        y = self.model.tokens.positions(self.model.tokens.embedding(before))
        vectors = self.model.decoder(y, cache.memory).vectors[rows, index]
        return self.model.tokens.logits(vectors, None), Cache(cache.memory, (before, index + 1))


@dataclasses.dataclass(frozen=True)
class Side:
    """One way to decode.

    Attributes:
        model: one of `MODELS`.
        beam: hypotheses kept.
        tokens: of each sentence, read and made.
        cached: whether steps build on what was computed before.
    """

    model: str
    beam: int
    tokens: int
    cached: bool = True

    def bind(self, size: str, batch: int) -> Callable[[], Any]:
        """Decode a batch of random sentences, compiled: a function that returns when the result is there."""
        model = make(self.model, size)
        structure, parameters = nnx.split(model)
        search = Search(beam=self.beam, max_ratio=0.0, max_extra=self.tokens)

        def run(parameters, columns):
            model = nnx.merge(structure, parameters)
            return decode(model if self.cached else Uncached(model), columns, search)

        words = np.random.default_rng(0).integers(END + 1, VOCABULARY, (batch, self.tokens), np.int32)
        inputs = jax.device_put((parameters, {"words": words, "mask": np.ones(words.shape, bool)}))
        program = jax.jit(run).lower(*inputs).compile()
        return lambda: jax.block_until_ready(program(*inputs))


def make(name: str, size: str) -> EncoderDecoder:
    """A model of `MODELS` with random parameters that never ends a sentence."""
    kind, attention = MODELS[name]
    block = blocks.encoder_decoder(
        kind, size=size, dropout_rate=0.0, attention=attention, inputs=spec(TokenInputs)
    )
    model = ENCODER_DECODER.build(
        block, "config.model", columns={"words": VOCABULARY}, vocab_size=VOCABULARY, rngs=nnx.Rngs(params=0)
    )
    bias: Any = model.tokens.bias if model.tokens.output is None else model.tokens.output.bias
    bias[...] = bias[...].at[END].set(-jnp.inf)
    return model


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What the command line asks for."""

    size: str
    batch: int
    tokens: int
    cores: tuple[int, ...]
    rounds: int
    patience: float
    out: Path

    @property
    def groups(self) -> list[list[Side]]:
        """What takes turns with each other: all models by each search, and the cache against none."""
        searches = [[Side(model, beam, self.tokens) for model in MODELS] for beam in BEAMS]
        return [*searches, [Side("transformer", 1, LONG, cached) for cached in (True, False)]]

    def run(self, console: Console) -> dict[Side, list[float]]:
        """Seconds per batch of every side, by round."""
        found: dict[Side, list[float]] = {}
        for sides in self.groups:
            with console.status(f"{sides[0].tokens} tokens, beam {sides[0].beam}"):
                runs = {side: side.bind(self.size, self.batch) for side in sides}
                found |= by_turns(runs, rounds=self.rounds, seconds=self.patience)
        return found

    def write(self, found: dict[Side, list[float]]) -> None:
        """One row for each turn of each side."""
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            with self.out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for side, times in found.items():
                    facts = (side.model, side.beam, side.cached, self.batch, side.tokens)
                    for number, seconds in enumerate(times):
                        writer.writerow(
                            (*facts, number, f"{1e3 * seconds:.3f}", f"{self.batch / seconds:.2f}")
                        )
        except OSError as error:
            raise RunError(f"could not write {self.out}: {error.strerror or error}") from error

    def table(self, found: dict[Side, list[float]]) -> Table:
        """Medians, with the bounds of the middle half of all rounds."""
        shown = Table(title="Sentences per second: median (quartiles)", title_justify="left", box=None)
        shown.add_column("model")
        for heading in ("tokens", "search", "sentences/s"):
            shown.add_column(heading, justify="right")
        for side, times in found.items():
            name = side.model if side.cached else f"{side.model}, no cache"
            search = "greedy" if side.beam == 1 else f"beam {side.beam}"
            speed = Quartiles.of([self.batch / seconds for seconds in times]).text(",.1f")
            shown.add_row(name, str(side.tokens), search, speed)
        return shown

    def conditions(self) -> str:
        """What a reader must know to repeat the measurement."""
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "flax"))
        return (
            f"size {self.size}, vocabulary {VOCABULARY:,}, batch {self.batch}, float32; {len(self.cores)} "
            f"thread(s) on core(s) {', '.join(map(str, self.cores))}; {versions}."
        )


def verdict(found: dict[Side, list[float]]) -> str:
    """How many times as fast the cache makes it."""
    cached, uncached = (found[Side("transformer", 1, LONG, cached)] for cached in (True, False))
    gain = Quartiles.of(ratios(uncached, cached))
    met = "met" if gain.median >= LEAST else "not met"
    return f"cached decoding of {LONG} tokens: {gain.text('.1f')} times as fast (target: {LEAST:.0f}, {met})"


def parse(argv: Sequence[str]) -> Benchmark:
    """The benchmark that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(prog="python -m benchmarks.decoding", description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="small", help="of the models, as in configs/translation.py")
    parser.add_argument("--batch", type=int, default=16, help="sentences at once")
    parser.add_argument("--tokens", type=int, default=20, help="of a sentence, read and made")
    parser.add_argument("--threads", type=int, default=1, help="cores, and threads of every side")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each side; fewer where slow")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds for all rounds of a comparison")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/decoding.csv"), help="CSV file")
    given = parser.parse_args(argv)
    for name, least in (("batch", 1), ("tokens", 2), ("rounds", 3)):
        if getattr(given, name) < least:
            raise UserError(f"--{name} is {getattr(given, name)}; it must be at least {least}")
    cores = tuple(choose_cores(given.threads))
    return Benchmark(given.size, given.batch, given.tokens, cores, given.rounds, given.patience, given.out)


def main() -> None:
    """The command."""
    benchmark = parse(sys.argv[1:])
    os.sched_setaffinity(0, benchmark.cores)  # before JAX counts the cores for its threads
    launch.compilation_cache()
    console = Console()
    found = benchmark.run(console)
    benchmark.write(found)
    console.print(benchmark.table(found))
    for line in (verdict(found), benchmark.conditions(), f"wrote {benchmark.out}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
