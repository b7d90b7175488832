"""A trained CNN turned into a self-attention network that gives the same answers.

    python -m experiments.convolution_as_attention --preset=quick --out=runs/convolution_as_attention/quick
    python -m experiments.convolution_as_attention --run=runs/cnn --out=runs/convolution_as_attention/mine

Trains a CNN (or takes the best checkpoint of a run), replaces each of its convolutions by multi-head
self-attention over pixels with one head for each offset of the kernel (Cordonnier, Loukas and Jaggi 2020),
and puts every example of the test split through both. Ends with a table and DIR/results.csv. The same command
again uses the CNN that was trained before.
"""

import csv
import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict
from rich.console import Console

import train
from configs import image
from errors import ArgumentParser, RunError, UserError, unknown
from models.convolution_as_attention import as_attention
from training import config as configs
from training import launch
from training.state import evaluation_step

# Updates of the CNN that a preset trains.
PRESETS = {"quick": 400, "smoke": 20}


@dataclasses.dataclass(frozen=True)
class BothLogits:
    """What a compiled evaluation returns of a batch: the logits of the CNN, and of it as attention."""

    def evaluate(self, model, batch) -> dict[str, jax.Array]:
        """Logits `[B, classes]` of both networks."""
        return {"convolution": model(batch["image"]), "attention": as_attention(model)(batch["image"])}


def compare(evaluate, batches: Iterable[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """How far the two networks agree over all examples.

    Args:
        evaluate: `batch -> {"convolution": logits, "attention": logits}`.
        batches: with "label", and "weight" 0 for an example that only fills a batch up.

    Returns:
        The columns of results.csv.
    """
    examples = agreeing = 0
    correct = {"convolution": 0, "attention": 0}
    difference = largest = 0.0
    for batch in batches:
        real = np.asarray(batch["weight"]) > 0
        logits = {name: np.asarray(of)[real] for name, of in evaluate(batch).items()}
        predicted = {name: of.argmax(-1) for name, of in logits.items()}
        examples += int(real.sum())
        agreeing += int((predicted["convolution"] == predicted["attention"]).sum())
        for name, labels in predicted.items():
            correct[name] += int((labels == np.asarray(batch["label"])[real]).sum())
        apart = np.abs(logits["convolution"] - logits["attention"])
        difference = max(difference, float(apart.max(initial=0)))
        largest = max(largest, float(np.abs(logits["convolution"]).max(initial=0)))
    return {
        "examples": examples,
        "agreeing_predictions": agreeing,
        "max_logit_difference": difference,
        "max_logit": largest,
        **{f"{name}_accuracy": count / examples for name, count in correct.items()},
    }


def config_for(updates: int) -> ConfigDict:
    """The config of the CNN of a preset: variant xs on digits."""
    config = image.get_config("model=cnn,variant=xs,dataset=digits")
    config.duration = f"{updates} steps"
    config.evaluate_every = config.checkpoint_every = f"{-(-updates // 4)} steps"
    config.optimizer.learning_rate = 1e-2
    config.num_devices = 1
    return config


def measure(workdir: Path, config: ConfigDict) -> dict[str, Any]:
    """Compare the best checkpoint of a finished run with itself as attention, on the test split."""
    run = train.Run(config, workdir, None, None)
    run.prepare()
    if not run.restore() or run.best is None:
        raise RunError(f"{workdir} holds no good checkpoint; remove it to train again")
    both = evaluation_step(BothLogits(), run.structure)
    state = run.best.state
    return compare(lambda batch: both(state.params, state.statistics, batch), run.data.evaluation["test"]())


def parse(argv: Sequence[str]) -> tuple[Path, ConfigDict, Path]:
    """The run's folder, its config, and the folder for results, that a command line asks for."""
    parser = ArgumentParser(
        prog="python -m experiments.convolution_as_attention", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--preset", default="quick", help=f"one of {', '.join(PRESETS)}")
    parser.add_argument("--run", default=None, help="a finished run of a CNN to turn; default: train one")
    parser.add_argument("--out", default=None, help="where to; default runs/convolution_as_attention/PRESET")
    given = parser.parse_args(argv)
    if given.preset not in PRESETS:
        raise unknown("preset", given.preset, PRESETS)
    out = Path(given.out or f"runs/convolution_as_attention/{given.preset}").absolute()
    if given.run is None:
        return out / "run", config_for(PRESETS[given.preset]), out
    config = configs.load(Path(given.run))
    if config.get("model", {}).get("kind") != "cnn":
        raise UserError(f"--run={given.run} is no run of a CNN; its config.model.kind must be 'cnn'")
    if not config.checkpoint_every:
        raise UserError(f"--run={given.run} keeps no checkpoints; its config.checkpoint_every is ''")
    return Path(given.run), config, out


def main() -> None:
    """The command."""
    console = Console()
    workdir, config, out = parse(sys.argv[1:])
    launch.compilation_cache()
    out.mkdir(parents=True, exist_ok=True)
    train.train(config, workdir, console=console)
    row = measure(workdir, config)
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    for name, value in row.items():
        shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        console.print(f"{name.replace('_', ' '):22}{shown:>10}", highlight=False)
    console.print(f"wrote results.csv in {out}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
