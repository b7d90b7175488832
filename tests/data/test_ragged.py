import numpy as np
import pytest

from data.ragged import Ragged

WORDS = Ragged.of([[5, 6], [], [7, 8, 9]], np.int32)


def test_arrays_of_different_lengths():
    assert (WORDS.values.tolist(), WORDS.offsets.tolist()) == ([5, 6, 7, 8, 9], [0, 2, 2, 5])
    assert (len(WORDS), WORDS.lengths.tolist()) == (3, [2, 0, 3])
    assert [WORDS[i].tolist() for i in range(3)] == [[5, 6], [], [7, 8, 9]]
    with pytest.raises(IndexError):
        WORDS[3]


def test_padded_with_zeros_and_with_empty_rows():
    padded = WORDS.padded(np.array([2, -1, 0, 1]), 4)
    assert padded.tolist() == [[7, 8, 9, 0], [0, 0, 0, 0], [5, 6, 0, 0], [0, 0, 0, 0]]
    assert padded.dtype == np.int32
    existing = WORDS.existing(np.array([2, -1, 0]), 4)
    assert existing.tolist() == [[True, True, True, False], [False] * 4, [True, True, False, False]]
    with pytest.raises(ValueError, match="length 3 does not fit in 2"):
        WORDS.padded(np.array([2]), 2)


def test_taken_in_another_order():
    taken = WORDS.take(np.array([2, 0, 0, 1]))
    assert [taken[i].tolist() for i in range(4)] == [[7, 8, 9], [5, 6], [5, 6], []]
    assert len(WORDS.take(np.array([], np.int64))) == 0


def test_entries_may_be_vectors():
    frames = Ragged.of([np.ones((2, 3)), np.zeros((0, 3))], np.float32, (3,))
    assert frames.padded(np.array([1, 0]), 3).shape == (2, 3, 3)
    assert frames.padded(np.array([0]), 3)[0, :, 1].tolist() == [1, 1, 0]


def test_no_arrays_at_all():
    nothing = Ragged.of([], np.int32)
    assert (len(nothing), nothing.padded(np.array([], np.int64), 2).shape) == (0, (0, 2))
    assert Ragged.of([[]], np.int32).padded(np.array([0, -1]), 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("offsets", [[1, 5], [0, 3, 2, 5], [0, 4], []])
def test_offsets_that_do_not_fit(offsets):
    with pytest.raises(ValueError, match="offsets"):
        Ragged(WORDS.values, np.array(offsets, np.int64))
