"""The rows of a study's results.csv, and how that file is written and read."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import UserError


@dataclass(frozen=True)
class Run:
    """One row of results.csv: a training run, at its best step on validation.

    Attributes:
        panel: Key of the panel it belongs to.
        model: Key of the model.
        train_size: Training examples.
        seed: Seed, shared by the models it is paired with.
        updates: Optimiser updates made.
        learning_rate: Peak learning rate.
        parameters: Trained parameters.
        flops_per_example: Floating point operations of one forward pass of one example.
        validation_accuracy: In 0..1.
        test_accuracy: In 0..1.
        best_step: Update whose parameters were tested.
    """

    panel: str
    model: str
    train_size: int
    seed: int
    updates: int
    learning_rate: float
    parameters: int
    flops_per_example: float
    validation_accuracy: float
    test_accuracy: float
    best_step: int


_WHOLE = ("train_size", "seed", "updates", "parameters", "best_step")
_POSITIVE = ("train_size", "parameters")
_ACCURACIES = ("validation_accuracy", "test_accuracy")
COLUMNS = tuple(Run.__dataclass_fields__)


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV, whole or not at all; a column that a row lacks is left empty."""
    part = path.with_suffix(".csv.part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def read_rows(path: Path | str) -> list[Run]:
    """The runs of a results.csv, in the order of the file.

    Args:
        path: CSV with a header that names at least `COLUMNS`; further columns are left alone.

    Raises:
        UserError: The file can't be read, or a line is broken; the message names line and column.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.reader(file, strict=True))
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8") from None


def _read(path: Path, lines: Any) -> list[Run]:
    runs: list[Run] = []
    seen: dict[tuple[object, ...], int] = {}
    header: list[str] = []
    try:
        for fields in lines:
            where = f"{path} line {lines.line_num}"
            if not header:
                header = fields
                missing = [name for name in COLUMNS if name not in header]
                if missing:
                    raise UserError(
                        f"{where}: column {missing[0]!r} is missing. Needed: {', '.join(COLUMNS)}"
                    )
                if len(set(header)) < len(header):
                    raise UserError(f"{where}: a column name occurs twice")
                continue
            if not fields:
                continue
            if len(fields) != len(header):
                raise UserError(f"{where}: {len(fields)} fields, but the header has {len(header)} columns")
            cells = dict(zip(header, fields, strict=True))
            run = Run(**{name: _value(where, name, cells[name]) for name in COLUMNS})
            cell = (run.panel, run.model, run.train_size, run.seed)
            if cell in seen:
                raise UserError(
                    f"{where}: the run of panel {run.panel}, model {run.model}, train_size "
                    f"{run.train_size}, seed {run.seed} stands already on line {seen[cell]}"
                )
            seen[cell] = lines.line_num
            runs.append(run)
    except csv.Error as error:
        raise UserError(f"{path} line {lines.line_num}: {error}") from None
    if not header:
        raise UserError(f"{path}: empty. Needed is a header with {', '.join(COLUMNS)}")
    return runs


def _value(where: str, name: str, text: str) -> Any:
    """The value of one field, checked by its column."""
    if name in ("panel", "model"):
        if not text.strip():
            raise UserError(f"{where}, column {name}: empty")
        return text
    try:
        value = int(text) if name in _WHOLE else float(text)
    except ValueError:
        kind = "a whole number" if name in _WHOLE else "a number"
        raise UserError(f"{where}, column {name}: {text!r} is not {kind}") from None
    if not math.isfinite(value):
        raise UserError(f"{where}, column {name}: {text} is not finite")
    if name in _ACCURACIES and not 0 <= value <= 1:
        raise UserError(f"{where}, column {name}: {text} is outside 0..1")
    if value < 0 or (name in _POSITIVE and value == 0):
        raise UserError(f"{where}, column {name}: {text} is too small")
    return value
