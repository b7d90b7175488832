"""The training loop, in this process; what it must do as a command is tried as one."""

import dataclasses
import io
import json
import math
import shutil
import sys

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from rich.console import Console

import train
from configs import EXPERIMENT, image
from errors import RunError, UserError
from predict import Predictor
from tests import command
from training import config as configs
from training import metric_writer
from training.optimizer import OPTIMIZERS

# One small model and one batch size, so that the runs of this file share their compiled steps.
FIELDS = {
    "batch_size": 32,
    "evaluation_batch_size": 100,
    "num_devices": 1,
    "duration": "40 steps",
    "log_every": "10 steps",
    "evaluate_every": "20 steps",
    "checkpoint_every": "20 steps",
    "model.patch_size": 4,
    "model.dim": 16,
    "model.num_layers": 1,
    "optimizer.learning_rate": 1e-2,
}


def config(**fields):
    return configs.override(image.get_config("model=vit"), FIELDS | fields, EXPERIMENT, parsed=True)


def short(**fields):
    """A run of three steps without checkpoints."""
    return config(**{"duration": "3 steps", "log_every": "1 step", "checkpoint_every": None} | fields)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 40 steps and its result."""
    workdir = tmp_path_factory.mktemp("runs") / "finished"
    return workdir, train.train(config(), workdir)


def rows(workdir, split):
    found = metric_writer.read(workdir / "metrics.jsonl")
    return {row["step"]: row for row in found if row["split"] == split}


def test_it_learns(finished):
    workdir, result = finished
    losses = {step: row["loss"] for step, row in rows(workdir, "train").items()}
    assert list(losses) == [10, 20, 30, 40]
    assert losses[40] < 0.7 * losses[10] < 0.7 * math.log(10)
    assert result["test_accuracy"] > 0.6


def test_the_result_is_complete_and_on_disk(finished):
    workdir, result = finished
    measured = {
        f"{split}_{name}" for split in ("validation", "test") for name in ("accuracy", "loss", "examples")
    }
    assert result.keys() == measured | {"best_step", "steps", "parameters", "flops_per_example"}
    assert json.loads((workdir / "result.json").read_text()) == result
    assert (result["validation_examples"], result["test_examples"]) == (200, 397)
    assert result["steps"] == 40
    # The embedding, positions, one block, two norms around it, and the head.
    block = 4 * (16 * 16 + 16) + 2 * 16 * 64 + 64 + 16 + 2 * 32
    assert result["parameters"] == 16 * 16 + 16 + 4 * 16 + block + 32 + 16 * 10 + 10
    assert result["flops_per_example"] > 2 * 4 * 4 * 16 * 16


def test_every_metric_is_written(finished):
    workdir, result = finished
    trained, validation = rows(workdir, "train"), rows(workdir, "validation")
    assert trained[10].keys() == {"step", "split", "loss", "accuracy", "gradient_norm", "learning_rate"}
    rates = OPTIMIZERS.build(config().optimizer).learning_rates(40)
    assert [row["learning_rate"] for row in trained.values()] == [float(rates[step - 1]) for step in trained]
    assert list(validation) == [20, 40]
    best = max(validation.values(), key=lambda row: row["accuracy"])
    assert (best["step"], best["accuracy"]) == (result["best_step"], result["validation_accuracy"])
    final = rows(workdir, "final_test")
    assert final[result["best_step"]]["accuracy"] == result["test_accuracy"]
    assert (workdir / "metrics.csv").read_text().count("\n") == 1 + 4 * 4 + 2 * 3 + 2 * 3


def test_a_finished_run_is_not_trained_again(finished):
    workdir, result = finished
    files = {path: path.stat().st_mtime_ns for path in workdir.rglob("*")}
    steps, shown = [], io.StringIO()
    again = train.train(config(), workdir, console=Console(file=shown), listener=steps.append)
    assert again == result
    assert steps == []
    assert "is finished" in shown.getvalue()
    assert {path: path.stat().st_mtime_ns for path in workdir.rglob("*")} == files


def test_the_same_seed_is_the_same_run_and_another_is_not(finished, tmp_path):
    """Also with other evaluation batches, whose padding counts for nothing."""
    result = train.train(config(evaluation_batch_size=500), tmp_path / "same")
    for name, value in finished[1].items():
        assert result[name] == pytest.approx(value, rel=1e-5), name
    assert result["test_examples"] == 397
    other = train.train(config(seed=1), tmp_path / "other")
    assert other["test_loss"] != pytest.approx(result["test_loss"], rel=1e-3)


def test_progress_is_shown_and_told(tmp_path):
    shown, steps = io.StringIO(), []
    console = Console(file=shown, width=60)
    train.train(short(), tmp_path / "run", console=console, listener=steps.append)
    text = shown.getvalue()
    assert steps == [1, 2, 3]
    for part in (
        "forward FLOPs per example",
        "step 1/3  accuracy 0.",
        "  loss 2.303  ",
        "ETA 0:0",
        "test of the best checkpoint",
    ):
        assert part in text, text


def test_both_devices_are_used_and_change_nothing(tmp_path):
    found = []
    for num_devices in (1, None):
        # Not AdamW, which makes a full step of the rounding errors in a gradient that is zero.
        fields = {"num_devices": num_devices, "optimizer": "sgd", "final": "last"}
        run = train.Run(short(**fields), tmp_path / str(num_devices), None, None)
        result = run.train()
        found.append((result, jax.device_get(run.state)))
        assert run.devices.num_devices == (num_devices or 2)
        assert len(run.state.step.sharding.device_set) == run.devices.num_devices
    for one, two in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


def test_not_a_number_stops_the_run_and_the_last_checkpoint_is_from_before(tmp_path):
    fields = {"optimizer.learning_rate": 1e30, "optimizer.clip_norm": None, "checkpoint_every": "1 step"}
    with pytest.raises(
        RunError, match=r"^(loss|accuracy|gradient_norm) is (nan|inf) at step [2-9] "
    ) as caught:
        train.train(config(**fields), tmp_path / "run")
    assert caught.value.exit_code == 1
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "result.json").exists()
    shelf = tmp_path / "run" / "checkpoints" / "latest"
    newest = max(int(folder.name) for folder in shelf.iterdir())
    with ocp.StandardCheckpointer() as checkpointer:
        state = checkpointer.restore(shelf / str(newest) / "state")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state["params"]))


@pytest.mark.parametrize(
    "fields, steps",
    [
        ({"dataset.train_size": 10}, 3),  # a batch larger than the data set
        ({"dataset.train_size": 1}, 3),  # a data set of one example
        ({"dataset.train_size": 100, "duration": "1 epoch"}, 4),
        ({"duration": "65 examples"}, 3),
    ],
    ids=str,
)
def test_small_things_work(fields, steps, tmp_path):
    result = train.train(short(**fields), tmp_path / "run")
    assert result["steps"] == steps
    assert result["test_examples"] == 397
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_batch_of_one_works_and_with_batch_normalisation_too(tmp_path):
    made = image.get_config("model=cnn")
    sizes = {"model.widths": (4,), "model.blocks": (1,), "batch_size": 1, "evaluation_batch_size": 100}
    loop = {"duration": "2 steps", "checkpoint_every": None, "num_devices": None}
    made = configs.override(made, loop | sizes, EXPERIMENT, parsed=True)
    assert math.isfinite(train.train(made, tmp_path / "run")["test_loss"])


def test_images_are_padded_to_a_larger_size(tmp_path):
    run = train.Run(short(**{"encoding.image_size": 12}), tmp_path / "run", None, None)
    run.prepare()
    assert next(run.iterator)["image"].shape == (32, 12, 12, 1)
    assert next(iter(run.data.evaluation["test"]()))["image"].shape == (100, 12, 12, 1)
    assert run.state.params["position_table"].shape == (1, 9, 16)


def test_the_test_split_is_left_alone_where_the_config_says_so(tmp_path):
    result = train.train(short(test=False), tmp_path / "run")
    assert [name for name in result if name.startswith("test_")] == []
    assert rows(tmp_path / "run", "final_test") == {}


def test_label_smoothing_is_used(tmp_path):
    losses = []
    for smoothing in (0.0, 0.3):
        workdir = tmp_path / str(smoothing)
        train.train(short(label_smoothing=smoothing), workdir)
        losses.append([row["loss"] for row in rows(workdir, "train").values()])
    # A head of zeros gives log(10) whatever the targets; from there on smooth targets cost more.
    np.testing.assert_allclose([losses[0][0], losses[1][0]], math.log(10), rtol=1e-5)
    assert losses[1][2] > losses[0][2] + 0.01


def again(made, workdir):
    """The result of a run that was interrupted before it wrote it, and the steps it then still made."""
    (workdir / "result.json").unlink()
    steps = []
    return train.train(made, workdir, listener=steps.append), steps


def test_it_ends_when_no_evaluation_has_been_better_for_long(tmp_path):
    # With a learning rate of 0 the first evaluation, at step 2, stays the best.
    rate = {"optimizer.learning_rate": 0.0, "patience": 3, "log_every": "1 step"}
    made = config(**rate, duration="20 steps", evaluate_every="2 steps", checkpoint_every="5 steps")
    result = train.train(made, tmp_path / "run")
    assert (result["best_step"], result["steps"]) == (2, 8)
    assert list(rows(tmp_path / "run", "validation")) == [2, 4, 6, 8]
    assert again(made, tmp_path / "run") == (result, [])
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "latest" / "8")
    assert again(made, tmp_path / "run") == (result, [6, 7, 8])


def test_the_average_of_checkpoints_is_tested_and_predicts(tmp_path):
    every = {"duration": "8 steps", "checkpoint_every": "2 steps", "evaluate_every": "4 steps"}
    made, workdir = config(**every, final="average"), tmp_path / "run"
    result = train.train(made, workdir)
    shelf = workdir / "checkpoints" / "latest"
    with ocp.StandardCheckpointer() as checkpointer:
        kept = [checkpointer.restore(shelf / f"{step}" / "state")["params"] for step in (4, 6, 8)]
    mean = jax.tree.map(lambda *arrays: np.mean(arrays, axis=0), *kept)
    used = nnx.to_pure_dict(Predictor(workdir)._arrays[0])
    for one, two in zip(jax.tree.leaves(used), jax.tree.leaves(mean), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)
    run = train.Run(made, workdir, None, None)
    run.prepare()
    state = dataclasses.replace(run.state, params=Predictor(workdir)._arrays[0])
    assert run.measure(state, "test")["loss"] == pytest.approx(result["test_loss"], rel=1e-6)
    assert again(made, workdir) == (result, [])


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"dataset.name": "digit"}, "unknown data set 'digit'. Did you mean 'digits'?"),
        (
            {"encoding.mean": (0.5, 0.5, 0.5), "encoding.std": (0.2, 0.2, 0.2)},
            "config.encoding.mean has 3 values",
        ),
        ({"encoding.image_size": 7}, "config.encoding.image_size is 7, smaller than the images of digits"),
        ({"dataset.train_size": 5000}, "train_size 5,000 is more than the 1,200"),
        ({"dataset.split_seed": -1}, "config.dataset.split_seed is -1; it must be an integer, at least 0"),
        ({"encoding.mean": ("x",)}, "config.encoding.mean is ('x',); it must be a tuple"),
        (
            {"encoding.augmentation": "shfit"},
            "config.encoding.augmentation is 'shfit'; it must be one of none",
        ),
        ({"batch_size": 0}, "config.batch_size is 0; it must be an integer, at least 1"),
        ({"evaluation_batch_size": -1}, "config.evaluation_batch_size is -1; it must be"),
        ({"seed": -1}, "config.seed is -1; it must be an integer, at least 0"),
        ({"duration": "10"}, "config.duration is '10'; it must be a number of steps, epochs or examples"),
        ({"duration": "0 steps"}, "config.duration is '0 steps'; there is nothing to train"),
        ({"log_every": "often"}, "config.log_every is 'often'"),
        ({"final": "bets"}, "config.final is 'bets'; it must be one of best, last, average"),
        (
            {"final": "average", "checkpoint_every": None},
            "config.final is 'average', which is of checkpoints",
        ),
        ({"patience": 0}, "config.patience is 0; it must be an integer, at least 1, or None"),
        ({"patience": 1, "evaluate_every": None}, "config.patience is 1 evaluations, but config.evaluate_"),
        ({"num_devices": 3}, "config.num_devices is 3, but there are 2"),
        ({"optimizer.kind": "adam"}, "unknown optimizer in config.optimizer 'adam'. Did you mean 'adamw'?"),
        ({"optimizer.schedule": "cosin"}, "config.optimizer.schedule is 'cosin'; it must be one of cosine"),
        ({"model.patch_size": 3}, "config.model: patch_size 3 does not tile an image of 8 x 8 pixels"),
        (
            {"model.attention.kind": "cosin"},
            "unknown attention in config.model.attention 'cosin'. Did you mean",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_run_is_one_line_and_leaves_nothing_behind(fields, said, tmp_path):
    with pytest.raises(UserError) as caught:
        train.train(config(**fields), tmp_path / "run")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"could not write to .*file: "):
        train.train(short(), tmp_path / "file")


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "give --config=configs/FILE.py"),
        (["--workdir=a"], "give --config=configs/FILE.py"),
        (["--resume=a", "--workdir=b"], "--resume=RUNDIR stands alone"),
        (["--resume=a"], "a holds no run: there is no config.json in it"),
        (["--config={configs}/image.py:dataset=digit", "--workdir=a"], "unknown data set 'digit'. Did you"),
        (
            ["--config={configs}/image.py", "--config.optimizer.learning_rat=1", "--workdir=a"],
            "unknown field of config.optimizer with kind 'adamw' 'learning_rat'. Did you mean",
        ),
    ],
    ids=str,
)
def test_the_command_says_what_it_needs(arguments, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    configs = command.ROOT / "configs"
    monkeypatch.setattr(sys, "argv", ["train.py", *(a.format(configs=configs) for a in arguments)])
    monkeypatch.setattr(train.launch, "compilation_cache", lambda: None)
    with pytest.raises(UserError) as caught:
        train.main()
    assert str(caught.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_command_is_one_line_and_exit_code_2(tmp_path):
    line = command.error_line("train.py", "--config=configs/imag.py", f"--workdir={tmp_path / 'run'}")
    assert line.startswith("error: unknown config file 'configs/imag.py'. Did you mean 'configs/image.py'?")
    assert list(tmp_path.iterdir()) == []


def test_seed_is_initial_values_and_order_and_split_seed_is_what_is_held_out(tmp_path):
    def prepared(**fields):
        run = train.Run(short(**{"dataset.train_size": 64} | fields), tmp_path / "run", None, None)
        run.prepare()
        params = jax.tree.leaves(jax.device_get(run.state.params))
        held_out = next(iter(run.data.evaluation["validation"]()))
        return params, next(run.iterator)["image"], held_out["image"]

    first, other_seed, other_split = prepared(), prepared(seed=1), prepared(**{"dataset.split_seed": 1})
    same = [np.array_equal(*pair) for pair in zip(first[0], other_split[0], strict=True)]
    assert all(same)
    assert not all(np.array_equal(*pair) for pair in zip(first[0], other_seed[0], strict=True))
    assert not np.array_equal(first[1], other_seed[1])
    np.testing.assert_array_equal(first[2], other_seed[2])
    assert not np.array_equal(first[2], other_split[2])
