import numpy as np
import pytest

from data import plans
from data.buckets import Bucket
from data.plans import BatchPlan, BucketPlan


def test_the_order_is_pinned():
    # Changing it would make a resumed run see other examples than it would have seen.
    plan = BatchPlan(5, 3, seed=0)
    assert [plan[step].indices.tolist() for step in range(4)] == [[1, 0, 2], [4, 3, 2], [1, 3, 0], [4, 0, 4]]


@pytest.mark.parametrize("size, batch_size", [(7, 3), (6, 3), (3, 8), (1, 1), (1, 4), (5, 5)])
def test_every_epoch_holds_every_example_once(size, batch_size):
    plan = BatchPlan(size, batch_size, seed=2)
    stream = np.concatenate([plan[step].indices for step in range(size * 6)])  # whole epochs
    assert all(plan[step].indices.shape == (batch_size,) for step in range(3))
    epochs = stream.reshape(-1, size)
    assert (np.sort(epochs, axis=1) == np.arange(size)).all()
    if size > 3:
        assert len({tuple(epoch) for epoch in epochs.tolist()}) > 1


def test_a_step_does_not_depend_on_the_steps_before():
    plan = BatchPlan(100, 7, seed=0)
    forwards = [plan[step].indices.tolist() for step in range(40)]
    assert [plan[step].indices.tolist() for step in reversed(range(40))] == forwards[::-1]
    assert BatchPlan(100, 7, seed=0)[39].indices.tolist() == forwards[39]
    assert BatchPlan(100, 7, seed=1)[39].indices.tolist() != forwards[39]
    assert BatchPlan(100, 7, seed=0, num_steps=50)[39].indices.tolist() == forwards[39]


def test_the_end_of_a_plan():
    plan = BatchPlan(4, 2, seed=0, num_steps=3)
    assert len(plan) == 3
    for step in (-1, 3):
        with pytest.raises(IndexError, match=f"step {step} is not within 0 to 2"):
            plan[step]


# Five examples of 1 to 3 vectors, one of 9; no edges.
SIZES = np.array([[1, 0], [3, 0], [9, 0], [2, 0], [3, 0], [1, 0]])
BUCKETS = (Bucket((4, 0), 3), Bucket((16, 0), 2))


def test_an_epoch_of_buckets_holds_every_example_once_in_its_own_shape():
    plan = BucketPlan(SIZES, BUCKETS, seed=3)
    assert plan.batches_per_epoch == 3
    orders = set()
    for epoch in range(4):
        batches = [plan[epoch * 3 + step] for step in range(3)]
        assert sorted((len(b.indices), b.size) for b in batches) == [(2, (16, 0)), (3, (4, 0)), (3, (4, 0))]
        indices = np.concatenate([b.indices for b in batches])
        assert sorted(indices) == [-1, -1, 0, 1, 2, 3, 4, 5]
        assert all(2 in b.indices for b in batches if b.size == (16, 0))
        orders.add(tuple(indices))
    assert len(orders) > 1


def test_a_step_of_buckets_does_not_depend_on_the_steps_before():
    def seen(plan, step):
        return plan[step].indices.tolist()

    plan = BucketPlan(SIZES, BUCKETS, seed=0)
    forwards = [seen(plan, step) for step in range(30)]
    assert [seen(plan, step) for step in reversed(range(30))] == forwards[::-1]
    assert seen(BucketPlan(SIZES, BUCKETS, seed=0), 29) == forwards[29]
    assert [seen(BucketPlan(SIZES, BUCKETS, seed=1), step) for step in range(30)] != forwards


def test_in_order_holds_every_example_once():
    batches = plans.in_order(SIZES, BUCKETS)
    assert [b.indices.tolist() for b in batches] == [[0, 1, 3], [4, 5, -1], [2, -1]]
