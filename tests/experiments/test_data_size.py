"""The study as a whole, at a size of seconds."""

import csv
import json
import signal
import time

import pytest
from rich.console import Console

from errors import UserError
from experiments import data_size
from tests import command

STUDY = ("-m", "experiments.data_size", "--preset=smoke", "--seeds=2")


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "undisturbed"
    done = command.run(*STUDY, f"--out={out}")
    return out, done.stdout


def test_a_study_leaves_table_figure_report_and_manifest(undisturbed):
    out, printed = undisturbed
    for name in ("results.csv", "curve.png", "curve.svg", "report.html", "manifest.json"):
        assert (out / name).stat().st_size > 0, name
    assert "8/8 runs" in printed
    assert "no crossing within the data" in printed or "overtakes" in printed
    assert "command" in json.loads((out / "manifest.json").read_text())


def test_the_grid_is_paired_by_seed_and_equal_in_updates(undisturbed):
    table = rows(undisturbed[0] / "results.csv")
    cells = {(r["model"], r["train_size"], r["seed"]) for r in table}
    assert cells == {(m, n, s) for m in ("cnn", "vit") for n in ("30", "90") for s in ("0", "1")}
    assert {r["updates"] for r in table} == {"40"}
    assert all(0 <= float(r["test_accuracy"]) <= 1 for r in table)


def test_killed_and_restarted_it_gives_the_same_csv(undisturbed, tmp_path):
    out = tmp_path / "killed"
    process = command.start(*STUDY, f"--out={out}")
    deadline = time.monotonic() + 120
    while not (out / "results.csv").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done_before = {p.parent.name for p in (out / "runs").glob("*/result.json")}
    assert 0 < len(rows(out / "results.csv")) < 8
    stamps = {name: (out / "runs" / name / "metrics.csv").stat().st_mtime_ns for name in done_before}
    command.run(*STUDY, f"--out={out}")
    assert (out / "results.csv").read_bytes() == (undisturbed[0] / "results.csv").read_bytes()
    assert (out / "curve.svg").read_bytes() == (undisturbed[0] / "curve.svg").read_bytes()
    for name, stamp in stamps.items():  # runs that were done are not done again
        assert (out / "runs" / name / "metrics.csv").stat().st_mtime_ns == stamp


def parse(*arguments):
    return data_size.parse(arguments, Console())


def test_sizes_and_seeds_come_from_the_command_line(tmp_path):
    study = parse("--preset=fashion_mnist", "--sizes=2000,500", "--seeds=7", f"--out={tmp_path}")
    (curve,) = study.curves
    assert curve.sizes == (500, 2000)
    assert curve.seeds == 7


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--preset=fashon_mnist", "Did you mean 'fashion_mnist'"),
        ("--sizes=1,x", "whole numbers"),
        ("--sizes=0", "whole numbers"),
        ("--seeds=-1", "must not be negative"),
        ("--seeds=two", "invalid int value"),
        ("--budget=days", "invalid choice"),
        ("--nonsense", "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_line(argument, message):
    with pytest.raises(UserError, match=message) as caught:
        parse(argument)
    assert "\n" not in str(caught.value)


def test_the_epochs_budget_gives_every_size_the_same_number_of_epochs():
    (curve,) = data_size.PRESETS["fashion_mnist"]
    small = data_size.config_for(curve, "cnn", 500, 0, 1e-3, "epochs")
    large = data_size.config_for(curve, "cnn", 60000, 0, 1e-3, "epochs")
    assert small.duration == large.duration
    assert small.duration.endswith(" epochs")
    steps = data_size.config_for(curve, "cnn", 500, 0, 1e-3, "updates")
    assert steps.duration == "2000 steps"


def test_both_models_see_the_same_images_with_the_same_augmentation():
    (curve,) = data_size.PRESETS["smoke"]
    cnn, vit = (data_size.config_for(curve, model, 90, 1, 1e-3, "updates") for model in ("cnn", "vit"))
    assert cnn.dataset == vit.dataset
    assert (cnn.seed, cnn.batch_size, cnn.duration) == (vit.seed, vit.batch_size, vit.duration)
