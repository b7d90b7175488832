"""A contest of models on one data set: the same task, some fields of the config apart; many runs, one CSV."""

import dataclasses
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict
from rich import box
from rich.console import Console
from rich.table import Table

import tasks
from errors import ArgumentParser, UserError, unknown
from experiments import manifest
from experiments.grid import GridRun, run_grid
from experiments.results import write_rows
from training import duration

COLUMNS = (
    "contest",
    "model",
    "seed",
    "fold",
    "metric",
    "validation",
    "test",
    "best_step",
    "steps",
    "parameters",
    "flops_per_example",
)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model in a contest.

    Attributes:
        model: what tables call it.
        argument: of the config: the model and what else differs from the other entries.
        fields: of the config, over those of the contest.
    """

    model: str
    argument: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Contest:
    """One data set and the models that are tried on it.

    Attributes:
        name: what tables call it, without blanks.
        title: what readers call it.
        config: the file in configs/.
        argument: of the config, for every entry.
        metric: of the test part, that decides.
        also: further metrics of it.
        entries: the models.
        published: results of others on the same test, to stand beside ours.
        seeds: number of seeds, 0, 1, ...
        folds: number of folds, each the test once; 1 for a set with a test of its own.
        fields: config fields that differ from the config's own.
    """

    name: str
    title: str
    config: str
    argument: str
    metric: str
    entries: tuple[Entry, ...]
    also: tuple[str, ...] = ()
    published: tuple[tuple[str, float], ...] = ()
    seeds: int = 3
    folds: int = 1
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_share(self) -> bool:
        """Whether the metric lies in 0..1, to be told in per cent."""
        return self.metric in ("accuracy", "f1")


def config_for(contest: Contest, entry: Entry, seed: int, fold: int) -> ConfigDict:
    """The config of one run."""
    argument = ",".join(filter(None, (contest.argument, entry.argument)))
    if contest.folds > 1:
        argument += f",fold={fold}"
    config = importlib.import_module(f"configs.{contest.config}").get_config(argument)
    config.seed = seed
    config.num_devices = 1
    with config.unlocked():
        config.update_from_flattened_dict({**contest.fields, **entry.fields})
    return config


def run_name(contest: Contest, entry: Entry, seed: int, fold: int) -> str:
    """What the folder of a run is called."""
    return f"{contest.name}-{entry.model}-seed{seed}" + (f"-fold{fold}" if contest.folds > 1 else "")


def _updates(configs: Sequence[ConfigDict]) -> list[int]:
    """How many steps each run of a data set makes; what an epoch is, only the data say."""
    data = tasks.build(configs[0]).data()
    return [
        duration.steps(
            config.duration,
            field="config.duration",
            batches_per_epoch=data.batches_per_epoch,
            num_train=data.num_train,
        )
        for config in configs
    ]


def _row(contest: Contest, entry: Entry, seed: int, fold: int, result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "contest": contest.name,
        "model": entry.model,
        "seed": seed,
        "fold": fold if contest.folds > 1 else "",
        "metric": contest.metric,
        "validation": result[f"validation_{contest.metric}"],
        "test": result[f"test_{contest.metric}"],
        **{f"test_{name}": result[f"test_{name}"] for name in contest.also},
        **{name: result[name] for name in ("best_step", "steps", "parameters", "flops_per_example")},
    }


@dataclasses.dataclass(frozen=True)
class Study:
    """A preset with the command line's choices applied."""

    contests: tuple[Contest, ...]
    out: Path
    jobs: int
    console: Console

    def run(self) -> list[dict[str, Any]]:
        """Do the missing runs; write results.csv after each; return its rows."""
        runs, places = [], {}
        for contest in self.contests:
            updates = _updates([config_for(contest, entry, 0, 0) for entry in contest.entries])
            for seed in range(contest.seeds):
                for fold in range(contest.folds):
                    for entry, steps in zip(contest.entries, updates, strict=True):
                        name = run_name(contest, entry, seed, fold)
                        config = config_for(contest, entry, seed, fold)
                        runs.append(GridRun(name, config, steps))
                        places[name] = (contest, entry, seed, fold)

        def rows(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
            # In the grid's order, whichever run ended first, so that the file is always the same.
            return [_row(*places[r.name], results[r.name]) for r in runs if r.name in results]

        def write(results: Mapping[str, Mapping[str, Any]]) -> None:
            also = dict.fromkeys(f"test_{name}" for contest in self.contests for name in contest.also)
            write_rows(self.out / "results.csv", (*COLUMNS, *also), rows(results))

        results = run_grid(runs, self.out, jobs=self.jobs, console=self.console, finished=write)
        write(results)
        return rows(results)


def run_folder(study: Study, contest: Contest, entry: Entry) -> Path:
    """Where the run of an entry's first seed lies."""
    return study.out / "runs" / run_name(contest, entry, 0, 0)


def minutes(study: Study, contest: Contest, entry: Entry) -> float:
    """How long the run of an entry's first seed took, from its config's file to its result's."""
    folder = run_folder(study, contest, entry)
    start, end = ((folder / name).stat().st_mtime for name in ("config.json", "result.json"))
    return round((end - start) / 60, 1)


class Metric(NamedTuple):
    """How a metric is told.

    Attributes:
        title: what it is called.
        is_share: whether it lies in 0..1, to be told in per cent.
        digits: after the point.
    """

    title: str
    is_share: bool = False
    digits: int = 1


def table(
    study: Study, contest: Contest, rows: Sequence[Mapping[str, Any]], metrics: Mapping[str, Metric]
) -> Table:
    """The results of a contest on the test part: mean and deviation over seeds, published ones below.

    Args:
        study: whose runs they are.
        contest: its models.
        rows: of results.csv.
        metrics: the columns.
    """
    made = Table(title=contest.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.add_column("model")
    for title in (*(metric.title for metric in metrics.values()), "parameters", "minutes"):
        made.add_column(title, justify="right")
    for entry in contest.entries:
        own = [row for row in rows if row["contest"] == contest.name and row["model"] == entry.model]
        if own:
            columns = {name: "test" if name == contest.metric else f"test_{name}" for name in metrics}
            scores = [
                spread([row[columns[name]] for row in own], metric.is_share, metric.digits)
                for name, metric in metrics.items()
            ]
            made.add_row(
                entry.model, *scores, f"{own[0]['parameters']:,}", f"{minutes(study, contest, entry):.0f}"
            )
    for name, value in contest.published:
        made.add_row(f"{name} (published)", f"{value:g}", *[""] * (len(metrics) + 1), style="dim")
    for column in made.columns[1:]:  # headings and names may take several lines, numbers and words may not
        pieces = (*str(column.header).split(), *map(str, column.cells))
        column.min_width = max(map(len, pieces))
    return made


def command(
    name: str,
    about: str,
    presets: Mapping[str, tuple[Contest, ...]],
    *,
    table: Callable[[Study, Contest, Sequence[Mapping[str, Any]]], Table],
    draw: Callable[[Study, Sequence[Mapping[str, Any]]], Sequence[Path]] | None = None,
    **facts: Any,
) -> None:
    """What every study of contests does when it is called: run, write, draw, print.

    Args:
        name: of its module.
        about: what it does, in one line.
        presets: its contests.
        table: makes the table of a contest from the rows of results.csv.
        draw: draws the study's figures and returns their files; None where a table says it all.
        **facts: what the manifest says besides.
    """
    console = Console()
    study = parse(sys.argv[1:], console, name=name, about=about, presets=presets)
    study.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    rows = study.run()
    typed = f"python -m experiments.{name} " + " ".join(sys.argv[1:])
    taken = {
        f"{contest.name}, {entry.model}": minutes(study, contest, entry)
        for contest in study.contests
        for entry in contest.entries
        if contest.folds == 1
    }
    made = manifest.facts(typed, time.monotonic() - start, minutes=taken, **facts)
    manifest.write(study.out, made)
    drawn = draw(study, rows) if draw else []
    for contest in study.contests:
        console.print(table(study, contest, rows))
    names = ", ".join(["results.csv", *(path.name for path in drawn), "manifest.json"])
    console.print(f"wrote {names} in {study.out}", highlight=False, soft_wrap=True)


def spread(values: Sequence[float], is_share: bool, digits: int) -> str:
    """Mean and sample deviation, in per cent where it is a share."""
    factor = 100 if is_share else 1
    text = f"{factor * np.mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {factor * np.std(values, ddof=1):.{digits}f}"


def parse(
    argv: Sequence[str],
    console: Console,
    *,
    name: str,
    about: str,
    presets: Mapping[str, tuple[Contest, ...]],
) -> Study:
    """The study that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(prog=f"python -m experiments.{name}", description=about)
    parser.add_argument("--preset", default="quick", help=f"one of {', '.join(presets)}")
    parser.add_argument("--out", default=None, help=f"the study's folder; default runs/{name}/PRESET")
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds; default the preset's")
    parser.add_argument("--jobs", type=int, default=0, help="worker processes; default one per core")
    given = parser.parse_args(argv)
    if given.preset not in presets:
        raise unknown("preset", given.preset, presets)
    if min(given.seeds, given.jobs) < 0:
        raise UserError("--seeds and --jobs must not be negative")
    contests = presets[given.preset]
    if given.seeds:
        contests = tuple(dataclasses.replace(contest, seeds=given.seeds) for contest in contests)
    out = Path(given.out or f"runs/{name}/{given.preset}").absolute()
    return Study(contests, out, given.jobs, console)
