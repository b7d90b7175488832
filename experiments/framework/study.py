"""One study: which runs, which columns, which tables and figures; and how the whole of it is done."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console, RenderableType

from experiments.framework import manifest, tables
from experiments.framework.contests import Contest, Run
from experiments.framework.grid import GridRun, run_grid
from experiments.framework.outcome import Outcome, minutes
from experiments.framework.results import COUNT, NUMBER, POSITIVE, TEXT, Column, read_rows, write_rows

FILE = "results.csv"
COLUMNS = (
    Column("contest", TEXT),
    Column("model", TEXT),
    Column("seed", COUNT),
    Column("fold", COUNT, optional=True),
    Column("metric", TEXT),
    Column("validation", NUMBER),
    Column("test", NUMBER),
    Column("best_step", COUNT),
    Column("steps", COUNT),
    Column("parameters", POSITIVE),
    Column("flops_per_example"),
)
KEY = ("contest", "model", "seed", "fold")


def row_of(run: Run, result: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The row of a run in a contest: the metric that decides on validation and test, the others on test."""
    decides, *others = run.contest.metrics
    return {
        "contest": run.contest.name,
        "model": run.entry.model,
        "seed": run.seed,
        "fold": run.fold,
        "metric": decides,
        "validation": result[f"validation_{decides}"],
        "test": result[f"test_{decides}"],
        **{f"test_{name}": result[f"test_{name}"] for name in others},
        **{name: result[name] for name in ("best_step", "steps", "parameters", "flops_per_example")},
    }


@dataclasses.dataclass(frozen=True)
class Study:
    """What a file in experiments/ says.

    Attributes:
        name: of its module.
        about: what it is about; the first line is for the command's help.
        presets: the contests of each.
        row: makes the row of results.csv from a run, its result and its folder.
        columns: of results.csv; None for those of `row_of`.
        key: the columns that say which run it is.
        show: makes what is printed in the end, tables and lines.
        draw: draws the figures and returns their files; None where tables say it all.
        facts: what the manifest says besides.
    """

    name: str
    about: str
    presets: Mapping[str, tuple[Contest, ...]]
    row: Callable[[Run, Mapping[str, Any], Path], dict[str, Any]] = row_of
    columns: tuple[Column, ...] | None = None
    key: tuple[str, ...] = KEY
    show: Callable[[Outcome], Iterable[RenderableType]] = tables.measured
    draw: Callable[[Outcome], Sequence[Path]] | None = None
    facts: Callable[[], Mapping[str, Any]] = dict

    def columns_of(self, contests: Sequence[Contest]) -> tuple[Column, ...]:
        """The columns of results.csv."""
        if self.columns is not None:
            return self.columns
        also = dict.fromkeys(name for contest in contests for name in [*contest.metrics][1:])
        return (*COLUMNS, *(Column(f"test_{name}", NUMBER, optional=True) for name in also))


@dataclasses.dataclass(frozen=True)
class Plan:
    """A study with the command line's choices applied.

    Attributes:
        study: what is done.
        contests: those of the preset, as they are to be run.
        out: the folder.
        jobs: worker processes, None for one per core.
        console: where to show progress and results.
    """

    study: Study
    contests: tuple[Contest, ...]
    out: Path
    jobs: int | None
    console: Console

    def run(self, command: str) -> Outcome:
        """Do the missing runs; write results.csv after each, and the manifest in the end."""
        self.out.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        rates = {contest.name: self._choose_rates(contest) for contest in self.contests}
        runs = {run.name: run for contest in self.contests for run in contest.runs(rates[contest.name])}
        columns = self.study.columns_of(self.contests)
        rows: dict[str, dict[str, Any]] = {}

        def write(results: Mapping[str, Mapping[str, Any]]) -> None:
            for name in results.keys() - rows.keys():
                rows[name] = self.study.row(runs[name], results[name], self.out / "runs" / name)
            # In the grid's order, whichever run ended first, so that the file is always the same.
            write_rows(self.out / FILE, columns, [rows[name] for name in runs if name in rows])

        write(self._do(list(runs.values()), write))
        facts = manifest.facts(
            command,
            time.monotonic() - start,
            contests=list(map(_said, self.contests)),
            minutes=self._minutes(),
            **self.study.facts(),
        )
        manifest.write(self.out, facts)
        return self.outcome()

    def outcome(self) -> Outcome:
        """What lies in the folder."""
        columns = self.study.columns_of(self.contests)
        rows = read_rows(self.out / FILE, columns, self.study.key)
        return Outcome(self.contests, self.out, rows, manifest.read(self.out))

    def tell(self, outcome: Outcome) -> None:
        """Draw the figures, print tables and lines."""
        drawn = self.study.draw(outcome) if self.study.draw else []
        for part in self.study.show(outcome):
            if isinstance(part, str):
                self.console.print(part, highlight=False, markup=False, soft_wrap=True)
            else:
                self.console.print(part)
        names = ", ".join([FILE, *(path.name for path in drawn), manifest.FILE])
        self.console.print(f"wrote {names} in {self.out}", highlight=False, soft_wrap=True)

    def _choose_rates(self, contest: Contest) -> dict[str, float]:
        """The best learning rate on validation of each model that has several, on the tuning seed."""
        runs = list(contest.tuning())
        if not runs:
            return {}
        metric, chosen = contest.metrics[contest.metric], {}
        self.console.print(f"{contest.name}: choosing learning rates on validation, {len(runs)} runs")
        results = self._do(runs, lambda results: None)
        for model in dict.fromkeys(run.entry.model for run in runs):
            found = {
                run.learning_rate or 0.0: results[run.name][f"validation_{contest.metric}"]
                for run in runs
                if run.entry.model == model
            }
            sign = -1 if metric.lower_is_better else 1
            chosen[model] = max(found, key=lambda rate: (sign * found[rate], -rate))
            shown = ", ".join(f"{rate:g}: {value:.4f}" for rate, value in sorted(found.items()))
            self.console.print(f"  {model}  {shown}", highlight=False)
        return chosen

    def _do(self, runs: Sequence[Run], finished: Callable) -> dict[str, dict[str, Any]]:
        configs = [run.config() for run in runs]
        epochs: dict[str, int] = {}
        planned = []
        for run, config in zip(runs, configs, strict=True):
            updates = run.updates
            if updates is None:  # once for a contest and model, since all of its data must be read
                said = f"{run.contest.name} {run.entry.model}"
                updates = epochs[said] = epochs.get(said) or _updates(config)
            planned.append(GridRun(run.name, config, updates))
        return run_grid(planned, self.out, jobs=self.jobs, console=self.console, finished=finished)

    def _minutes(self) -> dict[str, float]:
        return {
            f"{run.contest.name}, {run.entry.model}": minutes(self.out / "runs" / run.name)
            for contest in self.contests
            if contest.folds == 1 and not contest.sizes
            for run in contest.runs({})
            if run.seed == 0
        }


def _updates(config: ConfigDict) -> int:
    """How many steps a run makes; what an epoch is, only the data say."""
    import tasks  # which imports JAX, and most studies need not know
    from training import duration

    data = tasks.build(config).data()
    return duration.steps(
        config.duration,
        field="config.duration",
        batches_per_epoch=data.batches_per_epoch,
        num_train=data.num_train,
    )


def _said(contest: Contest) -> dict[str, Any]:
    """A contest as the manifest says it, without what is left out."""

    def given(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: value for name, value in pairs if value not in (None, {}, ())}

    said = dataclasses.asdict(contest, dict_factory=given)
    return said | {"metrics": list(contest.metrics)}
