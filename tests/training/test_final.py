"""Which parameters a run ends with."""

import jax.numpy as jnp
import pytest

from errors import UserError
from tests.training.toy import Line
from training import final
from training.checkpoints import Best, Checkpoints
from training.optimizer import Optimizer
from training.state import create


def state(step, kernel=0.0, mean=0.0):
    _, made = create(Line(normalise=True), Optimizer("sgd", 0.9, 0.0, 0.0, 0.0))
    made.params["kernel"][...] = jnp.array([kernel])
    made.statistics["norm"]["mean"][...] = jnp.array([mean])
    return type(made)(jnp.int32(step), made.params, made.statistics, made.optimizer)


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


def test_what_cannot_be_chosen_is_one_line():
    with pytest.raises(UserError, match=r"^config\.final is 'bets'; it must be 'best', 'last' or 'average'$"):
        final.check("bets", checkpoints=True)
    with pytest.raises(UserError, match=r"^config\.final is 'average', .* set config\.checkpoint_every$"):
        final.check("average", checkpoints=False)
    final.check("average", checkpoints=True)
