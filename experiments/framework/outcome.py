"""What a study came to: its folder, the rows of its results.csv, and the facts of its manifest."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.framework.contests import Contest


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What tables and figures are made from.

    Attributes:
        contests: that were run.
        out: the study's folder.
        rows: of results.csv.
        facts: of manifest.json.
    """

    contests: Sequence[Contest]
    out: Path
    rows: Sequence[dict[str, Any]]
    facts: Mapping[str, Any]

    def rows_of(self, contest: Contest, model: str) -> list[dict[str, Any]]:
        """The rows of one model in a contest."""
        return [row for row in self.rows if (row["contest"], row["model"]) == (contest.name, model)]

    def folder(self, contest: Contest, model: str) -> Path:
        """Where the run of a model's first seed lies."""
        return self.out / "runs" / next(run.name for run in contest.runs({}) if run.entry.model == model)

    def minutes(self, contest: Contest, model: str) -> float:
        """How long the run of a model's first seed took."""
        return self.facts["minutes"][f"{contest.name}, {model}"]


def minutes(folder: Path) -> float:
    """How long a run took, from its config's file to its result's."""
    start, end = ((folder / name).stat().st_mtime for name in ("config.json", "result.json"))
    return round((end - start) / 60, 1)
