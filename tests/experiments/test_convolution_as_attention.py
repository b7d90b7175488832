"""The study that turns a CNN into a self-attention network, at a size of seconds."""

import csv

import numpy as np
import pytest

from errors import UserError
from experiments import convolution_as_attention as study
from tests import command
from training import config as configs


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


def test_the_command_trains_compares_and_takes_up_a_run(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    done = command.run("-m", "experiments.convolution_as_attention", "--preset=smoke", f"--out={first}")
    with (first / "results.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["examples"] == row["agreeing_predictions"] == "397"
    assert row["convolution_accuracy"] == row["attention_accuracy"]
    assert "agreeing predictions" in done.stdout
    command.run("-m", "experiments.convolution_as_attention", f"--run={first / 'run'}", f"--out={again}")
    assert (again / "results.csv").read_bytes() == (first / "results.csv").read_bytes()


def test_wrong_arguments_are_one_line(tmp_path):
    for name, field, value in (("vit", "model.kind", "vit"), ("unkept", "checkpoint_every", "")):
        config = study.config_for(20)
        config.update_from_flattened_dict({field: value})
        (tmp_path / name).mkdir()
        configs.save(config, tmp_path / name)
    for arguments, message in (
        (["--preset=quik"], "Did you mean 'quick'"),
        (["--nonsense"], "unrecognized arguments"),
        ([f"--run={tmp_path / 'nothing'}"], "holds no run"),
        ([f"--run={tmp_path / 'vit'}"], "no run of a CNN"),
        ([f"--run={tmp_path / 'unkept'}"], "keeps no checkpoints"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            study.parse(arguments)
        assert "\n" not in str(caught.value)
