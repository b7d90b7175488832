"""Contests: the runs that they come to, their names and their configs."""

import dataclasses

import pytest

from errors import UserError
from experiments import (
    captioning,
    convolution_as_attention,
    data_size,
    encoders,
    reading,
    transcription,
    translation,
)
from experiments.framework.contests import Contest, Entry, Metric, Run

STUDIES = [
    module.STUDY
    for module in (
        captioning,
        convolution_as_attention,
        data_size,
        encoders,
        reading,
        transcription,
        translation,
    )
]
CONTEST = Contest(
    "grammar",
    "a grammar",
    config="labeling",
    argument="dataset=grammar",
    metrics={"accuracy": Metric("accuracy, %", is_share=True)},
    entries=(Entry("window-FC", "model=window_fc"), Entry("CNN", "model=cnn", {"label_smoothing": 0.1})),
    seeds=2,
    fields={"duration": "4 steps", "optimizer.clip_norm": 0.5},
)
SIZED = dataclasses.replace(
    CONTEST,
    config="image",
    argument="dataset=digits",
    entries=(Entry("cnn", "model=cnn", learning_rates=(0.5, 0.25)), Entry("vit", "model=vit")),
    seeds=1,
    sizes=(30, 90),
    updates=40,
    evaluations=8,
    tuning_size=60,
    fields={},
)


@pytest.mark.parametrize(
    "contest",
    [c for study in STUDIES for preset in study.presets.values() for c in preset],
    ids=lambda c: c.name,
)
def test_every_entry_has_a_config_and_differs_from_the_others(contest):
    runs = [next(r for r in contest.runs({}) if r.entry == entry) for entry in contest.entries]
    configs = [run.config().to_dict() for run in runs]
    assert len({str(config) for config in configs}) == len(configs)
    assert len({entry.model for entry in contest.entries}) == len(configs)


def test_runs_are_paired_and_named():
    assert [run.name for run in CONTEST.runs({})] == [
        "grammar-window-FC-seed0",
        "grammar-CNN-seed0",
        "grammar-window-FC-seed1",
        "grammar-CNN-seed1",
    ]
    folds = dataclasses.replace(CONTEST, seeds=1, folds=2, entries=CONTEST.entries[:1])
    assert [run.name for run in folds.runs({})] == [f"grammar-window-FC-seed0-fold{n}" for n in (0, 1)]
    assert [run.name for run in SIZED.runs({})] == [
        f"grammar-{model}-{size}-seed0" for size in (30, 90) for model in ("cnn", "vit")
    ]
    assert [run.name for run in SIZED.tuning()] == [
        "tuning-grammar-cnn-60-lr0.5",
        "tuning-grammar-cnn-60-lr0.25",
    ]


def test_fields_of_the_contest_of_the_entry_and_of_the_command_line():
    window, cnn, *_ = (run.config() for run in CONTEST.runs({}))
    assert (window.optimizer.clip_norm, window.label_smoothing) == (0.5, 0.0)
    assert (cnn.optimizer.clip_norm, cnn.label_smoothing) == (0.5, 0.1)
    assert window.duration == cnn.duration == "4 steps"
    last = dataclasses.replace(CONTEST, updates=7, settings={"label_smoothing": "0.2"})
    _, cnn, other, _ = (run.config() for run in last.runs({}))
    assert (cnn.duration, cnn.label_smoothing) == ("7 steps", 0.2)
    assert (cnn.seed, other.seed) == (0, 1)


def test_a_fold_is_an_argument_of_the_config():
    (contest,) = encoders.PRESETS["esol"]
    assert [run.config().dataset.fold for run in contest.runs({})] == [0, 1, 2, 3, 4] * 3


def test_learning_rates_and_sizes():
    cnn, vit, large, _ = (run.config() for run in SIZED.runs({"cnn": 0.25}))
    assert (cnn.optimizer.learning_rate, cnn.dataset.train_size) == (0.25, 30)
    assert (vit.optimizer.learning_rate, large.dataset.train_size) == (3e-3, 90)
    assert (cnn.evaluate_every, cnn.log_every, cnn.test) == ("5 steps", "5 steps", True)
    assert cnn.dataset == vit.dataset  # the same images, with the same augmentation
    tuned = next(iter(SIZED.tuning())).config()
    assert (tuned.seed, tuned.test, tuned.dataset.train_size) == (1000, False, 60)
    alone = Run(SIZED, Entry("cnn", "model=cnn", learning_rates=(0.125,)), seed=0)
    assert alone.config().optimizer.learning_rate == 0.125


def test_budgets_of_updates_and_of_epochs():
    """40 updates of 64 images are 28.4 epochs of 90; a third of the images makes a third of the updates."""
    for budget, updates, duration in (
        ("updates", [40, 40], ["40 steps"] * 2),
        ("epochs", [14, 40], ["28.4444 epochs"] * 2),
    ):
        contest = dataclasses.replace(SIZED, budget=budget, entries=SIZED.entries[:1])
        runs = list(contest.runs({}))
        assert [run.updates for run in runs] == updates
        assert [run.config().duration for run in runs] == duration


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("modl.dim", "8", "unknown config field 'modl.dim'. Did you mean 'model.dim'?"),
        ("optimizer", "8", "unknown optimizer in config.optimizer '8'"),
        ("seed", "many", "config.seed is 'many'; it must be an integer"),
    ],
)
def test_a_setting_that_is_none_or_of_another_kind_is_one_line(field, value, says):
    contest = dataclasses.replace(CONTEST, settings={field: value})
    with pytest.raises(UserError, match=r"^[^\n]*$") as caught:
        next(contest.runs({})).config()
    assert says in str(caught.value)


def test_a_setting_may_choose_another_kind_of_a_part():
    contest = dataclasses.replace(
        CONTEST, settings={"model.encoder": "gated_cnn", "model.encoder.num_layers": "2"}
    )
    encoder = next(contest.runs({})).config().model.encoder
    assert (encoder.kind, encoder.num_layers) == ("gated_cnn", 2)
