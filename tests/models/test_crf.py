"""The linear-chain CRF against the sum and the maximum over all sequences of tags, written out."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.layers import crf
from tests.models.parameters import normal

B, T, K = 4, 4, 3
LENGTHS = (4, 3, 1, 0)
MASK = jnp.arange(T)[None] < jnp.asarray(LENGTHS)[:, None]
LOGITS = jnp.where(MASK[..., None], 2 * normal(B, T, K), 5.0)
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


def test_the_sum_over_all_sequences():
    expected = [log_sum(sequences(row).values()) for row in range(B)]
    np.testing.assert_allclose(crf.log_partition(LOGITS, MASK, TRANSITIONS), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tags", [[[2, 0, 1, 1], [1, 1, 0, 2], [2, 1, 1, 1], [0, 0, 0, 0]]])
@pytest.mark.parametrize("unlabelled", [(), ((0, 1), (1, 2), (2, 0))])
def test_the_loss_is_a_log_probability(tags, unlabelled):
    tags = np.asarray(tags, np.int32)
    for place in unlabelled:
        tags[place] = -1
    expected = []
    for row, length in enumerate(LENGTHS):
        every = sequences(row)
        fits = [
            v
            for k, v in every.items()
            if all(t in (-1, x) for t, x in zip(tags[row, :length], k, strict=True))
        ]
        expected.append(log_sum(every.values()) - log_sum(fits))
    found = jax.jit(crf.loss)(LOGITS, jnp.asarray(tags), MASK, TRANSITIONS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_viterbi_finds_the_likeliest_of_all():
    found = crf.viterbi(LOGITS, MASK, TRANSITIONS)
    for row, length in enumerate(LENGTHS):
        every = sequences(row)
        assert tuple(found[row, :length].tolist()) == max(every, key=every.__getitem__)
    # It is not what each vector would choose by itself.
    assert (found != LOGITS.argmax(-1))[MASK].any()


def test_gradients_are_the_marginals_less_the_tags():
    tags = jnp.zeros((B, T), jnp.int32).at[1, 1].set(-1)
    found = jax.jit(jax.grad(lambda x: crf.loss(x, tags, MASK, TRANSITIONS).sum()))(LOGITS)
    assert (found[~MASK] == 0).all()
    every = sequences(2)
    marginals = np.exp([every[k,] - log_sum(every.values()) for k in range(K)])
    np.testing.assert_allclose(found[2, 0], marginals - np.eye(K)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 0, atol=1e-5)


def test_padding_anywhere_is_not_part_of_the_sequence():
    here = jnp.array([[True, False, True, False]])
    spread = jnp.full((1, T, K), 9.0).at[0, jnp.array([0, 2])].set(LOGITS[0, :2])
    dense, mask = spread[:, jnp.array([0, 2, 1, 3])], jnp.array([[True, True, False, False]])
    tags = jnp.array([[1, 0, 2, 0]])
    loss, viterbi = jax.jit(crf.loss), jax.jit(crf.viterbi)
    np.testing.assert_allclose(
        loss(spread, tags, here, TRANSITIONS),
        loss(dense, tags[:, jnp.array([0, 2, 1, 3])], mask, TRANSITIONS),
        rtol=1e-5,
    )
    np.testing.assert_array_equal(
        viterbi(spread, here, TRANSITIONS)[0, jnp.array([0, 2])],
        viterbi(dense, mask, TRANSITIONS)[0, :2],
    )
