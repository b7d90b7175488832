"""Checkpoints: which are kept, and what is noticed."""

import dataclasses
import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errors import RunError
from tests.training import toy
from training.checkpoints import SEAL, Best, Checkpoints, damage
from training.optimizer import AdamW

BLANK = functools.cache(lambda: toy.made(AdamW(), normalise=True)[1])


def state(step):
    """A state with every number set by its step."""
    blank = jax.tree.map(jnp.copy, BLANK())
    blank.params["kernel"][...] = jnp.array([10.0 * step])
    return dataclasses.replace(blank, step=jnp.int32(step))


def steps(directory):
    return sorted(int(folder.name) for folder in directory.iterdir())


def save(checkpoints, step, best):
    best = Best(best, best / 100, state(best))
    checkpoints.save(state(step), {"iterator": {"next": step}, "fingerprint": "abc"}, best)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Steps 1 to 5, of which two are kept; the best was 1, then 3."""
    directory = tmp_path_factory.mktemp("run") / "checkpoints"
    checkpoints = Checkpoints(directory, keep=2)
    for step, best in ((1, 1), (2, 1), (3, 3), (4, 3), (5, 3)):
        save(checkpoints, step, best)
    return directory


@pytest.fixture
def directory(saved, tmp_path):
    """A copy to damage."""
    return shutil.copytree(saved, tmp_path / "checkpoints")


def restore(directory):
    said = []
    restored = Checkpoints(directory, keep=2).restore(state(0), said.append)
    return restored, said


def test_the_newest_two_and_the_best_are_kept_by_separate_rules(saved):
    assert steps(saved / "latest") == [4, 5]
    assert steps(saved / "best") == [3]


def test_restore_gives_the_newest_its_data_and_the_best(saved):
    (newest, data, best), said = restore(saved)
    assert said == []
    assert int(newest.step) == 5
    np.testing.assert_array_equal(newest.params["kernel"][...], [50.0])
    assert data == {"iterator": {"next": 5}, "fingerprint": "abc"}
    assert (best.step, best.value, int(best.state.step)) == (3, 0.03, 3)
    np.testing.assert_array_equal(best.state.params["kernel"][...], [30.0])


def test_nothing_saved_is_none(tmp_path):
    assert restore(tmp_path / "checkpoints") == (None, [])


def test_a_run_without_an_evaluation_yet_has_no_best(tmp_path):
    Checkpoints(tmp_path, keep=2).save(state(1), {"iterator": 1}, None)
    (newest, _, best), _ = restore(tmp_path)
    assert int(newest.step) == 1
    assert best is None


def test_a_sound_step_has_no_damage(saved):
    assert damage(saved / "latest" / "5") is None
    assert damage(saved / "best" / "3") is None


def a_file(step):
    return sorted(path for path in step.rglob("*") if path.is_file() and path.name != SEAL)[0]


def unsealed(step):
    (step / SEAL).unlink()
    return "it was never finished"


def torn_seal(step):
    (step / SEAL).write_text((step / SEAL).read_text()[:-3])
    return f"its {SEAL} is unreadable"


def missing_file(step):
    path = a_file(step)
    path.unlink()
    return f"{path.relative_to(step)} is missing"


def extra_file(step):
    (step / "note.txt").write_text("hello")
    return "note.txt does not belong to it"


def changed_byte(step):
    path = a_file(step)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return f"{path.relative_to(step)} has changed since it was written"


def cut_short(step):
    path = a_file(step)
    path.write_bytes(path.read_bytes()[:-1])
    return f"{path.relative_to(step)} has changed since it was written"


@pytest.mark.parametrize(
    "harm", [unsealed, torn_seal, missing_file, extra_file, changed_byte, cut_short], ids=lambda f: f.__name__
)
def test_damage_is_named_and_the_one_before_is_used(directory, harm):
    wrong = harm(directory / "latest" / "5")
    assert damage(directory / "latest" / "5") == wrong
    (newest, data, _), said = restore(directory)
    assert int(newest.step) == 4
    assert data["iterator"] == {"next": 4}
    assert said == [f"checkpoint latest/5 is damaged ({wrong}); trying the one before"]


def test_the_step_caught_up_with_replaces_the_damaged_one(directory):
    changed_byte(directory / "latest" / "5")
    checkpoints = Checkpoints(directory, keep=2)
    checkpoints.restore(state(0), lambda line: None)
    save(checkpoints, 5, 3)
    assert damage(directory / "latest" / "5") is None
    assert steps(directory / "latest") == [4, 5]


def test_when_all_are_damaged_it_is_an_error_and_not_a_new_start(directory):
    for step in (4, 5):
        changed_byte(directory / "latest" / str(step))
    with pytest.raises(RunError, match=r"every checkpoint in .*latest is damaged; remove it to start from"):
        restore(directory)


def test_a_damaged_best_is_not_used(directory):
    changed_byte(directory / "best" / "3")
    said = []
    _, _, best = Checkpoints(directory, keep=2).restore(state(0), said.append)
    assert best is None
    assert "the best is chosen among what follows" in said[-1]
