"""The command line that every study has."""

import pytest
from rich.console import Console

from errors import UserError
from experiments import data_size, encoders, reading
from experiments.framework import command


def plan(study, *arguments):
    return command.planned(study.STUDY, command.parser(study.STUDY).parse_args(arguments), Console())


def test_options_reach_the_contests(tmp_path):
    made = plan(
        data_size,
        "--preset=fashion_mnist",
        "--sizes=2000,500",
        "--seeds=7",
        "--updates=20",
        "--budget=epochs",
        "--jobs=3",
        "--set=optimizer.weight_decay=0.5",
        f"--out={tmp_path}",
    )
    (contest,) = made.contests
    assert (contest.sizes, contest.seeds, contest.updates, contest.budget) == ((500, 2000), 7, 20, "epochs")
    assert {run.config().optimizer.weight_decay for run in contest.runs({})} == {0.5}
    assert (made.out, made.jobs) == (tmp_path, 3)


def test_what_is_not_given_is_the_presets():
    made = plan(encoders, "--preset=trec")
    assert made.contests == encoders.PRESETS["trec"]
    assert made.out.parts[-3:] == ("runs", "encoders", "trec")


def test_models_are_chosen_by_name_also_those_with_a_comma():
    kept = plan(encoders, "--models=GAT,CNN").contests
    assert {contest.name: [entry.model for entry in contest.entries] for contest in kept} == {
        "grammar_tags": ["CNN"],
        "grammar_agreement": ["CNN"],
        "tones": ["CNN"],
        "karate": ["GAT"],
    }
    names = ("--models=co-attention, gate", "--models=with self-matching")
    assert [len(contest.entries) for contest in plan(reading, "--preset=xquad", *names).contests] == [2, 2]


@pytest.mark.parametrize(
    "study, argument, says",
    [
        (encoders, "--preset=tres", "unknown preset 'tres'. Did you mean 'trec'?"),
        (encoders, "--models=CNM", "unknown model 'CNM'. Did you mean 'CNN'?"),
        (encoders, "--sizes=3", "--sizes: --preset=quick varies no training-set size"),
        (encoders, "--budget=epochs", "--budget: --preset=quick varies no training-set size"),
        (encoders, "--set=seed", "--set is 'seed'; it must be FIELD=VALUE"),
        (encoders, "--set=sed=1", "unknown config field 'sed'"),
        (data_size, "--sizes=1,x", "'x' is not a whole number from 1 on"),
        (data_size, "--sizes=0", "'0' is not a whole number from 1 on"),
        (data_size, "--seeds=-1", "'-1' is not a whole number from 1 on"),
        (data_size, "--seeds=two", "'two' is not a whole number from 1 on"),
        (data_size, "--budget=days", "invalid choice"),
        (data_size, "--nonsense", "unrecognized arguments"),
    ],
)
def test_mistakes_are_one_line(study, argument, says):
    with pytest.raises(UserError, match=r"^[^\n]*$") as caught:
        plan(study, argument)
    assert says in str(caught.value)
