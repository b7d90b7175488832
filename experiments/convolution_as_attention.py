"""A trained CNN turned into a self-attention network that gives the same answers.

    python -m experiments.convolution_as_attention --preset=quick --out=runs/convolution_as_attention/quick
    python -m experiments.convolution_as_attention --run=runs/cnn --out=runs/convolution_as_attention/mine

Trains a CNN (or takes the best checkpoint of a run), replaces each of its convolutions by multi-head
self-attention over pixels with one head for each offset of the kernel (Cordonnier, Loukas and Jaggi 2020),
and puts every example of the test split through both. Ends with a table and DIR/{results.csv, manifest.json}.
The same command again uses the CNN that was trained before.
"""

import argparse
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict
from rich.console import Console

import train
from configs import EXPERIMENT
from errors import RunError, UserError
from experiments.framework import command, results, study
from experiments.framework.contests import Contest, Entry, Metric, Run
from experiments.framework.outcome import Outcome
from experiments.framework.results import AMOUNT, COUNT, SHARE, Column
from models.convolution_as_attention import as_attention
from training import config as configs
from training import launch
from training.state import evaluation_step

COLUMNS = (
    Column("examples", COUNT),
    Column("agreeing_predictions", COUNT),
    Column("max_logit_difference", AMOUNT),
    Column("max_logit", AMOUNT),
    Column("convolution_accuracy", SHARE),
    Column("attention_accuracy", SHARE),
)


def _contest(updates: int) -> Contest:
    """One CNN of the smallest size, with checkpoints, since it is the best of them that is turned."""
    return Contest(
        "digits",
        "scikit-learn's digits",
        config="image",
        argument="variant=xs,dataset=digits",
        metrics={"accuracy": Metric("accuracy, %", is_share=True)},
        entries=(Entry("cnn", "model=cnn", learning_rates=(1e-2,)),),
        seeds=1,
        updates=updates,
        evaluations=4,
        fields={"checkpoint_every": f"{updates // 4} steps"},
    )


PRESETS = {"quick": (_contest(400),), "smoke": (_contest(20),)}


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


def measure(workdir: Path, config: ConfigDict) -> dict[str, Any]:
    """Compare the best checkpoint of a finished run with itself as attention, on the test split."""
    run = train.Run(config, workdir, None, None)
    run.prepare()
    if not run.restore() or run.best is None:
        raise RunError(f"{workdir} holds no good checkpoint; remove it to train again")
    both = evaluation_step(BothLogits(), run.structure)
    state = run.best.state
    return compare(lambda batch: both(state.params, state.statistics, batch), run.data.evaluation["test"]())


def row(run: Run, result: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The row of a run in results.csv."""
    launch.compilation_cache()
    return measure(folder, run.config())


def lines(row: Mapping[str, Any]) -> Iterator[str]:
    """A row in words, a line for each column."""
    for name, value in row.items():
        shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        yield f"{name.replace('_', ' '):22}{shown:>10}"


def show(outcome: Outcome) -> Iterator[str]:
    """The comparison of each run."""
    for row in outcome.rows:
        yield from lines(row)


STUDY = study.Study("convolution_as_attention", __doc__, PRESETS, row=row, columns=COLUMNS, key=(), show=show)


def of_a_run(folder: Path, out: Path, console: Console) -> None:
    """Turn the CNN of a finished run instead of one of our own.

    Raises:
        UserError: it is no run of a CNN, or keeps no checkpoints.
    """
    config = configs.load(folder, EXPERIMENT)
    if config.task != "image_classification" or config.model.kind != "cnn":
        raise UserError(f"--run={folder} is no run of a CNN; its config.model.kind must be 'cnn'")
    if config.checkpoint_every is None:
        raise UserError(f"--run={folder} keeps no checkpoints; its config.checkpoint_every is None")
    launch.compilation_cache()
    out.mkdir(parents=True, exist_ok=True)
    train.train(config, folder, console=console)
    row = measure(folder, config)
    results.write_rows(out / study.FILE, COLUMNS, [row])
    for line in (*lines(row), f"wrote {study.FILE} in {out}"):
        console.print(line, highlight=False, soft_wrap=True)


def parser() -> argparse.ArgumentParser:
    """The options of every study, and one of this."""
    made = command.parser(STUDY)
    made.add_argument("--run", type=Path, help="a finished run of a CNN to turn; default: train one")
    return made


def main() -> None:
    """The command."""
    given = parser().parse_args()
    if given.run is None:
        command.perform(STUDY, given)
    else:
        of_a_run(given.run, given.out or Path("runs", STUDY.name, "run"), Console())


if __name__ == "__main__":
    launch.run(main)
