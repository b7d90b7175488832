"""The command line of every study; an option means the same in all of them."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from errors import ArgumentParser, UserError, unknown
from experiments.framework.contests import Contest
from experiments.framework.study import Plan, Study
from training import launch


def main(study: Study) -> None:
    """What `python -m experiments.NAME` does: run what is missing, write, draw, print; and exit."""
    launch.run(lambda: perform(study, parser(study).parse_args()))


def perform(study: Study, given: argparse.Namespace) -> None:
    """Do what the options ask for."""
    plan = planned(study, given, Console())
    typed = f"python -m experiments.{study.name} " + " ".join(sys.argv[1:])
    plan.tell(plan.outcome() if given.draw else plan.run(typed))


def parser(study: Study) -> ArgumentParser:
    """Every option there is."""
    made = ArgumentParser(
        prog=f"python -m experiments.{study.name}",
        description=study.about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--preset", default="quick", help=f"one of {', '.join(study.presets)}")
    add("--out", type=Path, help=f"the study's folder; default runs/{study.name}/PRESET")
    add("--models", action="append", metavar="A,B", help="only these models; may be given again")
    add("--sizes", type=_counts, metavar="N,N", help="training-set sizes, where a study varies them")
    add("--seeds", type=_count, metavar="N", help="number of seeds; default the preset's")
    add("--updates", type=_count, metavar="N", help="training steps of every run")
    add("--budget", choices=("updates", "epochs"), help="what runs of all sizes have in common")
    add("--set", action="append", default=[], metavar="FIELD=VALUE", help="a field of every run's config")
    add("--jobs", type=_count, metavar="N", help="worker processes; default one per core")
    add("--draw", action="store_true", help="run nothing: tables and figures again, from DIR/results.csv")
    return made


def planned(study: Study, given: argparse.Namespace, console: Console) -> Plan:
    """The study that options ask for.

    Raises:
        UserError: an option has no meaning in this study, or a wrong value.
    """
    if given.preset not in study.presets:
        raise unknown("preset", given.preset, study.presets)
    contests = study.presets[given.preset]
    if given.models:
        contests = _only(contests, given.models)
    for option in ("sizes", "budget"):
        if getattr(given, option) is not None and not any(contest.sizes for contest in contests):
            raise UserError(f"--{option}: --preset={given.preset} varies no training-set size")
    changes = {
        name: value
        for name in ("sizes", "seeds", "updates", "budget")
        if (value := getattr(given, name)) is not None
    }
    settings = dict(map(_setting, given.set))
    contests = tuple(_changed(contest, changes | {"settings": settings}) for contest in contests)
    for contest in contests:
        for run in contest.runs({}):
            if run.seed == 0:
                run.config()  # says what is wrong before anything runs
    out = (given.out or Path("runs", study.name, given.preset)).absolute()
    return Plan(study, contests, out, given.jobs, console)


def _only(contests: Sequence[Contest], given: Sequence[str]) -> tuple[Contest, ...]:
    """The contests with the models named alone; a name may have a comma in it."""
    models = list(dict.fromkeys(entry.model for contest in contests for entry in contest.entries))
    wanted = [name for text in given for name in ([text] if text in models else text.split(","))]
    for name in wanted:
        if name not in models:
            raise unknown("model", name, models)
    kept = [
        dataclasses.replace(contest, entries=tuple(e for e in contest.entries if e.model in wanted))
        for contest in contests
    ]
    return tuple(contest for contest in kept if contest.entries)


def _changed(contest: Contest, changes: dict[str, Any]) -> Contest:
    """A contest with what was given; sizes are for those that vary them."""
    if not contest.sizes:
        changes = {name: value for name, value in changes.items() if name not in ("sizes", "budget")}
    return dataclasses.replace(contest, **changes)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set is {text!r}; it must be FIELD=VALUE, such as optimizer.learning_rate=1e-3")
    return name.removeprefix("config."), value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted(set(map(_count, text.split(",")))))
