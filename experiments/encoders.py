"""Window, CNN, RNN or self-attention: the same task and head, one word of the config apart, on real sets.

    python -m experiments.encoders --preset=quick --out=runs/encoders/quick
    python -m experiments.encoders --preset=ud_en_ewt --out=runs/encoders/ud_en_ewt

`quick` takes sets that need no preparation; the others want theirs prepared (`python -m data.prepare NAME`).
Every run chooses its parameters on validation and measures the test part once. Ends with a table and
DIR/{results.csv, scores.png, scores.svg, manifest.json}. Kill it, start it again: only the missing runs run.
"""

import dataclasses
import importlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict
from rich import box
from rich.console import Console
from rich.table import Table

import tasks
from errors import ArgumentParser, UserError, unknown
from experiments import encoder_figure, manifest
from experiments.grid import GridRun, run_grid
from experiments.results import write_rows
from training import duration, launch

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
        metric: of the test part.
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
    published: tuple[tuple[str, float], ...] = ()
    seeds: int = 3
    folds: int = 1
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_share(self) -> bool:
        """Whether the metric is told in per cent, and the higher the better."""
        return self.metric not in ("rmse", "mae")


def _entries(*models: str, **fields: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Encoders by their words, with fields for some of them."""
    names = {
        "window_fc": "window-FC",
        "cnn": "CNN",
        "multi_width_cnn": "CNN",
        "rnn": "BiLSTM",
        "transformer": "self-attention",
    }
    return tuple(Entry(names[word], f"model={word}", fields.get(word, {})) for word in models)


_GRAMMAR_TAGS = Contest(
    "grammar_tags",
    "grammar, parts of speech",
    config="labeling",
    argument="dataset=grammar",
    metric="accuracy",
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    fields={"duration": "200 steps"},
)
_GRAMMAR = Contest(
    "grammar_agreement",
    "grammar, agreement over distance",
    config="classification",
    argument="dataset=grammar",
    metric="accuracy",
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    fields={"duration": "300 steps"},
)
_TONES = Contest(
    "tones",
    "tones, their order",
    config="speech",
    argument="dataset=tones",
    metric="accuracy",
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    fields={"duration": "300 steps"},
)
_KARATE = Contest(
    "karate",
    "Zachary's karate club",
    config="graph",
    argument="dataset=karate",
    metric="accuracy",
    entries=(Entry("MLP", "model=mlp"), Entry("GAT", "model=gat")),
)
_EWT = Contest(
    "ud_en_ewt",
    "UD English EWT, parts of speech",
    config="labeling",
    argument="dataset=ud_en_ewt",
    metric="accuracy",
    entries=_entries("window_fc", "rnn", "transformer"),
    published=(("most frequent tag", 86.2), ("UDPipe 1.2", 94.4)),
)
_TREC = Contest(
    "trec",
    "TREC, six kinds of questions",
    config="classification",
    argument="dataset=trec",
    metric="accuracy",
    entries=_entries("multi_width_cnn", "rnn", "transformer"),
    published=(("CNN-rand, low", 88.2), ("high", 91.2)),
)
_SST2 = Contest(
    "sst2",
    "SST-2, sentiment of sentences",
    config="classification",
    argument="dataset=sst2",
    metric="accuracy",
    entries=_entries("multi_width_cnn", "rnn", "transformer"),
    published=(("CNN-rand, trained on phrases too", 83.5),),
)
_DIGIT = Contest(
    "fsdd_digit",
    "Free Spoken Digits, the digit",
    config="speech",
    argument="dataset=fsdd,target=digit",
    metric="accuracy",
    entries=(
        Entry("self-attention", "model=transformer"),
        Entry("truncated attention", "model=transformer,attention=banded"),
    ),
    published=(("ResNet, low", 95.3), ("high", 97.0)),
)
_SPEAKER = dataclasses.replace(
    _DIGIT,
    name="fsdd_speaker",
    title="Free Spoken Digits, the speaker",
    argument="dataset=fsdd,target=speaker",
    published=(),
)
_CORA = Contest(
    "cora",
    "Cora, topics of papers",
    config="graph",
    argument="dataset=cora",
    metric="accuracy",
    entries=(Entry("MLP", "model=mlp"), Entry("GAT", "model=gat")),
    published=(("MLP", 55.1), ("GCN", 81.5), ("GAT", 83.0)),
    seeds=20,
)
_ESOL = Contest(
    "esol",
    "ESOL, solubility of molecules",
    config="graph",
    argument="dataset=esol",
    metric="rmse",
    entries=(Entry("GAT", "model=gat"),),
    published=(("MPNN", 0.58), ("GC", 0.97)),
    folds=5,
)

PRESETS: dict[str, tuple[Contest, ...]] = {
    "quick": (_GRAMMAR_TAGS, _GRAMMAR, _TONES, _KARATE),
    "ud_en_ewt": (_EWT,),
    "trec": (_TREC,),
    "sst2": (_SST2,),
    "fsdd": (_DIGIT, _SPEAKER),
    "cora": (_CORA,),
    "esol": (_ESOL,),
}


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


def _updates(config: ConfigDict) -> int:
    """How many steps a run makes; what an epoch is, only the data say."""
    data = tasks.build(config).data()
    return duration.steps(
        config.duration,
        field="config.duration",
        batches_per_epoch=data.batches_per_epoch,
        num_train=data.num_train,
    )


def _row(contest: Contest, entry: Entry, seed: int, fold: int, result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "contest": contest.name,
        "model": entry.model,
        "seed": seed,
        "fold": fold if contest.folds > 1 else "",
        "metric": contest.metric,
        "validation": result[f"validation_{contest.metric}"],
        "test": result[f"test_{contest.metric}"],
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
            updates = _updates(config_for(contest, contest.entries[0], 0, 0))
            for seed in range(contest.seeds):
                for fold in range(contest.folds):
                    for entry in contest.entries:
                        name = f"{contest.name}-{entry.model}-seed{seed}"
                        name += f"-fold{fold}" if contest.folds > 1 else ""
                        config = config_for(contest, entry, seed, fold)
                        runs.append(GridRun(name, config, updates))
                        places[name] = (contest, entry, seed, fold)

        def rows(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
            # In the grid's order, whichever run ended first, so that the file is always the same.
            return [_row(*places[r.name], results[r.name]) for r in runs if r.name in results]

        def write(results: Mapping[str, Mapping[str, Any]]) -> None:
            write_rows(self.out / "results.csv", COLUMNS, rows(results))

        results = run_grid(runs, self.out, jobs=self.jobs, console=self.console, finished=write)
        write(results)
        return rows(results)


def table(contest: Contest, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The results of a contest: mean and deviation over seeds and folds, with parameters."""
    unit = ", %" if contest.is_share else ""
    title = f"{contest.title}: test {contest.metric.replace('_', ' ')}{unit}, mean ± sd"
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.add_column("model")
    for name in ("test", "validation", "runs", "parameters"):
        made.add_column(name, justify="right")
    for entry in contest.entries:
        own = [row for row in rows if row["contest"] == contest.name and row["model"] == entry.model]
        if own:
            shown = [spread([row[part] for row in own], contest.is_share) for part in ("test", "validation")]
            made.add_row(entry.model, *shown, str(len(own)), f"{own[0]['parameters']:,}")
    for name, value in contest.published:
        made.add_row(f"{name} (published)", f"{value:g}", "", "", "", style="dim")
    return made


def spread(values: Sequence[float], is_share: bool) -> str:
    """Mean and sample deviation, in per cent where it is a share."""
    factor, digits = (100, 1) if is_share else (1, 3)
    text = f"{factor * np.mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {factor * np.std(values, ddof=1):.{digits}f}"


def parse(argv: Sequence[str], console: Console) -> Study:
    """The study that a command line asks for; raises UserError where it can't be understood."""
    parser = ArgumentParser(prog="python -m experiments.encoders", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="quick", help=f"one of {', '.join(PRESETS)}")
    parser.add_argument("--out", default=None, help="the study's folder; default runs/encoders/PRESET")
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds; default the preset's")
    parser.add_argument("--jobs", type=int, default=0, help="worker processes; default one per core")
    given = parser.parse_args(argv)
    if given.preset not in PRESETS:
        raise unknown("preset", given.preset, PRESETS)
    if min(given.seeds, given.jobs) < 0:
        raise UserError("--seeds and --jobs must not be negative")
    contests = PRESETS[given.preset]
    if given.seeds:
        contests = tuple(dataclasses.replace(contest, seeds=given.seeds) for contest in contests)
    out = Path(given.out or f"runs/encoders/{given.preset}").absolute()
    return Study(contests, out, given.jobs, console)


def main() -> None:
    """The command."""
    console = Console()
    study = parse(sys.argv[1:], console)
    study.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    rows = study.run()
    command = "python -m experiments.encoders " + " ".join(sys.argv[1:])
    manifest.write(study.out, manifest.facts(command, time.monotonic() - start))
    encoder_figure.draw(rows, study.contests, study.out / "scores")
    for contest in study.contests:
        console.print(table(contest, rows))
    names = "results.csv, scores.png, scores.svg, manifest.json"
    console.print(f"wrote {names} in {study.out}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    launch.run(main)
