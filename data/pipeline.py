"""Batches: planned as arrays of indices, gathered from memory, iterated with Grain.

What a training step sees is decided by a plan (see data/plans.py), so a run that is resumed goes on with the
very batch it would have had.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import grain
import numpy as np

import errors
from data import plans
from data.buckets import Bucket
from data.examples import Batch, Examples, Size
from data.plans import BucketPlan, Plan, Planned


class Source(Protocol):
    """Examples that batches can be gathered from."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of them, in hex."""

    def gather(self, indices: np.ndarray, size: Size) -> Batch:
        """The examples at `indices`, -1 being padding, with `weight`; see `data.examples.Examples`."""


class TrainingBatches(Iterator[Batch]):
    """Iterator over the batches of a plan, whose place can be saved and restored.

    Args:
        source: the examples.
        plan: which of them each step sees.
        settings: what else decides what a step sees, by name, as JSON can write it.
        change: applied to each batch, with the number of its step; random augmentation, for one.
        start_step: the first step to give.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        settings: Mapping[str, Any],
        *,
        change: Callable[[int, Batch], Batch] | None = None,
        start_step: int = 0,
    ):
        self._settings = {"examples": source.fingerprint, **settings}

        def gather(planned: Planned) -> Batch:
            return source.gather(planned.indices, planned.size)

        steps = grain.MapDataset.source(plan).map(gather)
        if change is not None:
            steps = steps.map_with_index(change)
        # No threads: to gather a batch in memory takes less time than to hand it over.
        self._iterator = iter(steps.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)))
        self._iterator.set_state({"next_index": start_step})

    def __next__(self) -> Batch:
        return next(self._iterator)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the examples and every setting that decides what a step sees, in hex."""
        return hashlib.sha256(json.dumps(self._settings, sort_keys=True).encode()).hexdigest()

    def get_state(self) -> dict[str, Any]:
        """Where the iterator is, as JSON-able values, for a checkpoint.

        Grain's own state is a bare index, which fits any data; so what it counts in goes with it.
        """
        return {"grain": self._iterator.get_state(), "settings": dict(self._settings)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where `get_state` was called.

        Args:
            state: of an iterator over the same examples with the same settings.

        Raises:
            errors.UserError: they are not the same; those that differ are named.
        """
        differences = [
            f"{key} was {state['settings'].get(key)!r} and is {value!r}"
            for key, value in self._settings.items()
            if state["settings"].get(key) != value
        ]
        if differences:
            raise errors.UserError(f"cannot go on in the middle of other data: {'; '.join(differences)}")
        self._iterator.set_state(state["grain"])


def bucketed(
    examples: Examples,
    buckets: tuple[Bucket, ...],
    *,
    seed: int,
    change: Callable[[int, Batch], Batch] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> TrainingBatches:
    """Batches to train on, each of examples of like sizes.

    Args:
        examples: any number >= 1.
        buckets: the shapes of batches, as `data.buckets.choose` makes them.
        seed: decides the order.
        change: applied to each batch, with the number of its step.
        settings: what decides the change, by name, as JSON can write it.

    Returns:
        An endless iterator with `get_state`, `set_state` and `fingerprint`.
    """
    plan = BucketPlan(examples.sizes, buckets, seed)
    shapes = [[*bucket.size, bucket.batch_size] for bucket in buckets]
    return TrainingBatches(
        examples, plan, {"seed": int(seed), "buckets": shapes, **(settings or {})}, change=change
    )


def batches_per_epoch(examples: Examples, buckets: tuple[Bucket, ...]) -> int:
    """How many batches `bucketed` makes of all examples."""
    return BucketPlan(examples.sizes, buckets, 0).batches_per_epoch


def bucketed_evaluation(
    examples: Examples, buckets: tuple[Bucket, ...]
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Batches that hold every example exactly once, each of examples of like sizes.

    The last batch of each bucket is filled up with padding of weight 0.

    Returns:
        An iterator over the indices of the examples, -1 being padding, and the batch of them.
    """
    for planned in plans.in_order(examples.sizes, buckets):
        yield planned.indices, examples.gather(planned.indices, planned.size)


def evaluation_batches(source: Any, batch_size: int) -> Iterator[Batch]:
    """Batches that hold every example exactly once, in order, all of one size.

    The last batch is filled up with copies of the first example, of weight 0.

    Args:
        source: examples that need no padding, of any number.
        batch_size: examples per batch.

    Returns:
        An iterator over ceil(n / batch_size) batches.

    Raises:
        errors.UserError: the batch size is not allowed.
    """
    plans.check_batch_size(batch_size)
    return (_padded(source, start, batch_size) for start in range(0, len(source), batch_size))


def _padded(source: Any, start: int, batch_size: int) -> Batch:
    indices = np.arange(start, start + batch_size)
    return source.gather(np.where(indices < len(source), indices, -1), (0, 0))
