"""One compiled step, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training.toy import SquaredError, batch, made
from training import randomness
from training.optimizer import SGD
from training.state import accumulated, evaluation_step, train_step

PLAIN = SGD(momentum=0.0, weight_decay=0.0, clip_norm=None)
KEY = randomness.key(0, "dropout")


def stepped(optimizer=PLAIN, rates=(0.1,), **model):
    structure, state = made(optimizer, **model)
    update = train_step(SquaredError(), structure, optimizer)
    for rate in rates:
        state, metrics = update(state, batch(), jnp.float32(rate), KEY)
    return state, metrics


def by_hand(kernel, bias):
    """Loss and gradients; the example of weight 0 counts in nothing but `sum`."""
    x = np.array([1.0, 2.0, 3.0])
    off = kernel * x + bias - x**2
    return (off**2).mean(), (2 * off * x).mean(), (2 * off).mean()


def test_a_step_subtracts_rate_times_gradient_of_the_weighted_mean():
    loss, by_kernel, by_bias = by_hand(2.0, 1.0)
    state, metrics = stepped()
    np.testing.assert_allclose(state.params["kernel"][...], [2.0 - 0.1 * by_kernel], rtol=1e-5)
    np.testing.assert_allclose(state.params["bias"][...], [1.0 - 0.1 * by_bias], rtol=1e-5)
    assert int(state.step) == 1
    assert metrics.keys() == {"loss", "sum", "gradient_norm"}
    np.testing.assert_allclose(metrics["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(metrics["sum"], (1 + 4 + 9 + 16) / 3, rtol=1e-6)
    np.testing.assert_allclose(metrics["gradient_norm"], np.hypot(by_kernel, by_bias), rtol=1e-5)


def test_the_learning_rate_multiplies_decay_too_and_is_not_compiled_in():
    decaying = dataclasses.replace(PLAIN, weight_decay=0.3)
    _, by_kernel, by_bias = by_hand(2.0, 1.0)
    kernel, bias = 2.0 - 0.2 * (by_kernel + 0.3 * 2.0), 1.0 - 0.2 * by_bias
    _, by_kernel, by_bias = by_hand(kernel, bias)
    state, _ = stepped(optimizer=decaying, rates=(0.2, 0.01))
    np.testing.assert_allclose(
        state.params["kernel"][...], [kernel - 0.01 * (by_kernel + 0.3 * kernel)], rtol=1e-4
    )
    np.testing.assert_allclose(state.params["bias"][...], [bias - 0.01 * by_bias], rtol=1e-4)


def test_gradient_norm_is_reported_before_clipping():
    clipping = dataclasses.replace(PLAIN, clip_norm=1e-3)
    state, metrics = stepped(optimizer=clipping)
    assert metrics["gradient_norm"] > 1
    moved = np.hypot(state.params["kernel"][0] - 2.0, state.params["bias"][0] - 1.0)
    np.testing.assert_allclose(moved, 0.1 * 1e-3, rtol=1e-2)


def test_statistics_of_the_batch_are_carried_on():
    y = 2.0 * np.arange(1.0, 5.0) + 1.0
    state, _ = stepped(normalise=True)
    np.testing.assert_allclose(state.statistics["norm"]["mean"][...], [0.1 * y.mean()], rtol=1e-5)
    np.testing.assert_allclose(state.statistics["norm"]["var"][...], [0.9 + 0.1 * y.var()], rtol=1e-5)


def test_dropout_is_another_at_each_step_and_the_same_in_each_run():
    first = stepped(dropout_rate=0.5, rates=(0.0,))[1]["loss"]
    again = stepped(dropout_rate=0.5, rates=(0.0,))[1]["loss"]
    later = [stepped(dropout_rate=0.5, rates=(0.0,) * n)[1]["loss"] for n in (2, 3, 4)]
    assert first == again
    assert len({float(loss) for loss in (first, *later)}) > 1


def test_equal_task_structure_and_optimizer_share_one_compiled_step():
    structure, _ = made(PLAIN)
    same, _ = made(PLAIN)
    update = train_step(SquaredError(), structure, PLAIN)
    assert train_step(SquaredError(), same, dataclasses.replace(PLAIN, learning_rate=9.0)) is update
    assert train_step(SquaredError(scale=2.0), structure, PLAIN) is not update
    assert train_step(SquaredError(), structure, dataclasses.replace(PLAIN, momentum=0.5)) is not update
    assert train_step(SquaredError(), made(PLAIN, normalise=True)[0], PLAIN) is not update


def test_the_state_is_donated():
    structure, state = made(PLAIN)
    train_step(SquaredError(), structure, PLAIN)(state, batch(), jnp.float32(0.1), KEY)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(state.params["kernel"][...])


def test_evaluation_changes_nothing():
    structure, state = made(PLAIN, normalise=True)
    sums = evaluation_step(SquaredError(), structure)(state.params, state.statistics, batch())
    x = np.array([1.0, 2.0, 3.0])
    expected = (((2 * x + 1) / np.sqrt(1 + 1e-5) - x**2) ** 2).sum()
    np.testing.assert_allclose(sums["squares"], expected, rtol=1e-5)
    np.testing.assert_array_equal(state.statistics["norm"]["mean"][...], [0.0])
    assert len(jax.tree.leaves(state.statistics)) == 2


@pytest.mark.parametrize("slices", [2, 3, 9])
def test_slices_of_a_batch_make_the_update_of_the_whole(slices):
    """7 examples as 4 and 3, as 3, 3 and 1, and one by one."""
    found = []
    for accumulation in (1, slices):
        slicing = SGD(weight_decay=0.1, accumulation=accumulation)
        structure, state = made(slicing)
        update = train_step(SquaredError(), structure, slicing)
        for _ in range(2):
            state, metrics = update(state, batch(7), jnp.float32(0.1), KEY)
        found.append((state, metrics))
    for whole, sliced in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(sliced, whole, rtol=1e-6)


def test_each_slice_is_normalised_by_itself_and_has_dropout_of_its_own():
    """Examples 1 and 3, then 2 and 4, whose lines are 3 and 7, then 5 and 9."""
    slicing = dataclasses.replace(PLAIN, accumulation=2)
    state, _ = stepped(slicing, normalise=True)
    np.testing.assert_allclose(state.statistics["norm"]["mean"][...], [0.9 * 0.5 + 0.7], rtol=1e-5)
    np.testing.assert_allclose(state.statistics["norm"]["var"][...], [0.9 * (0.9 + 0.4) + 0.4], rtol=1e-5)
    keys = [jax.random.fold_in(KEY, number) for number in range(2)]
    _, total = accumulated(
        lambda statistics, batch, key: (statistics, jax.random.uniform(key)), (), batch(), KEY, slices=2
    )
    np.testing.assert_allclose(total, sum(jax.random.uniform(key) for key in keys), rtol=1e-6)
