"""The results of contests as tables for the console."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from experiments.framework.contests import Contest, Metric
from experiments.framework.outcome import Outcome

Rows = Sequence[dict[str, Any]]
Column = tuple[str, Callable[[str, Rows], str]]  # heading; model and its rows -> cell


def measured(outcome: Outcome) -> Iterable[Table]:
    """Every metric of a contest on the test part, mean and deviation over seeds; parameters and minutes."""
    for contest in outcome.contests:
        columns: list[Column] = [
            (metric.title, _spread("test" if name == contest.metric else f"test_{name}", metric))
            for name, metric in contest.metrics.items()
        ]
        columns.append(("parameters", _parameters))
        columns.append(("minutes", lambda model, rows: f"{outcome.minutes(contest, model):.0f}"))  # noqa: B023
        made = _table(contest.title, contest, outcome, columns)
        for column in made.columns[1:]:  # names may take several lines, numbers may not
            pieces = (*str(column.header).split(), *map(str, column.cells))
            column.min_width = max(map(len, pieces))
        yield made


def decided(outcome: Outcome) -> Iterable[Table]:
    """The deciding metric of a contest on test and validation, mean and deviation over seeds and folds."""
    for contest in outcome.contests:
        metric = contest.metrics[contest.metric]
        yield _table(
            f"{contest.title}: test {metric.title}, mean ± sd",
            contest,
            outcome,
            [
                ("test", _spread("test", metric)),
                ("validation", _spread("validation", metric)),
                ("runs", lambda model, rows: str(len(rows))),
                ("parameters", _parameters),
            ],
        )


def _table(title: str, contest: Contest, outcome: Outcome, columns: Sequence[Column]) -> Table:
    """A row for each model that has runs, and below the published ones."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.add_column("model")
    for heading, _ in columns:
        made.add_column(heading, justify="right")
    for entry in contest.entries:
        rows = outcome.rows_of(contest, entry.model)
        if rows:
            made.add_row(entry.model, *(cell(entry.model, rows) for _, cell in columns))
    for name, value in contest.published:
        made.add_row(f"{name} (published)", f"{value:g}", *[""] * (len(columns) - 1), style="dim")
    return made


def _spread(column: str, metric: Metric) -> Callable[[str, Rows], str]:
    return lambda model, rows: spread([row[column] for row in rows], metric)


def _parameters(model: str, rows: Rows) -> str:
    return f"{rows[0]['parameters']:,}"


def spread(values: Sequence[float], metric: Metric) -> str:
    """Mean and sample deviation, in per cent where it is a share."""
    text = f"{metric.factor * np.mean(values):.{metric.digits}f}"
    return text if len(values) < 2 else f"{text} ± {metric.factor * np.std(values, ddof=1):.{metric.digits}f}"
