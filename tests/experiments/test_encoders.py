"""The study of encoders: its configs, its rows, its table, its figure, and a run of it."""

import csv
import io

import pytest
from rich.console import Console

from errors import UserError
from experiments import contest as contests
from experiments import encoder_figure, encoders
from experiments.contest import COLUMNS, Contest, Entry, Study
from experiments.encoders import PRESETS

CONTEST = Contest(
    "grammar",
    "a grammar",
    config="labeling",
    argument="dataset=grammar",
    metric="accuracy",
    entries=(Entry("window-FC", "model=window_fc"), Entry("CNN", "model=cnn", {"model.num_layers": 1})),
    published=(("someone", 91.5),),
    seeds=2,
    fields={"duration": "4 steps", "evaluate_every": "4 steps", "checkpoint_every": "", "model.dim": 8},
)


def rows(values, metric="accuracy"):
    return [
        {"contest": "grammar", "model": model, "metric": metric, "test": test, "validation": test / 2}
        | {"parameters": 1234}
        for model, tests in values.items()
        for test in tests
    ]


def shown(table):
    printed = io.StringIO()
    Console(file=printed, width=100).print(table)
    return printed.getvalue()


def test_fields_of_the_contest_and_of_the_entry():
    window, cnn = (contests.config_for(CONTEST, entry, 0, 0) for entry in CONTEST.entries)
    assert (window.model.dim, cnn.model.dim, cnn.model.num_layers) == (8, 8, 1)
    folds = contests.config_for(PRESETS["esol"][0], PRESETS["esol"][0].entries[0], 0, 3)
    assert folds.dataset.fold == 3


def test_the_table_says_mean_and_deviation():
    text = shown(encoders.table(None, CONTEST, rows({"window-FC": [0.5, 0.6], "CNN": [0.75]})))
    assert "a grammar: test accuracy, %, mean ± sd" in text
    assert "55.0 ± 7.1" in text and "27.5 ± 3.5" in text  # noqa: PT018
    assert "75.0 " in text
    assert "1,234" in text
    assert "someone (published)" in text and "91.5" in text  # noqa: PT018


def test_an_error_is_not_told_in_per_cent():
    contest = PRESETS["esol"][0]
    assert not contest.is_share
    assert contests.spread([0.5, 0.7], contest.is_share, 3) == "0.600 ± 0.141"


def test_the_figure_is_the_same_bytes_twice(tmp_path):
    given = rows({"window-FC": [0.5, 0.6], "CNN": [0.75, 0.75]})
    one, two = (encoder_figure.draw(given, [CONTEST], tmp_path / name) for name in ("one", "two"))
    assert one[1].read_bytes() == two[1].read_bytes()
    other = encoder_figure.draw(rows({"window-FC": [0.5]}), [CONTEST], tmp_path / "other")
    assert other[1].read_bytes() != one[1].read_bytes()
    assert one[0].stat().st_size > 1000


def test_a_study_runs_and_its_second_start_has_nothing_to_do(tmp_path):
    def run():
        study = Study((CONTEST,), tmp_path, 1, Console(file=io.StringIO()))
        return study.run(), (tmp_path / "results.csv").read_text()

    first, text = run()
    assert [(row["model"], row["seed"]) for row in first] == [
        ("window-FC", 0),
        ("CNN", 0),
        ("window-FC", 1),
        ("CNN", 1),
    ]
    read = list(csv.DictReader(io.StringIO(text)))
    assert tuple(read[0]) == COLUMNS
    assert all(0 <= float(row["test"]) <= 1 and row["steps"] == "4" and row["fold"] == "" for row in read)
    states = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")}
    assert run() == (first, text)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*")} == states


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--preset=tres"], "unknown preset 'tres'. Did you mean 'trec'?"),
        (["--seeds=-1"], "must not be negative"),
        (["--sizes=3"], "--sizes"),
    ],
)
def test_mistakes_are_one_line(arguments, said):
    with pytest.raises(UserError, match=r"^[^\n]*$") as caught:
        contests.parse(arguments, Console(), name="encoders", about="", presets=PRESETS)
    assert said in str(caught.value)
