"""A study from its runs to its tables, with results made up in place of training."""

import dataclasses
import io
import json
import os
import shutil

import pytest
from rich.console import Console

from errors import UserError
from experiments import data_size, encoders
from experiments.framework import score_dots, study, tables
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.outcome import Outcome, minutes
from experiments.framework.study import Plan, Study
from tests.command import ROOT

CONTEST = Contest(
    "pairs",
    "Pairs of texts",
    config="labeling",
    argument="dataset=grammar",
    metrics={"bleu": Metric("BLEU", digits=2), "right": Metric("right, %", is_share=True)},
    entries=(Entry("one", "model=window_fc"), Entry("two", "model=cnn")),
    published=(("someone", 28.3),),
    seeds=2,
    updates=10,
)
RATED = dataclasses.replace(
    CONTEST,
    metrics={"error": Metric("error", lower_is_better=True)},
    entries=(Entry("one", "model=window_fc", learning_rates=(1.0, 0.5, 0.25)), CONTEST.entries[1]),
)


def score(name):
    """A number that differs between runs; lowest for the middle learning rate."""
    return 0.3 + 0.01 * (sum(name.encode()) % 7) - 0.2 * ("lr0.5" in name)


@pytest.fixture
def trained(monkeypatch):
    """In place of training: results by the runs' names, and files that tell the time; collects runs."""
    done = []

    def run_grid(runs, out, *, finished, **_):
        results = {}
        for run in reversed(runs):  # whichever ends first
            done.append(run)
            value = score(run.name)
            results[run.name] = {
                f"{part}_{metric}": value
                for part in ("validation", "test")
                for metric in ("bleu", "right", "error")
            } | {"best_step": 5, "steps": 10, "parameters": 1234, "flops_per_example": 56.0}
            folder = out / "runs" / run.name
            folder.mkdir(parents=True)
            for file, time in (("config.json", 1_000_000), ("result.json", 1_000_090)):
                (folder / file).write_text("")
                os.utime(folder / file, (time, time))
            finished(results)
        return results

    monkeypatch.setattr(study, "run_grid", run_grid)
    return done


def plan(out, *contests, **changes):
    return Plan(
        Study("pairs", "", {"quick": contests}, **changes), contests, out, 1, Console(file=io.StringIO())
    )


def shown(*parts, width=100):
    file = io.StringIO()
    for part in parts:
        Console(file=file, width=width).print(part)
    return file.getvalue()


def test_rows_are_in_the_grids_order_and_read_back(tmp_path, trained):
    made = plan(tmp_path / "new", CONTEST, facts=lambda: {"signature": "s"})
    outcome = made.run("python -m experiments.pairs")
    assert [(row["model"], row["seed"], row["fold"]) for row in outcome.rows] == [
        ("one", 0, None),
        ("two", 0, None),
        ("one", 1, None),
        ("two", 1, None),
    ]
    first = outcome.rows[0]
    assert first["metric"] == "bleu"
    assert first["validation"] == first["test"] == first["test_right"] == score("pairs-one-seed0")
    assert (tmp_path / "new/results.csv").read_text().splitlines()[0] == (
        "contest,model,seed,fold,metric,validation,test,best_step,steps,parameters,flops_per_example,test_right"
    )
    facts = json.loads((tmp_path / "new/manifest.json").read_text())
    assert facts["minutes"] == {"pairs, one": 1.5, "pairs, two": 1.5}
    assert (facts["command"], facts["signature"]) == ("python -m experiments.pairs", "s")
    assert facts["contests"][0]["entries"][0] == {"model": "one", "argument": "model=window_fc"}
    assert [run.updates for run in trained] == [10] * 4
    assert made.outcome() == outcome  # which is what --draw makes tables and figures from


def test_learning_rates_are_chosen_on_validation(tmp_path, trained):
    plan(tmp_path, RATED).run("")
    names = [run.name for run in trained]
    assert sorted(names[:3]) == [f"tuning-pairs-one-lr{rate}" for rate in ("0.25", "0.5", "1")]
    rates = {run.name: run.config.optimizer.learning_rate for run in trained[3:]}
    assert rates["pairs-one-seed0"] == rates["pairs-one-seed1"] == 0.5
    assert rates["pairs-two-seed0"] not in (0.25, 0.5, 1.0)


def test_of_epochs_only_the_data_know_the_updates(tmp_path, trained, monkeypatch):
    asked = []
    monkeypatch.setattr(study, "_updates", lambda config: asked.append(config.duration) or 77)
    plan(tmp_path, dataclasses.replace(CONTEST, updates=None, fields={"duration": "3 epochs"})).run("")
    assert [run.updates for run in trained] == [77] * 4
    assert asked == ["3 epochs"] * 2  # once for each model


def test_an_outcome_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"^[^\n]*results\.csv: can't be read[^\n]*$"):
        plan(tmp_path, CONTEST).outcome()


def outcome(values, contest=CONTEST, **more):
    rows = [
        {"contest": contest.name, "model": model, "test": test, "validation": test / 2, "parameters": 1234}
        | more
        for model, tests in values.items()
        for test in tests
    ]
    return Outcome([contest], None, rows, {"minutes": {"pairs, one": 12.4, "pairs, two": 0.4}})


def test_the_table_says_mean_deviation_and_time():
    (table,) = tables.measured(outcome({"one": [30.0, 31.0]}, test_right=0.625))
    lines = [line.split() for line in shown(table).splitlines() if line.strip()]
    assert lines[0] == ["Pairs", "of", "texts"]
    assert lines[3] == ["one", "30.50", "±", "0.71", "62.5", "±", "0.0", "1,234", "12"]
    assert lines[4] == ["someone", "(published)", "28.3"]
    narrow = shown(table, width=60)  # names break, numbers and headings do not
    assert all(whole in narrow for whole in ("30.50 ± 0.71", "62.5 ± 0.0", "parameters", "minutes"))


def test_the_table_of_the_deciding_metric():
    (contest,) = encoders.PRESETS["trec"]
    (table,) = tables.decided(outcome({"CNN": [0.5, 0.6], "BiLSTM": [0.75]}, contest))
    text = shown(table)
    assert "TREC, six kinds of questions: test accuracy, %, mean ± sd" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["CNN", "55.0", "±", "7.1", "27.5", "±", "3.5", "2", "1,234"] in rows
    assert ["BiLSTM", "75.0", "37.5", "1", "1,234"] in rows
    assert ["high", "(published)", "91.2"] in rows


def test_an_error_is_not_told_in_per_cent():
    assert tables.spread([0.5, 0.7], encoders.RMSE["rmse"]) == "0.600 ± 0.141"


def test_the_dots_are_the_same_bytes_twice(tmp_path):
    (contest,) = encoders.PRESETS["trec"]
    given = outcome({"CNN": [0.5, 0.6], "BiLSTM": [0.75, 0.75]}, contest).rows
    one, two = (score_dots.draw(given, [contest], tmp_path / name) for name in ("one", "two"))
    assert one[1].read_bytes() == two[1].read_bytes()
    other = score_dots.draw(given[:2], [contest], tmp_path / "other")
    assert other[1].read_bytes() != one[1].read_bytes()
    assert one[0].stat().st_size > 1000


@pytest.mark.parametrize("made, preset", [(encoders, "esol"), (data_size, "quick")])
def test_committed_figures_are_those_of_the_committed_rows(tmp_path, made, preset):
    committed = ROOT / "results" / made.STUDY.name / preset
    for name in ("results.csv", "manifest.json"):
        shutil.copy(committed / name, tmp_path)
    again = Plan(made.STUDY, made.PRESETS[preset], tmp_path, 1, Console())
    for path in made.STUDY.draw(again.outcome()):
        if path.suffix == ".svg":
            assert path.read_bytes() == (committed / path.name).read_bytes()


def test_time_is_from_config_to_result(tmp_path):
    for name, time in (("config.json", 1_000_000), ("result.json", 1_000_090)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (time, time))
    assert minutes(tmp_path) == 1.5
