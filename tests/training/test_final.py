"""Which parameters a run ends with."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest

from tests.training import toy
from training import final
from training.checkpoints import Best, Checkpoints
from training.optimizer import SGD

BLANK = functools.cache(lambda: toy.made(SGD(), normalise=True)[1])


def state(step, kernel=0.0, mean=0.0):
    blank = jax.tree.map(jnp.copy, BLANK())
    blank.params["kernel"][...] = jnp.array([kernel])
    blank.statistics["norm"]["mean"][...] = jnp.array([mean])
    return dataclasses.replace(blank, step=jnp.int32(step))


@pytest.fixture
def saved(tmp_path):
    """Four checkpoints of which the newest three are kept."""
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step, kernel, mean in ((1, 100.0, 100.0), (2, 1.0, 4.0), (3, 3.0, 2.0), (5, 8.0, 0.0)):
        checkpoints.save(state(step, kernel, mean), {}, None)
    return tmp_path


def chosen(how, directory):
    said, best = [], Best(2, 0.5, state(2, kernel=7.0))
    found = final.choose(how, state(5, kernel=8.0), best, Checkpoints(directory, keep=3), said.append)
    arrays = found.params["kernel"][...], found.statistics["norm"]["mean"][...]
    return int(found.step), *(float(array[0]) for array in arrays), said


def test_best_and_last(saved):
    assert chosen("best", saved) == (2, 7.0, 0.0, [])
    assert chosen("last", saved) == (5, 8.0, 0.0, [])
    last = state(9)
    assert final.choose("best", last, None, None) is last


def test_average_is_the_mean_of_the_parameters_and_statistics_kept(saved):
    assert chosen("average", saved) == (5, 4.0, 2.0, [])


def test_a_damaged_checkpoint_is_left_out(saved):
    (saved / "latest" / "5" / "SHA256.json").unlink()
    step, kernel, mean, said = chosen("average", saved)
    assert (step, kernel, mean) == (3, 2.0, 3.0)
    assert said == ["checkpoint latest/5 is damaged (it was never finished); trying the one before"]
