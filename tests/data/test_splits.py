"""The policy of holding out, on lists of numbers: each rule by its arithmetic, and what it refuses."""

import itertools

import numpy as np
import pytest

import errors
from data import splits
from data.splits import Convention, Splits, divide

PLAIN = Convention[list](noun="number")
# Three numbers to a group, as three translations of a line; and two classes, of which the first is rarer.
GROUPS = Convention[list](noun="group", groups=lambda numbers: [number // 3 for number in numbers])
CLASSES = Convention[list](noun="number", classes=lambda numbers: np.array([n % 4 > 0 for n in numbers], int))


def parts(published, convention=PLAIN, **arguments):
    defaults = {"validation_fraction": 0.2, "fold": None, "folds": None, "split_seed": 0}
    return divide("x", published, convention, **(defaults | arguments))


def numbers(size):
    return {"train": list(range(size))}


def test_what_is_published_is_taken_as_it_is():
    published = {"train": [1, 2], "validation": [3], "test": [4]}
    assert parts(published) == Splits([1, 2], [3], [4])
    assert parts({"train": list(range(10)), "test": [99]}).test == [99]
    of_two = parts({"train": list(range(10)), "validation": [99]})
    assert (of_two.test, len(of_two.validation), len(of_two.train)) == ([99], 2, 8)


def test_the_test_is_a_fifth_and_the_same_for_every_seed():
    first, second = (parts(numbers(50), split_seed=seed) for seed in (0, 1))
    assert [len(split) for split in first] == [32, 8, 10]
    assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second)) == list(range(50))
    assert first.test == second.test
    assert first.validation != second.validation


def test_validation_is_balanced_over_classes():
    divided = parts(numbers(100) | {"test": [0]}, CLASSES)
    assert sum(number % 4 == 0 for number in divided.validation) == 5
    assert len(divided.validation) == 20


@pytest.mark.parametrize("changes", [{}, {"folds_in_turn": True}, {"folds_by_seed": True}])
@pytest.mark.parametrize("groups", [None, GROUPS.groups])
def test_every_fold_is_tested_once_and_groups_stay_together(groups, changes):
    convention = Convention[list](noun="number", groups=groups, **changes)
    every = [parts(numbers(33), convention, fold=fold, folds=4) for fold in range(4)]
    assert sorted(itertools.chain(*(divided.test for divided in every))) == list(range(33))
    for divided in every:
        assert sorted(itertools.chain(*divided)) == list(range(33))
        assert 6 <= len(divided.test) <= 9
        if groups:
            of_each = [{number // 3 for number in split} for split in divided]
            assert sum(map(len, of_each)) == len(set.union(*of_each)) == 11
    other = parts(numbers(33), convention, fold=0, folds=4, split_seed=1)
    assert (other.test != every[0].test) == bool(changes.get("folds_by_seed"))


def test_the_usual_fold():
    first = Convention[list](noun="number", folds=5, fold=0)
    last = Convention[list](noun="number", folds=5)
    assert parts(numbers(20), first) == parts(numbers(20), PLAIN, fold=0, folds=5)
    assert parts(numbers(20), last) == parts(numbers(20), PLAIN, fold=4, folds=5)
    assert parts(numbers(20), PLAIN, folds=5).test == parts(numbers(20), last).test
    assert parts(numbers(20), PLAIN, fold=9).test == parts(numbers(20), PLAIN, folds=10).test


def test_published_folds():
    fold_of = np.array([0, 1, -1, 1, 0, -1])
    divided = parts(numbers(6), fold=1, folds=2, fold_of=fold_of)
    assert divided.test == [1, 3]
    assert sorted(divided.train + divided.validation) == [0, 2, 4, 5]


def test_examples_keep_their_published_order_where_that_is_the_convention():
    published = numbers(40) | {"test": [0]}
    ordered = parts(published, Convention[list](noun="number", in_order=True))
    drawn = parts(published)
    assert ordered.train == sorted(drawn.train) != drawn.train
    assert ordered.validation == sorted(drawn.validation) != drawn.validation


def test_the_share_of_the_test_may_be_that_of_the_validation():
    divided = parts(numbers(30), Convention[list](noun="number", test_fraction=None), validation_fraction=0.3)
    assert [len(split) for split in divided] == [15, 6, 9]


def test_training_sets_are_nested():
    small, large = (parts(numbers(50) | {"test": [0]}, train_size=size) for size in (10, 20))
    assert [len(split) for split in small] == [8, 2, 1]
    assert large.train[:8] == small.train
    assert large.validation[:2] == small.validation
    assert parts(numbers(1) | {"test": [0]}, Convention[list](noun="number", least=1)).validation == [0]


@pytest.mark.parametrize(
    "published, arguments, told",
    [
        (numbers(9), {"validation_fraction": 1.0}, ["validation_fraction 1.0", "(0, 1)"]),
        (numbers(9), {"split_seed": -1}, ["split_seed -1"]),
        (numbers(9), {"fold": 3, "folds": 3}, ["fold 3 of 3", "from 0 to 2"]),
        (numbers(9), {"fold": -1}, ["fold -1 of 10"]),
        (numbers(9), {"fold": 0}, ["x: 9 number(s), no test", "10 are needed for 10 folds"]),
        (numbers(9), {"folds": 1}, ["2 folds at least"]),
        (numbers(9) | {"test": [1]}, {"fold": 0}, ["fold 0", "x has a test of its own"]),
        (numbers(9) | {"validation": [1]}, {"folds": 3}, ["folds 3", "x has a test of its own"]),
        ({"validation": [1], "test": [2]}, {}, ["x has no split called train, only validation, test"]),
        (numbers(9) | {"test": []}, {}, ["x: nothing to read for test"]),
        (numbers(1) | {"test": [1]}, {}, ["x: 1 number to train on", "2 are needed"]),
        (numbers(9) | {"test": [1]}, {"train_size": 10}, ["train_size 10", "9 number(s) of x"]),
    ],
)
def test_what_is_not_allowed(published, arguments, told, one_line):
    with pytest.raises(errors.UserError) as raised:
        parts(published, **arguments)
    one_line(raised, *told)


def test_about_a_fifth_of_files_is_for_the_test():
    tests = [splits.is_test(f"a/{number}.png") for number in range(1_000)]
    assert 0.17 < np.mean(tests) < 0.23
    assert [number for number in range(1_000) if tests[number]][:4] == [0, 8, 19, 20]
