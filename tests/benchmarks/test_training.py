"""The training benchmark: its arithmetic, its arguments, and that both sides train the same models."""

import importlib.util

import pytest

from benchmarks import image_problem, training
from benchmarks.interleaved import Quartiles, ratios
from errors import UserError


def test_ratios_are_taken_round_by_round():
    assert ratios([1.0, 3.0, 2.0], [2.0, 2.0, 4.0]) == [0.5, 1.5, 0.5]


def test_quartiles_of_known_numbers():
    assert Quartiles.of([5.0, 1.0, 3.0, 2.0, 4.0]) == (2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--rounds=1", "they must be at least 2 and 1"),
        ("--steps=0", "--steps 0; they must be at least 2 and 1"),
        ("--threads=x", "invalid int value"),
        ("--nonsense", "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_line(argument, message):
    with pytest.raises(UserError, match=message):
        training.parse([argument])


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("sys.argv", ["training"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install -e \.\[bench\]"):
        training.main()


def test_more_cores_than_there_are_is_refused():
    with pytest.raises(UserError, match="may use 1 to"):
        training.choose_cores(10_000)


@pytest.mark.parametrize("model", image_problem.MODELS)
def test_the_peer_has_as_many_parameters(model):
    pytest.importorskip("torch", reason="PyTorch is in the extra 'bench'")
    from benchmarks import training_jax, training_torch

    ours, peer = training_jax.prepare(model)[1], training_torch.prepare(model, threads=1)[1]
    assert ours == peer


def test_every_model_has_a_target():
    assert set(training.TARGETS) == set(image_problem.MODELS)
