"""The linear-chain CRF against the sum and the maximum over all sequences of tags, written out."""

import itertools

import jax
import numpy as np
import pytest

from models.layers import crf
from tests.models.parameters import normal, real

B, T, K = 4, 4, 3
LENGTHS = (4, 3, 1, 0)
MASK = real(*LENGTHS, of=T)
LOGITS = np.where(MASK[..., None], 2 * np.asarray(normal(B, T, K)), np.float32(5))
TRANSITIONS = crf.Transitions(normal(K, K, seed=2), normal(K, seed=3), normal(K, seed=4))


def score(logits, tags):
    """The exponent of one sequence."""
    if not tags:
        return 0.0
    between, first, last = (np.asarray(part, np.float64) for part in TRANSITIONS)
    own = sum(float(row[tag]) for row, tag in zip(logits, tags, strict=True))
    return own + first[tags[0]] + last[tags[-1]] + sum(between[i, j] for i, j in itertools.pairwise(tags))


def sequences(row):
    """All sequences of tags of a row with their exponents."""
    logits = np.asarray(LOGITS[row, : LENGTHS[row]], np.float64)
    return {tags: score(logits, tags) for tags in itertools.product(range(K), repeat=LENGTHS[row])}


def log_sum(scores):
    return np.log(np.sum(np.exp(list(scores))))


@jax.jit
def found(logits, tags, mask):
    """The sum, the loss with its gradient, and the likeliest tags."""
    total = crf.log_partition(logits, mask, TRANSITIONS)
    slope = jax.grad(lambda logits: crf.loss(logits, tags, mask, TRANSITIONS).sum())(logits)
    return total, crf.loss(logits, tags, mask, TRANSITIONS), slope, crf.viterbi(logits, mask, TRANSITIONS)


@pytest.mark.parametrize("unlabelled", [(), ((0, 1), (1, 2), (2, 0))])
def test_it_is_the_sum_and_the_maximum_over_all_sequences(unlabelled):
    tags = np.array([[2, 0, 1, 1], [1, 1, 0, 2], [2, 1, 1, 1], [0, 0, 0, 0]], np.int32)
    for place in unlabelled:
        tags[place] = -1
    totals, losses, slopes, best = found(LOGITS, tags, MASK)
    for row, length in enumerate(LENGTHS):
        every = sequences(row)
        fits = [
            v
            for k, v in every.items()
            if all(t in (-1, x) for t, x in zip(tags[row, :length], k, strict=True))
        ]
        total = log_sum(every.values())
        np.testing.assert_allclose(totals[row], total, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(losses[row], total - log_sum(fits), rtol=1e-4, atol=1e-5)
        assert tuple(best[row, :length].tolist()) == max(every, key=every.__getitem__)
    # It is not what each vector would choose by itself.
    assert (best != LOGITS.argmax(-1))[MASK].any()

    # The gradient: the marginals, less the tags where there are some.
    np.testing.assert_array_equal(slopes[~MASK], 0)
    every = sequences(2)
    marginals = np.exp([every[k,] - log_sum(every.values()) for k in range(K)])
    expected = marginals - (marginals if unlabelled else np.eye(K)[2])
    np.testing.assert_allclose(slopes[2, 0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slopes.sum(-1), 0, atol=1e-5)


def test_padding_anywhere_is_not_part_of_the_sequence():
    places, others = [0, 2], [1, 3]
    order = np.array(places + others)
    spread = np.full((B, T, K), 9, np.float32)
    spread[:, places] = LOGITS[:, :2]
    mask = np.zeros((B, T), bool)
    mask[:, places] = True
    tags = np.array(B * [[1, 0, 2, 0]], np.int32)
    total, loss, slope, best = found(spread, tags, mask)
    expected = found(spread[:, order], tags[:, order], mask[:, order])
    np.testing.assert_allclose(total, expected[0], rtol=1e-5)
    np.testing.assert_allclose(loss, expected[1], rtol=1e-5)
    np.testing.assert_allclose(slope[:, order], expected[2], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(best[:, places], expected[3][:, :2])
