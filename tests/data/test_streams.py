import numpy as np
import pytest

import errors
from data import streams


def test_the_numbers_are_pinned():
    # A data set is defined by these: whatever changes them changes every published result.
    stream = streams.Stream(0, "test", 1)
    assert stream.integers(1000, 6).tolist() == [807, 151, 706, 46, 51, 482]
    assert stream.permutation(7).tolist() == [3, 1, 6, 4, 5, 2, 0]
    assert stream.octets(5).tolist() == [142, 205, 241, 143, 38]


@pytest.mark.parametrize(
    "other", [(1, "a", 2, 3), (0, "b", 2, 3), (0, "a", 3, 3), (0, "a", 2), (0, "a", 23), (2**70, "a")]
)
def test_streams_differ_in_seed_purpose_and_counters(other):
    words = streams.Stream(0, "a", 2, 3).words(4)
    assert np.array_equal(words, streams.Stream(0, "a", 2, 3).words(4))
    assert not np.array_equal(words, streams.Stream(*other).words(4))


def test_numpy_integers_are_the_same_seed():
    a = streams.Stream(np.int64(5), "a", np.int32(1)).words(2)
    assert np.array_equal(a, streams.Stream(5, "a", 1).words(2))


def test_integers_are_uniform_within_their_own_ranges():
    high = np.array([1, 2, 7])
    drawn = streams.Stream(3, "a").integers(high, (30_000, 3))
    assert drawn.dtype == np.int64
    for column, top in enumerate(high):
        share = np.bincount(drawn[:, column], minlength=top) / 30_000
        assert len(share) == top
        np.testing.assert_allclose(share, 1 / top, atol=0.015)


def test_permutation_is_uniform():
    orders = [tuple(streams.Stream(seed, "a").permutation(3).tolist()) for seed in range(3000)]
    shares = [orders.count(order) / 3000 for order in set(orders)]
    assert len(shares) == 6
    np.testing.assert_allclose(shares, 1 / 6, atol=0.03)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_no_other_seed_than_a_whole_number(seed, one_line):
    with pytest.raises(errors.UserError) as raised:
        streams.Stream(seed, "a")
    one_line(raised, "seed", repr(seed))
