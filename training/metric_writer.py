"""A run's metrics on disk: `metrics.jsonl` (a row per event) and `metrics.csv` (a row per value)."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from errors import UserError

COLUMNS = ("step", "split", "metric", "value")
FINAL = "final_"  # begins the splits that are measured once, at the end, of whichever step was best


class MetricWriter:
    """Appends metrics to the files of a run.

    Args:
        workdir: the run's folder.
        start_step: rows after this step are dropped, and all of the end: a resumed run makes them again.
        tensorboard: also write TensorBoard events, through tensorboardX.
    """

    def __init__(self, workdir: Path, *, start_step: int = 0, tensorboard: bool = False):
        self._jsonl = workdir / "metrics.jsonl"
        self._csv = workdir / "metrics.csv"
        self._rewrite(
            [
                row
                for row in read(self._jsonl)
                if row["step"] <= start_step and not row["split"].startswith(FINAL)
            ]
        )
        self._board = None
        if tensorboard:
            try:
                from tensorboardX import SummaryWriter
            except ImportError:
                raise UserError("config.tensorboard needs the extra: pip install '.[tensorboard]'") from None

            self._board = SummaryWriter(str(workdir / "tensorboard"), purge_step=start_step + 1)

    def write(self, step: int, split: str, metrics: Mapping[str, float]) -> None:
        """Append the metrics of one split ("train", "validation", "test") at one step."""
        values = {name: float(value) for name, value in metrics.items()}
        self._append({"step": step, "split": split, **values})
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{split}/{name}", value, step)
            self._board.flush()

    def _rewrite(self, rows: list[dict[str, Any]]) -> None:
        """Begin both files with these rows; a kill leaves the old file or the new one, never half."""
        jsonl, table = (path.with_name(path.name + ".part") for path in (self._jsonl, self._csv))
        jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *(value for row in rows for value in _values(row))])
        jsonl.replace(self._jsonl)
        table.replace(self._csv)

    def _append(self, row: Mapping[str, Any]) -> None:
        with self._jsonl.open("a") as file:
            file.write(json.dumps(row) + "\n")
        with self._csv.open("a", newline="") as file:
            csv.writer(file).writerows(_values(row))


def _values(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """An event as rows of the table, one for each metric."""
    for name, value in row.items():
        if name not in ("step", "split"):
            yield row["step"], row["split"], name, value


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a `metrics.jsonl`; a last line cut off by a crash is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
