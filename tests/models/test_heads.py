"""Heads: pools and losses by hand, empty sets, a CRF that is the same in a head as by itself."""

import jax
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.heads import PooledHead, PositionHead
from models.layers import crf
from models.layers.pooling import POOLS
from models.set_model import POOLED_HEAD
from tests.models.parameters import arrays, filled, normal, program, real, run, shaped

B, T, D, K = 3, 4, 2, 3
LENGTHS = (4, 2, 0)
MASK = real(*LENGTHS, of=T)
X = np.array([[[1, -1], [2, -2], [3, 5], [6, -10]], [[7, 1], [9, 2], [9e9, -9e9], [np.nan, np.nan]],
               [[np.nan, 1], [1, np.inf], [1, 1], [1, 1]]], np.float32)  # fmt: skip


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
    head = filled(PooledHead, pool=pool, dim=D, num_outputs=K)
    p = arrays(head)["output"]
    output = run(head, X, MASK)
    np.testing.assert_allclose(output.logits, np.asarray(expected) @ p["kernel"] + p["bias"], rtol=1e-5)
    np.testing.assert_array_equal(output.penalty, [0, 0, 0])


def test_self_attentive_pooling_reads_in_hops_and_keeps_them_apart():
    pool = {"kind": "self_attentive", "hops": 2, "attention_dim": 5, "penalty_weight": 0.5}
    head = filled(PooledHead, pool=pool, dim=D, num_outputs=K)
    assert head.pool.dim == 2 * D
    p, x = arrays(head), np.asarray(X[1, :2], np.float64)
    scores = np.tanh(x @ p["pool"]["hidden_kernel"]) @ p["pool"]["hop_kernel"]  # [S R]
    weights = (np.exp(scores) / np.exp(scores).sum(0)).T
    logits = (weights @ x).reshape(-1) @ p["output"]["kernel"] + p["output"]["bias"]
    output = run(head, X, MASK)
    np.testing.assert_allclose(output.logits[1], logits, rtol=1e-5)
    np.testing.assert_allclose(output.logits[2], p["output"]["bias"], rtol=1e-6)
    penalty = 0.5 * np.square(weights @ weights.T - np.eye(2)).sum()
    np.testing.assert_allclose(output.penalty[1], penalty, rtol=1e-5)


def test_every_pool_is_tried_above():
    assert set(POOLS) == {"last", "first", "class", "mean", "max", "sum", "self_attentive"}


TAGS = np.array([[0, 2, -1, 1], [1, -1, -1, -1], [-1, -1, -1, -1]], np.int32)
AT_PADDING = np.array([[0, 2, -1, 1], [1, -1, -1, 2], [-1, -1, 0, -1]], np.int32)  # labels there are none


@jax.jit
def tagged(head, x, logits, tags):
    """Of vectors the logits and penalty; of logits the losses, plain and smoothed, and the likeliest tags."""
    losses = (
        head.loss(logits, tags, MASK),
        None if head.crf else head.loss(logits, tags, MASK, label_smoothing=0.3),
    )
    return *head(x, MASK), losses, head.decode(logits, MASK)


def test_every_vector_has_logits_a_loss_where_labelled_and_its_likeliest_tag():
    head, logits = filled(PositionHead, dim=D, num_outputs=K), np.asarray(normal(B, T, K))
    p = arrays(head)["output"]
    made, penalty, (losses, smoothed), tags = tagged(head, X, logits, TAGS)
    expected = X[1, :2].astype(float) @ p["kernel"] + p["bias"]
    np.testing.assert_allclose(made[1], [*expected, [0] * K, [0] * K], rtol=1e-5)
    np.testing.assert_array_equal(penalty, [0, 0, 0])
    log_p = np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    expected = [-(log_p[0, 0, 0] + log_p[0, 1, 2] + log_p[0, 3, 1]), -log_p[1, 0, 1], 0]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(smoothed[1], -log_p[1, 0] @ np.array([0.1, 0.8, 0.1]), rtol=1e-5)
    np.testing.assert_array_equal(tagged(head, X, logits, AT_PADDING)[2][0], losses)
    np.testing.assert_array_equal(tags, np.where(MASK, logits.argmax(-1), -1))


def test_with_a_crf_they_are_chosen_together():
    head, logits = filled(PositionHead, crf=True, dim=D, num_outputs=K), normal(B, T, K)
    transitions = crf.Transitions(head.transitions[...], head.first[...], head.last[...])
    _, _, (losses, _), _ = tagged(head, X, logits, TAGS)
    np.testing.assert_allclose(losses, jax.jit(crf.loss)(logits, TAGS, MASK, transitions), rtol=1e-5)
    # After tag 0 nothing but 1, after 1 nothing but 0.
    head.transitions[...] = np.array([[-50, 0, -50], [0, -50, -50], [-50, -50, -50]], np.float32)
    wanted = np.zeros((B, T, K), np.float32)
    wanted[:, 0, 1] = 1
    found = tagged(head, X, wanted, TAGS)[3]
    np.testing.assert_array_equal(found, [[1, 0, 1, 0], [1, 0, -1, -1], [-1] * 4])
    with pytest.raises(ValueError, match=r"label_smoothing is 0.3; a CRF has none, it must be 0"):
        head.loss(logits, TAGS, MASK, label_smoothing=0.3)


@pytest.mark.parametrize("kind", [PositionHead, PooledHead])
def test_dropout_needs_rngs(kind):
    dropping, sure = (shaped(kind, dropout_rate=rate, dim=D, num_outputs=K) for rate in (0.5, 0.0))
    assert program(dropping, X, MASK) == program(sure, X, MASK)
    assert "random_bits" in program(dropping, X, MASK, seed=0)


@pytest.mark.parametrize(
    "block, message",
    [
        ({"pool": "median"}, "unknown pool in config.model.head.pool 'median'"),
        (
            {"pool": {"kind": "self_attentive", "penalty_weight": -1.0}},
            "config.model.head.pool.penalty_weight is -1.0; it must be a number, at least 0",
        ),
        (
            {"pool": {"kind": "mean", "hops": 2}},
            "config.model.head.pool with kind 'mean' has no field 'hops', which is of self_attentive; it h",
        ),
        ({"pol": "max"}, "unknown field of config.model.head 'pol'. Did you mean 'pool'? Allowed: dropout_r"),
        ({"crf": True}, "unknown field of config.model.head 'crf'"),
    ],
)
def test_what_makes_no_sense_is_refused(block, message):
    with pytest.raises(UserError) as error:
        POOLED_HEAD.build(block, "config.model.head", dim=D, num_outputs=K, rngs=nnx.Rngs(0))
    assert str(error.value).startswith(message)
