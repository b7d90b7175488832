"""The study that turns a CNN into a self-attention network, at a size of seconds."""

import io
import pathlib

import numpy as np
import pytest
from rich.console import Console

import train
from configs import EXPERIMENT
from errors import UserError
from experiments import convolution_as_attention as study
from experiments.framework.results import read_rows
from training import config as configs

SMALL = {"model.widths": (4, 8), "model.blocks": (1, 1), "duration": "3 steps", "evaluate_every": "3 steps"}


def test_counting_by_hand():
    logits = {
        "convolution": np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [9.0, 0.0]]),
        "attention": np.array([[1.0, 0.5], [3.0, 2.0], [0.0, 1.0], [0.0, 9.0]]),
    }
    # The last example only fills the batch up.
    batch = {"label": np.array([0, 1, 0, 0]), "weight": np.array([1.0, 1.0, 1.0, 0.0])}
    assert study.compare(lambda batch: logits, [batch, batch]) == {
        "examples": 6,
        "agreeing_predictions": 4,
        "max_logit_difference": 3.0,
        "max_logit": 2.0,
        "convolution_accuracy": 2 / 3,
        "attention_accuracy": 1 / 3,
    }


@pytest.fixture(autouse=True)
def _cache_of_the_tests(monkeypatch):
    monkeypatch.setattr(study.launch, "compilation_cache", lambda: None)


def test_a_run_is_turned_and_agrees_with_itself(tmp_path):
    run = next(study.PRESETS["smoke"][0].runs({}))
    folder, out, shown = tmp_path / "run", tmp_path / "new", io.StringIO()
    config = configs.override(run.config(), SMALL, EXPERIMENT, parsed=True)
    result = train.train(config, folder)
    study.of_a_run(folder, out, Console(file=shown))
    (row,) = read_rows(out / "results.csv", study.COLUMNS, ())
    assert row["examples"] == row["agreeing_predictions"] == 397
    assert row["convolution_accuracy"] == row["attention_accuracy"] == result["test_accuracy"]
    assert 0 < row["max_logit_difference"] < 1e-5 * row["max_logit"]
    assert "agreeing predictions" in shown.getvalue()


def test_a_run_that_cannot_be_turned_is_one_line(tmp_path):
    for name, field, value in (("vit", "model.kind", "vit"), ("unkept", "checkpoint_every", None)):
        config = next(study.PRESETS["smoke"][0].runs({})).config()
        config = configs.override(config, {field: value}, EXPERIMENT, parsed=True)
        (tmp_path / name).mkdir()
        configs.save(config, tmp_path / name)
    for name, message in (
        ("nothing", "holds no run"),
        ("vit", "no run of a CNN"),
        ("unkept", "keeps no checkpoints"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            study.of_a_run(tmp_path / name, tmp_path / "out", Console())
        assert "\n" not in str(caught.value)


def test_options_are_those_of_every_study_and_one_more():
    given = study.parser().parse_args(["--run=a/b", "--updates=5"])
    assert (given.run, given.updates) == (pathlib.Path("a/b"), 5)
