"""Heads: pools and losses by hand, empty sets, a CRF that is the same in a head as by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.heads import PooledHead, PositionHead
from models.layers import crf
from models.layers.pooling import POOLS
from tests.models.parameters import arrays, filled, normal

B, T, D, K = 3, 4, 2, 3
LENGTHS = (4, 2, 0)
MASK = jnp.arange(T)[None] < jnp.asarray(LENGTHS)[:, None]
X = jnp.array([[[1, -1], [2, -2], [3, 5], [6, -10]], [[7, 1], [9, 2], [9e9, -9e9], [jnp.nan, jnp.nan]],
               [[jnp.nan, 1], [1, jnp.inf], [1, 1], [1, 1]]], jnp.float32)  # fmt: skip


@pytest.mark.parametrize(
    "pool, expected",
    [
        ("last", [[6, -10], [9, 2], [0, 0]]),
        ("first", [[1, -1], [7, 1], [0, 0]]),
        ("class", [[1, -1], [7, 1], [0, 0]]),
        ("mean", [[3, -2], [8, 1.5], [0, 0]]),
        ("max", [[6, 5], [9, 2], [0, 0]]),
        ("sum", [[12, -8], [16, 3], [0, 0]]),
    ],
)
def test_pools_by_hand(pool, expected):
    head = filled(PooledHead, D, K, pool=pool)
    p = arrays(head)["output"]
    output = head(X, MASK)
    np.testing.assert_allclose(output.logits, np.asarray(expected) @ p["kernel"] + p["bias"], rtol=1e-5)
    np.testing.assert_array_equal(output.penalty, [0, 0, 0])


def test_self_attentive_pooling_reads_in_hops_and_keeps_them_apart():
    head = filled(PooledHead, D, K, pool="self_attentive", hops=2, attention_dim=5, penalty_weight=0.5)
    assert head.pool.dim == 2 * D
    p, x = arrays(head), np.asarray(X[1, :2], np.float64)
    scores = np.tanh(x @ p["pool"]["hidden_kernel"]) @ p["pool"]["hop_kernel"]  # [S R]
    weights = (np.exp(scores) / np.exp(scores).sum(0)).T
    logits = (weights @ x).reshape(-1) @ p["output"]["kernel"] + p["output"]["bias"]
    output = head(X, MASK)
    np.testing.assert_allclose(output.logits[1], logits, rtol=1e-5)
    np.testing.assert_allclose(output.logits[2], p["output"]["bias"], rtol=1e-6)
    penalty = 0.5 * np.square(weights @ weights.T - np.eye(2)).sum()
    np.testing.assert_allclose(output.penalty[1], penalty, rtol=1e-5)


def test_every_pool_is_tried_above():
    assert set(POOLS) == {"last", "first", "class", "mean", "max", "sum", "self_attentive"}


def test_logits_of_every_vector():
    head = filled(PositionHead, D, K)
    p, output = arrays(head)["output"], head(X, MASK)
    expected = np.asarray(X[1, :2]) @ p["kernel"] + p["bias"]
    np.testing.assert_allclose(output.logits[1], [*expected, [0] * K, [0] * K], rtol=1e-5)
    np.testing.assert_array_equal(output.penalty, [0, 0, 0])


TAGS = jnp.array([[0, 2, -1, 1], [1, -1, -1, -1], [-1, -1, -1, -1]], jnp.int32)


def test_the_loss_is_over_labelled_vectors():
    head = filled(PositionHead, D, K)
    logits = normal(B, T, K)
    log_p = jax.nn.log_softmax(logits)
    expected = [-(log_p[0, 0, 0] + log_p[0, 1, 2] + log_p[0, 3, 1]), -log_p[1, 0, 1], 0]
    found = head.loss(logits, TAGS, MASK)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    at_padding = TAGS.at[1, 3].set(2)  # a label there is none
    np.testing.assert_array_equal(head.loss(logits, at_padding, MASK), found)


def test_smoothing_spreads_the_target():
    head, logits = filled(PositionHead, D, K), normal(B, T, K)
    log_p = jax.nn.log_softmax(logits)
    found = head.loss(logits, TAGS, MASK, label_smoothing=0.3)
    np.testing.assert_allclose(found[1], -log_p[1, 0] @ jnp.array([0.1, 0.8, 0.1]), rtol=1e-5)
    with pytest.raises(ValueError, match=r"label_smoothing is 0.3; a CRF has none, it must be 0"):
        filled(PositionHead, D, K, crf=True).loss(logits, TAGS, MASK, label_smoothing=0.3)


def test_without_a_crf_each_vector_has_its_likeliest_tag():
    logits = jnp.zeros((1, 3, K)).at[0, jnp.arange(3), jnp.array([2, 0, 1])].set(1.0)
    found = filled(PositionHead, D, K).decode(logits, jnp.array([[True, True, False]]))
    np.testing.assert_array_equal(found, [[2, 0, -1]])


def test_with_a_crf_they_are_chosen_together():
    head, logits = filled(PositionHead, D, K, crf=True), normal(B, T, K)
    transitions = crf.Transitions(head.transitions[...], head.first[...], head.last[...])
    np.testing.assert_array_equal(head.loss(logits, TAGS, MASK), crf.loss(logits, TAGS, MASK, transitions))
    # After tag 0 nothing but 1, after 1 nothing but 0.
    head.transitions[...] = jnp.full((K, K), -50.0).at[0, 1].set(0.0).at[1, 0].set(0.0)
    found = head.decode(jnp.zeros((B, T, K)).at[:, 0, 1].set(1.0), MASK)
    np.testing.assert_array_equal(found, [[1, 0, 1, 0], [1, 0, -1, -1], [-1] * 4])


@pytest.mark.parametrize("kind", [PositionHead, PooledHead])
def test_dropout_needs_rngs(kind):
    head, x = filled(kind, D, K, dropout_rate=0.5), normal(B, T, D)
    plain = filled(kind, D, K)(x, MASK).logits
    np.testing.assert_array_equal(head(x, MASK, train=True).logits, plain)
    assert (head(x, MASK, rngs=nnx.Rngs(dropout=0)).logits != plain).any()


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"pool": "median"}, "pool is 'median'; it must be one of"),
        ({"penalty_weight": -1.0}, "penalty_weight is -1.0; it must be at least 0"),
        ({"hops": 2}, "of pool 'self_attentive', not of 'mean'"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        PooledHead(D, K, **fields, rngs=nnx.Rngs(0))
