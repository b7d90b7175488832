import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import subsets

some_labels = st.lists(st.integers(0, 4), min_size=2, max_size=60).map(np.array)
fractions = st.floats(0.01, 0.6)


def test_classes_take_turns_until_they_run_out():
    labels = np.array([0, 0, 0, 2, 2, 1])
    order = subsets.balanced_order(labels, seed=0)
    assert labels[order].tolist() == [0, 1, 2, 0, 2, 0]
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4, 5]


@given(some_labels, st.integers(0, 3))
def test_every_prefix_is_balanced(labels, seed):
    order = subsets.balanced_order(labels, seed)
    assert sorted(order.tolist()) == list(range(len(labels)))
    total = np.bincount(labels, minlength=5)
    for size in range(len(labels) + 1):
        counts = np.bincount(labels[order[:size]], minlength=5)
        # A class with fewer than the fullest but one has none left.
        assert all(n == all_ for n, all_ in zip(counts, total, strict=True) if n < counts.max() - 1)


@settings(deadline=None)
@given(some_labels, fractions, st.integers(0, 3))
def test_train_and_validation_are_nested_disjoint_and_of_the_asked_size(labels, fraction, seed):
    sides = [set(), set()]
    for size in range(2, len(labels) + 1):
        train, validation = subsets.train_and_validation(labels, size, fraction, seed)
        assert len(train) + len(validation) == len(set(train) | set(validation)) == size
        assert len(validation) == subsets.held_out_size(size, fraction)
        for side, chosen in zip(sides, (train, validation), strict=True):
            assert side <= set(chosen)
            side |= set(chosen)
    assert sides[0] | sides[1] == set(range(len(labels)))


@pytest.mark.parametrize(
    "size, held_out", [(1, 0), (2, 1), (9, 1), (14, 1), (15, 2), (500, 50), (60_000, 6_000)]
)
def test_how_many_are_held_out(size, held_out):
    assert subsets.held_out_size(size, 0.1) == held_out


def test_both_sides_are_balanced():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))
    for size in (20, 500, 1000):
        train, validation = subsets.train_and_validation(labels, size, 0.1, seed=1)
        assert np.ptp(np.bincount(labels[train], minlength=10)) <= 1
        assert np.ptp(np.bincount(labels[validation], minlength=10)) <= 1
    assert np.bincount(labels[train]).tolist() == [90] * 10


def test_a_rare_class_is_not_used_up_by_validation():
    labels = np.array([0] * 95 + [1] * 5)
    train, validation = subsets.train_and_validation(labels, 100, 0.2, seed=0)
    assert np.bincount(labels[train]).tolist() == [76, 4]
    assert np.bincount(labels[validation]).tolist() == [19, 1]


def test_one_example_serves_as_both():
    labels = np.array([3, 1, 1])
    train, validation = subsets.train_and_validation(labels, 1, 0.1, seed=0)
    assert train.tolist() == validation.tolist()
    assert len(train) == 1
    train, validation = subsets.train_and_validation(np.array([3]), 1, 0.1, seed=0)
    assert train.tolist() == validation.tolist() == [0]


def test_the_seed_chooses():
    labels = np.arange(300) % 3
    first = set(subsets.balanced_order(labels, 0)[:30])
    assert first == set(subsets.balanced_order(labels, 0)[:30])
    assert first != set(subsets.balanced_order(labels, 1)[:30])
