"""Molecules of your own: a CSV or TSV file with a column of SMILES and one of what is asked."""

from pathlib import Path

import numpy as np

import errors
from data.graph.readers import table
from data.graph.types import Example, Molecule, Targets

_MANY = 10  # more different whole numbers than this are no classes


def read(
    path: Path, *, smiles_column: str, target_column: str | None, targets: Targets | None
) -> list[Example]:
    """The molecules of a file.

    Args:
        path: a table ending in .csv or .tsv.
        smiles_column: the column of the molecule.
        target_column: the column of what is asked; None is target, label or y, or the only other one.
        targets: what that holds; None takes it for numbers if all are, and not all whole or more than 10
            different ones.

    Raises:
        errors.UserError: the file is no such table; file and line are named.
    """
    delimiter = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if delimiter is None:
        raise errors.UserError(f"{path}: a table of molecules must end in .csv or .tsv")
    content = path.read_bytes()
    others = [c for c in table.header(content, str(path), delimiter) if c != smiles_column]
    if target_column is None:
        usual = [column for column in others if column.lower() in ("target", "label", "y")] or others
        if len(usual) != 1:
            raise errors.UserError(
                f"{path}: which column is the target? Name one of {', '.join(others)} by target_column"
            )
        target_column = usual[0]
    rows = list(table.rows(content, str(path), (smiles_column, target_column), delimiter))
    words = [row.values[target_column].strip() for row in rows]
    for row, word in zip(rows, words, strict=True):
        if not word:
            raise errors.UserError(f"{row.where}: {target_column} is empty")
    if targets == "numbers" or (targets is None and _are_numbers(words)):
        values: list = [(table.number(row, target_column),) for row in rows]
    else:
        values = words
    return [
        Molecule(row.values[smiles_column].strip(), value, row.where)
        for row, value in zip(rows, values, strict=True)
    ]


def _are_numbers(words: list[str]) -> bool:
    try:
        values = {float(word) for word in words}
    except ValueError:
        return False
    return len(values) > _MANY or any(value != int(value) for value in values if np.isfinite(value))
