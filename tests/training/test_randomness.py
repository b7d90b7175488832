"""Keys by seed and purpose."""

import itertools

import jax
import numpy as np

from training import randomness

PURPOSES = ("init", "dropout", "sampling")


def data(seed, purpose):
    return tuple(np.asarray(jax.random.key_data(randomness.key(seed, purpose))).tolist())


def test_every_seed_and_purpose_has_a_key_of_its_own():
    keys = [data(seed, purpose) for seed, purpose in itertools.product((0, 1, 2), PURPOSES)]
    assert len(set(keys)) == 9


def test_keys_stay_what_they_are_whatever_else_is_drawn():
    """They are part of what a seed means: a change here changes every run there has been."""
    assert data(0, "init") == (3020537540, 2946840664)
    assert data(0, "dropout") == (116798348, 4143519482)
    for purpose in ("a new one", "another"):
        jax.random.normal(randomness.key(0, purpose))
    assert data(0, "init") == (3020537540, 2946840664)
