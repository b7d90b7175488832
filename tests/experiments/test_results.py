"""results.csv: what is written is read back, and what is broken is named."""

import csv

import pytest

from errors import UserError
from experiments.framework.learning_curves import COLUMNS, KEY
from experiments.framework.results import COUNT, SHARE, TEXT, Column, read_rows, write_rows

NAMES = [column.name for column in COLUMNS]


def rows(*seeds):
    values = ("digits", "cnn", 50, 0, 2000, 1e-3, 28_042, 2.1e6, 0.5, 0.25, 900)
    return [dict(zip(NAMES, values, strict=True)) | {"seed": seed} for seed in seeds]


def read(path):
    return read_rows(path, COLUMNS, KEY)


def test_rows_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "results.csv"
    write_rows(path, COLUMNS, rows(0, 1, 2))
    assert read(path) == rows(0, 1, 2)
    with path.open() as file:
        more = [[*line, "any, thing"] for line in csv.reader(file)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*more[0][:-1], "note"], *more[1:]])
    assert read(path) == rows(0, 1, 2)  # further columns are left alone


def test_a_field_may_be_empty_where_its_column_says_so(tmp_path):
    columns = (Column("model", TEXT), Column("fold", COUNT, optional=True), Column("test", SHARE))
    path = tmp_path / "results.csv"
    made = [{"model": "a, b", "fold": None, "test": 0.5}, {"model": "a, b", "fold": 1, "test": 1.0}]
    write_rows(path, columns, made)
    assert path.read_text().splitlines()[1] == '"a, b",,0.5'
    assert read_rows(path, columns, ("model", "fold")) == made


def test_a_study_that_has_just_begun_has_no_rows(tmp_path):
    write_rows(tmp_path / "results.csv", COLUMNS, [])
    assert read(tmp_path / "results.csv") == []


@pytest.mark.parametrize(
    "column, text, says",
    [
        ("train_size", "many", "'many' is not a whole number"),
        ("train_size", "0", "too small"),
        ("seed", "1.5", "not a whole number"),
        ("seed", "-1", "too small"),
        ("learning_rate", "", "'' is not a number"),
        ("flops_per_example", "inf", "not finite"),
        ("test_accuracy", "nan", "not finite"),
        ("test_accuracy", "93.1", "outside 0..1"),
        ("model", " ", "empty"),
    ],
)
def test_a_broken_field_is_named_with_its_line_and_column(tmp_path, column, text, says):
    path = tmp_path / "results.csv"
    write_rows(path, COLUMNS, rows(0, 1, 2))
    lines = path.read_text().splitlines()
    cells = lines[2].split(",")
    cells[NAMES.index(column)] = text
    path.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]))
    with pytest.raises(UserError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(f"{path} line 3, column {column}: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "empty"),
        (b"panel,model\ncnn,vit\n", "line 1: column 'train_size' is missing"),
        (",".join([*NAMES, "seed"]).encode(), "line 1: a column name occurs twice"),
        (",".join(NAMES).encode() + b"\ndigits,cnn,50", "line 2: 3 fields"),
        (",".join(NAMES).encode() + b'\n"digits"x,cnn', "line 2: "),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path, content, says):
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read(path)
    assert str(error.value).startswith(str(path))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "results.csv"
    write_rows(path, COLUMNS, rows(0, 1, 0))
    with pytest.raises(UserError, match=r"line 4: .* seed 0 stands already on line 2"):
        read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"results.csv: can't be read \(No such file"):
        read(tmp_path / "results.csv")
