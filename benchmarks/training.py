"""Time of a training step against PyTorch: the same two models, batch, optimiser and cores.

    pip install -e .[bench]
    python -m benchmarks.training [--threads=1] [--rounds=9] [--steps=5] [--out=runs/benchmarks/training.csv]

A step is forward, backward, clipping and AdamW on 128 images of 28 x 28: the ViT (patch 4, dim 64, 4 layers)
and the CNN of size "s". Ours is the step that train.py makes; the peer is plain PyTorch. Both sides run under
the same allocator setting, which helps ours more, take turns on the same cores, and are compared round by
round.
"""

import argparse
import csv
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import image_problem
from benchmarks.interleaved import Quartiles, Worker, choose_cores, interleave, ratios
from errors import RunError, UserError
from training import launch

TARGETS = {"vit": 0.8, "cnn": 1.3}  # our time over PyTorch's, at most
COLUMNS = ("model", "parameters", "round", "threads", "ours_ms", "torch_ms", "ratio")


def measure(
    model: str, *, threads: int, rounds: int, steps: int
) -> tuple[int, tuple[list[float], list[float]]]:
    """The parameters of a model, and the seconds per step of our side and of PyTorch's, by round."""
    cores = choose_cores(threads)
    environment = launch.allocator_environment()
    ours = Worker("benchmarks.training_jax:prepare", {"model": model}, cores=cores, environment=environment)
    peer = Worker(
        "benchmarks.training_torch:prepare",
        {"model": model, "threads": threads},
        cores=cores,
        environment=environment,
    )
    with ours, peer:
        sizes = ours.facts["parameters"], peer.facts["parameters"]
        if sizes[0] != sizes[1]:
            raise RunError(f"the {model} has {sizes[0]:,} parameters here and {sizes[1]:,} in PyTorch")
        first, second = interleave((ours, peer), rounds=rounds, steps=steps, warmup=3)
    return sizes[0], (first, second)


def _spread(values: Sequence[float], digits: int) -> str:
    lower, median, upper = Quartiles.of(values)
    return f"{median:.{digits}f} ({lower:.{digits}f} to {upper:.{digits}f})"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; raises UserError where it can't be understood."""

    class Parser(argparse.ArgumentParser):
        def error(self, message: str):
            raise UserError(f"{message}; --help shows what is allowed")

    parser = Parser(prog="python -m benchmarks.training", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="cores and threads of each side; default 1")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each side; default 9")
    parser.add_argument("--steps", type=int, default=5, help="training steps in a turn; default 5")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/training.csv"))
    given = parser.parse_args(argv)
    if given.rounds < 2 or given.steps < 1:
        raise UserError("--rounds must be at least 2 and --steps at least 1")
    return given


def main() -> None:
    """The command."""
    given = parse(sys.argv[1:])
    if importlib.util.find_spec("torch") is None:
        raise UserError("PyTorch is not installed; it is in the extra: pip install -e .[bench]")
    console = Console()
    table = Table(title="ms per training step, median (quartiles)", title_justify="left", box=None)
    for name in ("model", "parameters", "ours", "PyTorch", "ours / PyTorch", "target", ""):
        table.add_column(name, justify="right")
    rows = []
    for model in image_problem.MODELS:
        console.print(
            f"{model}: compiling, then {given.rounds} rounds of {given.steps} steps", highlight=False
        )
        size, (ours, peer) = measure(model, threads=given.threads, rounds=given.rounds, steps=given.steps)
        quotients = ratios(ours, peer)
        for index, values in enumerate(zip(ours, peer, quotients, strict=True)):
            a, b, quotient = values
            row = (model, size, index, given.threads, f"{a * 1e3:.3f}", f"{b * 1e3:.3f}", f"{quotient:.4f}")
            rows.append(row)
        met = Quartiles.of(quotients).median <= TARGETS[model]
        table.add_row(
            model,
            f"{size:,}",
            _spread([a * 1e3 for a in ours], 1),
            _spread([b * 1e3 for b in peer], 1),
            _spread(quotients, 2),
            f"<= {TARGETS[model]}",
            "met" if met else "not met",
        )
    console.print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    console.print(f"wrote {given.out}", highlight=False)


if __name__ == "__main__":
    launch.run(main)
