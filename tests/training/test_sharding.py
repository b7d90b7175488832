"""Two devices compute what one does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errors import UserError
from tests.training.toy import SquaredError, batch, made
from training import randomness
from training.optimizer import SGD
from training.sharding import DataParallel
from training.state import evaluation_step, train_step

PLAIN = SGD(momentum=0.0, weight_decay=0.0, clip_norm=None)
KEY = randomness.key(0, "dropout")


def test_the_tests_have_two_devices():
    assert len(jax.devices()) == 2


@pytest.mark.parametrize("dropout_rate", [0.0, 0.5])
def test_loss_gradients_and_batch_statistics_are_those_of_the_whole_batch(dropout_rate):
    results = []
    for num_devices in (1, 2):
        devices = DataParallel(num_devices, [6, 12])
        structure, state = made(PLAIN, normalise=True, dropout_rate=dropout_rate)
        update = train_step(SquaredError(), structure, PLAIN)
        state, metrics = update(devices.replicate(state), devices.split(batch(6)), jnp.float32(1.0), KEY)
        assert len(state.step.sharding.device_set) == num_devices
        results.append(jax.device_get((metrics, state)))
    assert np.abs(results[0][0]["gradient_norm"]) > 1e-2
    for one, two in zip(*map(jax.tree.leaves, results), strict=True):
        # A bias before a normalisation has the gradient 0, which is rounding alone.
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def test_a_batch_is_cut_where_it_can_be_and_whole_where_not():
    devices = DataParallel(2, [6])
    assert {s.data.shape for s in devices.split(batch(6))["x"].addressable_shards} == {(3,)}
    assert {s.data.shape for s in devices.split(batch(5))["x"].addressable_shards} == {(5,)}
    structure, state = made(PLAIN)
    state = devices.replicate(state)
    sums = evaluation_step(SquaredError(), structure)(state.params, state.statistics, devices.split(batch(5)))
    np.testing.assert_allclose(sums["squares"], 2**2 + 1 + 2**2 + 7**2, rtol=1e-6)


@pytest.mark.parametrize("batch_size, used", [(6, 2), (5, 1), (1, 1), (2, 2)])
def test_none_uses_all_that_divide_the_batch(batch_size, used):
    assert DataParallel(None, [batch_size]).num_devices == used


@pytest.mark.parametrize(
    "num_devices, batch_size, said",
    [
        (3, 6, "config.num_devices is 3, but there are 2 cpu device(s); None uses what there is"),
        (2, 5, "a batch of 5 examples is not divisible by config.num_devices 2"),
        (0, 6, "config.num_devices is 0"),
    ],
)
def test_what_cannot_be_is_one_line(num_devices, batch_size, said):
    with pytest.raises(UserError) as caught:
        DataParallel(num_devices, [batch_size])
    assert str(caught.value).startswith(said)
