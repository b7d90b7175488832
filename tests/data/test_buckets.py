import itertools

import numpy as np
import pytest

import errors
from data import buckets
from data.buckets import Bucket


def sizes(*lengths, edges=0):
    return np.array([[length, edges] for length in lengths])


def test_one_bucket_for_one_length():
    assert buckets.choose(sizes(8, 8, 7), batch_vectors=100) == (Bucket((8, 0), 8),)
    assert buckets.choose(sizes(0, 0), batch_vectors=40) == (Bucket((8, 0), 5),)


def test_the_least_padding_of_all_choices():
    random = np.random.default_rng(0)
    lengths = random.geometric(0.05, 200)
    rounded = np.maximum(-(-lengths // 8) * 8, 8)
    rounded = np.where(lengths > 128, -(-lengths // 16) * 16, rounded)
    chosen = buckets.choose(sizes(*lengths), batch_vectors=1000, count=3)

    def padded(ends):
        return sum(min(end for end in ends if end >= length) for length in rounded)

    kinds = sorted(set(rounded.tolist()))
    best = min(padded([*inner, kinds[-1]]) for inner in itertools.combinations(kinds[:-1], 2))
    assert padded([bucket.size[0] for bucket in chosen]) == best
    assert len(chosen) == 3


def test_batches_hold_as_many_vectors_as_asked_for():
    chosen = buckets.choose(sizes(10, 20, 30, 100, 1000), batch_vectors=256, count=5)
    assert [(b.size[0], b.batch_size) for b in chosen] == [(16, 16), (24, 8), (32, 8), (104, 2), (1024, 1)]
    assert buckets.choose(sizes(1), batch_vectors=10**6, most=64)[0].batch_size == 64


def test_no_example_is_padded_beyond_the_longest_that_is_allowed():
    chosen = buckets.choose(sizes(5, 30, 29), batch_vectors=60, count=2, longest=30)
    assert chosen == (Bucket((8, 0), 7), Bucket((30, 0), 2))


def test_a_bucket_has_room_for_the_edges_of_its_examples():
    given = np.array([[5, 30], [6, 10], [50, 7]])
    chosen = buckets.choose(given, batch_vectors=100, count=2)
    assert [b.size for b in chosen] == [(8, 32), (56, 32)]
    assert buckets.assign(given, chosen).tolist() == [0, 0, 1]


def test_what_is_too_large_and_what_is_not_allowed():
    with pytest.raises(ValueError, match=r"example 1 of size \(9, 0\) is larger than every bucket"):
        buckets.assign(sizes(3, 9), (Bucket((8, 0), 1),))
    for arguments in ({"batch_vectors": 0}, {"batch_vectors": 8, "count": 0}):
        with pytest.raises(errors.UserError, match="must be at least 1"):
            buckets.choose(sizes(3), **arguments)


def test_pairs_are_parted_by_their_longer_side():
    sizes = np.array([[4, 4], [3, 9], [11, 2], [20, 17]])
    found = buckets.choose(sizes, batch_vectors=40, count=3, by_both=True)
    assert [bucket.size for bucket in found] == [(4, 4), (12, 12), (20, 20)]
    assert [bucket.batch_size for bucket in found] == [8, 3, 2]
    assert buckets.assign(sizes, found).tolist() == [0, 1, 1, 2]
    by_vectors = buckets.choose(sizes, batch_vectors=40, count=3)
    assert [bucket.size for bucket in by_vectors] == [(8, 16), (16, 16), (24, 24)]
