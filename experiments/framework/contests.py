"""What a study runs: contests of models on data sets, and the single runs that they come to.

Everything that a study says of a config's fields is said here, in `Run.config`.
"""

import dataclasses
import importlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ml_collections import ConfigDict

TUNING_SEED = 1000  # learning rates are chosen on this seed, which no reported run has


class Metric(NamedTuple):
    """How a metric is told.

    Attributes:
        title: what it is called, with its unit.
        is_share: whether it lies in 0..1, to be told in per cent.
        digits: after the point.
        lower_is_better: whether it counts what went wrong.
    """

    title: str
    is_share: bool = False
    digits: int = 1
    lower_is_better: bool = False

    @property
    def factor(self) -> int:
        """By which a value is multiplied to be told."""
        return 100 if self.is_share else 1


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model in a contest.

    Attributes:
        model: what tables call it.
        argument: of the config: the model and what else differs from the other entries.
        fields: of the config, over those of the contest.
        learning_rates: to choose from on validation; one alone is taken as it is, () is as the config has it.
    """

    model: str
    argument: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    learning_rates: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Contest:
    """One data set and the models that are tried on it.

    Attributes:
        name: what tables call it, without blanks.
        title: what readers call it.
        config: the file in configs/.
        argument: of the config, for every entry.
        metrics: of the test part; the first one decides.
        entries: the models.
        published: results of others on the same test, to stand beside ours.
        seeds: number of seeds, 0, 1, ...
        folds: number of folds, each the test once; 1 for a set with a test of its own.
        sizes: of the training set; () for all of it.
        updates: training steps of every run, None for what the config says.
        budget: what runs of all sizes have in common: "updates", or "epochs", where `updates` are those of
            the largest size.
        evaluations: looks at validation in a run, where `updates` are given; None for what the config says.
        tuning_size: the size at which learning rates are compared, where there are several.
        fields: config fields that differ from the config's own.
        settings: fields set on the command line, over everything else.
    """

    name: str
    title: str
    config: str
    argument: str
    metrics: Mapping[str, Metric]
    entries: tuple[Entry, ...]
    published: tuple[tuple[str, float], ...] = ()
    seeds: int = 3
    folds: int = 1
    sizes: tuple[int, ...] = ()
    updates: int | None = None
    budget: str = "updates"
    evaluations: int | None = None
    tuning_size: int | None = None
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return next(iter(self.metrics))

    def runs(self, learning_rates: Mapping[str, float]) -> Iterator["Run"]:
        """Every run, those to be compared side by side.

        Args:
            learning_rates: by model, where entries had several to choose from.
        """
        for size in self.sizes or (None,):
            for seed in range(self.seeds):
                for fold in range(self.folds) if self.folds > 1 else (None,):
                    for entry in self.entries:
                        yield Run(self, entry, seed, fold, size, learning_rates.get(entry.model))

    def tuning(self) -> Iterator["Run"]:
        """The runs that choose a learning rate for each entry that has several."""
        for entry in self.entries:
            for rate in entry.learning_rates if len(entry.learning_rates) > 1 else ():
                yield Run(self, entry, TUNING_SEED, None, self.tuning_size, rate, tuning=True)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a contest.

    Attributes:
        contest: it belongs to.
        entry: the model.
        seed: of initial values, order, dropout, augmentation; what is held out stays the same.
        fold: that is the test, None where there are none.
        size: of the training set, None for all of it.
        learning_rate: None for what the config says.
        tuning: whether it chooses a learning rate, and leaves the test part alone.
    """

    contest: Contest
    entry: Entry
    seed: int
    fold: int | None = None
    size: int | None = None
    learning_rate: float | None = None
    tuning: bool = False

    @property
    def name(self) -> str:
        """What its folder under `DIR/runs` is called."""
        parts = [self.contest.name, self.entry.model]
        parts += [str(self.size)] * (self.size is not None)
        if self.tuning:
            return "-".join(["tuning", *parts, f"lr{self.learning_rate:g}"])
        parts += [f"seed{self.seed}"]
        parts += [f"fold{self.fold}"] * (self.fold is not None)
        return "-".join(parts)

    @property
    def updates(self) -> int | None:
        """Training steps; None where the config says them."""
        most = self.contest.updates
        if most is None or self.size is None or self.contest.budget == "updates":
            return most
        return math.ceil(most * self.size / max(self.contest.sizes))

    def config(self) -> ConfigDict:
        """What `train.train` is given."""
        # What configs import takes longer than a command may wait that only says what it can do.
        from configs import EXPERIMENT
        from training import config as configs

        contest = self.contest
        arguments = [contest.argument, self.entry.argument]
        arguments += [f"fold={self.fold}"] * (self.fold is not None)
        module = importlib.import_module(f"configs.{contest.config}")
        config = module.get_config(",".join(filter(None, arguments)))
        changes: dict[str, Any] = {"seed": self.seed, "num_devices": 1, **contest.fields, **self.entry.fields}
        if self.size is not None:
            changes["dataset.train_size"] = self.size
        rates = self.entry.learning_rates
        rate = self.learning_rate if self.learning_rate is not None else rates[0] if rates else None
        if rate is not None:
            changes["optimizer.learning_rate"] = rate
        if contest.updates is not None and self.updates is not None:
            if contest.budget == "epochs":
                epochs = contest.updates * config.batch_size / max(contest.sizes)
                changes["duration"] = f"{epochs:.6g} epochs"
            else:
                changes["duration"] = f"{self.updates} steps"
            if contest.evaluations is not None:
                every = math.ceil(self.updates / contest.evaluations)
                changes |= {"evaluate_every": f"{every} steps", "log_every": f"{min(50, every)} steps"}
        if self.tuning:
            changes["test"] = False
        config = configs.override(config, changes, EXPERIMENT, parsed=True)
        return configs.override(config, contest.settings, EXPERIMENT)
