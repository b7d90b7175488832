"""Train a model: the one training loop of this codebase.

    python train.py --config=configs/image.py:model=vit,dataset=digits --workdir=runs/a
    python train.py --config=configs/image.py --workdir=runs/b --config.optimizer.learning_rate=3e-4
    python train.py --config=configs/image.py --show
    python train.py --resume=runs/a

--show prints the whole config, every field with what it is for and what it may be. Any field can be set on
the command line; another kind of a part (--config.model.attention.kind=banded) brings its own fields. The
same command again continues where the run stopped. From Python: `train(config, workdir)`.
"""

from training import launch

if __name__ == "__main__":
    launch.with_allocator()  # before JAX is imported

import functools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict
from rich.console import Console

import tasks
from configs import EXPERIMENT, loop_of
from errors import RunError, UserError
from training import config as configs
from training import duration, final, inputs, page, randomness, sharding, summary
from training.checkpoints import Best, Checkpoints
from training.metric_writer import FINAL, MetricWriter
from training.optimizer import OPTIMIZERS, Optimizer
from training.progress import RunProgress
from training.state import TrainState, create, evaluation_step, train_step

RESULT = "result.json"


def train(
    config: ConfigDict,
    workdir: str | Path,
    *,
    console: Console | None = None,
    listener: Callable[[int], None] | None = None,
) -> dict:
    """Train as a config says, continuing from the newest good checkpoint in `workdir` if there is one.

    Args:
        config: as made by a file in configs/.
        workdir: the run's folder: config, metrics, checkpoints and result go there.
        console: where to show progress; None shows nothing.
        listener: called with each step whose metrics have been read.

    Returns:
        Final metrics, such as `test_accuracy`, with `best_step`, `steps`, `parameters` and
        `flops_per_example`.

    Raises:
        UserError: if the config can't be run.
        RunError: if the run failed: not-a-number, full disk, damaged checkpoints, SIGTERM.
    """
    run = Run(config, Path(workdir), console, listener)
    return run.finished() or run.train()


class Run:
    """One run: resolve config -> data -> model -> restore or init -> loop -> final metrics."""

    def __init__(self, config, workdir, console, listener):
        self.config, self.workdir = configs.check(config, EXPERIMENT), workdir
        self.settings = loop_of(self.config)
        self.console, self.listener = console, listener
        if (workdir / configs.FILE).exists():
            changed = configs.difference(configs.load(workdir, EXPERIMENT), self.config)
            if changed:
                raise UserError(f"{workdir} holds a run of another config: {changed}; use another --workdir")

    def finished(self) -> dict | None:
        """The result of a run that was over already."""
        path = self.workdir / RESULT
        if not path.exists():
            return None
        if self.console:
            self.console.print(f"{self.workdir} is finished; remove it to train again", soft_wrap=True)
        return json.loads(path.read_text())

    def prepare(self) -> None:
        """Build everything the loop needs; nothing is written before all of it has worked."""
        config, settings = self.config, self.settings
        self.task = tasks.build(config)
        self.data = self.task.data()
        self.devices = sharding.DataParallel(settings.num_devices, self.data.batch_sizes)
        self.total = self._steps("duration")
        if not self.total:
            raise UserError(f"config.duration is {settings.duration!r}; there is nothing to train")
        self.optimizer: Optimizer = OPTIMIZERS.build(settings.optimizer, "config.optimizer")
        self.rates = self.optimizer.learning_rates(self.total)
        self.log_every, self.evaluate_every, self.checkpoint_every = map(
            self._steps, ("log_every", "evaluate_every", "checkpoint_every")
        )
        # Steps without a better evaluation after which the run ends.
        self.patience = math.inf if settings.patience is None else settings.patience * self.evaluate_every
        self.structure, state = create(
            functools.partial(self.task.make_model, self.data.inputs),
            randomness.key(settings.seed, "init"),
            self.optimizer,
        )
        self.counts = summary.parameter_counts(state.params)
        self.flops = summary.flops_per_example(
            self.task, self.structure, state.params, state.statistics, self.data.example
        )
        self.state: TrainState = self.devices.replicate(state)
        self.best: Best | None = None
        self.iterator = self.data.train()
        if self.console:
            self.console.print(summary.table(_title(config), self.counts, self.flops))

    def _steps(self, field: str) -> int:
        return duration.steps(
            getattr(self.settings, field),
            field=f"config.{field}",
            batches_per_epoch=self.data.batches_per_epoch,
            num_train=self.data.num_train,
        )

    def restore(self) -> int:
        """Go to the newest good checkpoint; returns its step, 0 if there is none."""
        self.checkpoints = None
        if not self.checkpoint_every:
            return 0
        keep = max(2, self.settings.keep_checkpoints)
        self.checkpoints = Checkpoints(self.workdir / "checkpoints", keep)
        restored = self.checkpoints.restore(self.state, self._say)
        if restored is None:
            return 0
        self.state, data, self.best = restored
        self.iterator.set_state(data)
        self._say(f"continuing from step {int(self.state.step)} of {self.total}")
        return int(self.state.step)

    def train(self) -> dict:
        """Prepare, restore, loop, and measure at the end."""
        self.prepare()
        try:
            self.workdir.mkdir(parents=True, exist_ok=True)
            configs.save(self.config, self.workdir)
            inputs.save(self.data.inputs, self.workdir)
            start = self.restore()
            self.writer = MetricWriter(self.workdir, start_step=start, tensorboard=self.settings.tensorboard)
            self.loop(start)
            return self.finish()
        except OSError as error:
            raise RunError(f"could not write to {self.workdir}: {error.strerror or error}") from error

    def loop(self, start: int) -> None:
        """Step, log, evaluate, checkpoint."""
        update = train_step(self.task, self.structure, self.optimizer)
        key = randomness.key(self.settings.seed, "dropout")
        pending: list = []
        shown = {"start": start, "console": self.console, "listener": self.listener}
        batch_size = self.data.num_train / self.data.batches_per_epoch
        with (
            launch.Termination() as termination,
            RunProgress(self.total, batch_size, **shown) as self.progress,
        ):
            for step in range(start + 1, self.total + 1):
                if self.is_stale(step - 1):
                    self._say(f"no better evaluation for {self.patience} steps: over at step {step - 1}")
                    break
                batch = self.devices.split(next(self.iterator))
                self.state, metrics = update(self.state, batch, self.rates[step - 1], key)
                pending.append(metrics)
                last = step == self.total or termination.requested
                logs, evaluates, saves = (
                    every and step % every == 0
                    for every in (self.log_every, self.evaluate_every, self.checkpoint_every)
                )
                if logs or evaluates or saves or last or len(pending) == 1000:
                    self.log(step, pending)
                    pending = []
                with self.progress.timer.pause():
                    if evaluates or step == self.total:
                        self.evaluate(step)
                    if self.checkpoints and (saves or last or self.is_stale(step)):
                        self.save()
                if termination.requested and step < self.total:
                    raise launch.Terminated(self._stopped(step))

    def is_stale(self, step: int) -> bool:
        """Whether the best evaluation is too long ago; by nothing but what a checkpoint holds."""
        return self.best is not None and step - self.best.step >= self.patience

    def _stopped(self, step: int) -> str:
        if not self.checkpoints:
            return f"stopped by SIGTERM at step {step}; this run keeps no checkpoints"
        return f"stopped by SIGTERM at step {step}; continue with: python train.py --resume={self.workdir}"

    def log(self, step: int, pending: list) -> None:
        """Read the metrics of the last steps, stop on one that is not finite, write their mean."""
        rows = jax.device_get(pending)
        for offset, row in enumerate(rows):
            for name, value in row.items():
                if not math.isfinite(value):
                    raise RunError(
                        f"{name} is {value} at step {step - len(rows) + 1 + offset} of {self.workdir}; "
                        "the last checkpoint is from before. A smaller "
                        "--config.optimizer.learning_rate or --config.optimizer.clip_norm may help"
                    )
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        self.writer.write(step, "train", {**means, "learning_rate": self.rates[step - 1]})
        self.progress.reached(step, means)

    def measure(self, state: TrainState, split: str) -> dict[str, float]:
        """The task's metrics over every example of a split."""
        evaluate = evaluation_step(self.task, self.structure)

        def evaluated():
            for batch in self.data.evaluation[split]():
                found = evaluate(state.params, state.statistics, self.devices.split(batch))
                yield batch, jax.device_get(found)

        return self.task.metrics(evaluated())

    def evaluate(self, step: int) -> None:
        """Measure the validation split and remember the best state."""
        metrics = self.measure(self.state, "validation")
        self.writer.write(step, "validation", metrics)
        self._say(f"step {step}/{self.total}  validation  {_shown(metrics)}")
        value = metrics[self.task.best_metric]
        sign = -1 if self.task.lower_is_better else 1
        if self.best is None or sign * value > sign * self.best.value:
            # A copy, since the next step's donation takes these buffers.
            self.best = Best(step, value, jax.tree.map(lambda x: x.copy(), self.state))

    def save(self) -> None:
        """Write a checkpoint."""
        assert self.checkpoints is not None
        about = {**self.iterator.get_state(), "inputs": inputs.digest(self.data.inputs)}
        self.checkpoints.save(self.state, about, self.best)

    def finish(self) -> dict:
        """Measure the chosen state on the splits and write the result."""
        end = int(self.state.step)
        if self.best is None:  # the run was over, and its best checkpoint is damaged
            self.evaluate(end)
        state = final.choose(self.settings.final, self.state, self.best, self.checkpoints, self._say)
        step = int(state.step)
        result: dict = {}
        for split in ("validation", "test") if self.settings.test else ("validation",):
            metrics = self.measure(state, split)
            self.writer.write(step, f"{FINAL}{split}", metrics)
            result |= {f"{split}_{name}": value for name, value in metrics.items()}
            self._say(f"{split} of the {self.settings.final} checkpoint (step {step})  {_shown(metrics)}")
        result |= {"best_step": step, "steps": end}
        result |= {"parameters": sum(self.counts.values()), "flops_per_example": self.flops}
        part = self.workdir / (RESULT + ".part")
        part.write_text(json.dumps(result, indent=2) + "\n")
        part.rename(self.workdir / RESULT)
        return result

    def _say(self, line: str) -> None:
        if self.console:
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _title(config: ConfigDict) -> str:
    """The words for the parts of a model, such as "rnn" or "rnn + transformer"."""
    model = config.model
    parts = (
        [model.kind]
        if "kind" in model
        else [model[name].kind for name in ("encoder", "decoder") if name in model]
    )
    return " + ".join(parts)


def _shown(metrics: dict[str, float]) -> str:
    numbers = {k: f"{v:,.0f}" if float(v).is_integer() and v > 1 else f"{v:.4g}" for k, v in metrics.items()}
    return "  ".join(f"{name} {number}" for name, number in numbers.items())


def main() -> None:
    """The command."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(f"{__doc__}\nConfig files:\n\n{configs.help_page()}")
        return
    config, flags = configs.parse(sys.argv, ("workdir", "resume", "show?"), EXPERIMENT)
    if "show" in flags:
        if config is None:
            raise UserError("--show shows a config: give --config=configs/FILE.py[:ARGUMENT] too")
        print(page.shown(config, EXPERIMENT))
        return
    launch.compilation_cache()
    if "resume" in flags:
        if config is not None or "workdir" in flags:
            raise UserError("--resume=RUNDIR stands alone: the run's own config and folder are used")
        workdir = Path(flags["resume"])
        config = configs.load(workdir, EXPERIMENT)
    elif config is None or "workdir" not in flags:
        raise UserError("give --config=configs/FILE.py[:ARGUMENT] and --workdir=DIR, or --resume=RUNDIR")
    else:
        workdir = Path(flags["workdir"])
    train(config, workdir, console=Console())


if __name__ == "__main__":
    launch.run(main)
