"""Which examples a training step sees: a pure function of (seed, step).

So any step can be had without those before it, and a resumed run goes on with the very batch it would have
had.
"""

import dataclasses
import functools
import operator
import sys
from typing import NamedTuple, Protocol

import numpy as np

import errors
from data import buckets as bucketing
from data import streams
from data.buckets import Bucket
from data.examples import Size


class Planned(NamedTuple):
    """One batch.

    Attributes:
        indices: which examples, int64 `[B]`; -1 stands for padding.
        size: vectors and edges, or vectors and targets, that each is padded to.
    """

    indices: np.ndarray
    size: Size = (0, 0)


class Plan(Protocol):
    """The batches of a run, by step."""

    def __len__(self) -> int:
        """Steps."""

    def __getitem__(self, step: int) -> Planned:
        """The batch of a step."""


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Batches of one size, for examples of one size.

    The epochs, each a permutation of the examples by (seed, epoch), are laid end to end and cut into
    batches. So nothing is dropped, a batch may straddle epochs, and a batch larger than the data set
    holds examples several times.

    Attributes:
        num_examples: size of the data set, >= 1.
        batch_size: examples per step, >= 1.
        seed: chooses the permutations.
        num_steps: where the plan ends; it does not change what any step sees.
    """

    num_examples: int
    batch_size: int
    seed: int
    num_steps: int = sys.maxsize

    def __post_init__(self):
        check_batch_size(self.batch_size)
        streams.check_seed(self.seed)

    def __len__(self) -> int:
        return self.num_steps

    def __getitem__(self, step: int) -> Planned:
        """The examples of a step, for 0 <= step < num_steps."""
        step = _check_step(step, self.num_steps)
        first = step * self.batch_size
        epochs, places = np.divmod(np.arange(first, first + self.batch_size), self.num_examples)
        return Planned(
            np.concatenate(
                [
                    _epoch(self.num_examples, self.seed, epoch)[places[epochs == epoch]]
                    for epoch in range(epochs[0], epochs[-1] + 1)
                ]
            )
        )


@dataclasses.dataclass(frozen=True, eq=False)
class BucketPlan:
    """Batches of examples of like sizes, every example once in an epoch.

    An epoch deals the examples, in an order by (seed, epoch), to their buckets and cuts each bucket into
    batches, of which the last is filled up with padding; and then it shuffles the batches.

    Attributes:
        sizes: of each example, int `[n, 2]`, as `Examples.sizes` gives them.
        buckets: the shapes of batches, as `data.buckets.choose` makes them.
        seed: chooses the orders.
        num_steps: where the plan ends; it does not change what any step sees.
    """

    sizes: np.ndarray
    buckets: tuple[Bucket, ...]
    seed: int
    num_steps: int = sys.maxsize

    def __post_init__(self):
        streams.check_seed(self.seed)

    def __len__(self) -> int:
        return self.num_steps

    @functools.cached_property
    def _bucket_of(self) -> np.ndarray:
        return bucketing.assign(self.sizes, self.buckets)

    @functools.cached_property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""
        counts = np.bincount(self._bucket_of, minlength=len(self.buckets))
        return sum(
            -(-int(count) // bucket.batch_size) for count, bucket in zip(counts, self.buckets, strict=True)
        )

    def __getitem__(self, step: int) -> Planned:
        """The batch of a step, for 0 <= step < num_steps."""
        epoch, place = divmod(_check_step(step, self.num_steps), self.batches_per_epoch)
        if self._epoch[0] != epoch:
            self._epoch[:] = [epoch, self._deal(epoch)]
        return self._epoch[1][place]

    @functools.cached_property
    def _epoch(self) -> list:
        """The number and the batches of the epoch asked for last."""
        return [-1, []]

    def _deal(self, epoch: int) -> list[Planned]:
        order = _epoch(len(self.sizes), self.seed, epoch)
        batches = batches_of(order, self._bucket_of[order], self.buckets)
        shuffled = streams.Stream(self.seed, "batches", epoch).permutation(len(batches))
        return [batches[place] for place in shuffled]


def in_order(sizes: np.ndarray, buckets: tuple[Bucket, ...]) -> list[Planned]:
    """Batches that hold every example once, for evaluation."""
    return batches_of(np.arange(len(sizes)), bucketing.assign(sizes, buckets), buckets)


def batches_of(order: np.ndarray, bucket_of: np.ndarray, buckets: tuple[Bucket, ...]) -> list[Planned]:
    """The examples of `order`, cut into batches bucket by bucket, with padding at the end of each."""
    batches = []
    for number, bucket in enumerate(buckets):
        members = order[bucket_of == number]
        fill = np.full(-len(members) % bucket.batch_size, -1, np.int64)
        full = np.concatenate([members, fill]).reshape(-1, bucket.batch_size)
        batches += [Planned(row, bucket.size) for row in full]
    return batches


@functools.lru_cache(maxsize=4)
def _epoch(num_examples: int, seed: int, epoch: int) -> np.ndarray:
    order = streams.Stream(seed, "epoch", epoch).permutation(num_examples)
    order.flags.writeable = False  # shared by all who ask
    return order


def _check_step(step: int, num_steps: int) -> int:
    step = operator.index(step)
    if not 0 <= step < num_steps:
        raise IndexError(f"step {step} is not within 0 to {num_steps - 1}")
    return step


def check_batch_size(batch_size: int) -> None:
    """Raises a one-line UserError unless it is a whole number >= 1."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise errors.UserError(f"batch_size {batch_size!r} is not allowed: a whole number >= 1 is needed")
