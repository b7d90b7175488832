"""Batches: planned as arrays of indices, gathered from memory, iterated with Grain.

Which examples a training step sees is a pure function of (seed, step), so any step can be had
without those before it, and a resumed run goes on with the very batch it would have had.

A batch is a dict of
    image: uint8 [B, height, width, channels],
    label: int32 [B],
    weight: float32 [B], 1 for an example that counts and 0 for padding.
"""

import dataclasses
import functools
import hashlib
import json
import operator
import sys
from collections.abc import Iterator
from typing import Any

import grain
import numpy as np

import errors
from data import augmentation as augmentations
from data import streams
from data.images import ImageSplit

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Which examples each training step sees: `plan[step]`.

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
        _check_batch_size(self.batch_size)
        streams.check_seed(self.seed)

    def __len__(self) -> int:
        return self.num_steps

    def __getitem__(self, step: int) -> np.ndarray:
        """The examples of a step, int64 [batch_size], for 0 <= step < num_steps."""
        step = operator.index(step)
        if not 0 <= step < self.num_steps:
            raise IndexError(f"step {step} is not within 0 to {self.num_steps - 1}")
        first = step * self.batch_size
        epochs, places = np.divmod(np.arange(first, first + self.batch_size), self.num_examples)
        return np.concatenate(
            [
                _epoch(self.num_examples, self.seed, epoch)[places[epochs == epoch]]
                for epoch in range(epochs[0], epochs[-1] + 1)
            ]
        )


@functools.lru_cache(maxsize=4)
def _epoch(num_examples: int, seed: int, epoch: int) -> np.ndarray:
    order = streams.Stream(seed, "epoch", epoch).permutation(num_examples)
    order.flags.writeable = False  # shared by all who ask
    return order


class TrainingBatches(Iterator[Batch]):
    """Iterator over the batches of a plan, whose place can be saved and restored.

    Args:
        split: the examples.
        plan: which of them each step sees.
        augmentation: how they are changed at random; see data/augmentation.py.
        start_step: the first step to give.
    """

    def __init__(self, split: ImageSplit, plan: BatchPlan, augmentation: str, start_step: int = 0):
        augmentations.check(augmentation)
        self._settings = {
            "examples": split.fingerprint,
            "batch_size": int(plan.batch_size),
            "seed": int(plan.seed),
            "augmentation": augmentation,
        }

        def gather(indices: np.ndarray) -> Batch:
            return _batch(split, indices, np.ones(len(indices), np.float32))

        def augment(step: int, batch: Batch) -> Batch:
            image = augmentations.augment(augmentation, batch["image"], seed=plan.seed, step=step)
            return batch | {"image": image}

        steps = grain.MapDataset.source(plan).map(gather).map_with_index(augment)
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


def batches(
    split: ImageSplit,
    *,
    batch_size: int,
    seed: int,
    augmentation: str = "none",
    start_step: int = 0,
    num_steps: int | None = None,
) -> TrainingBatches:
    """Batches to train on.

    Args:
        split: the examples, of any number >= 1.
        batch_size: examples per batch; may be more than there are.
        seed: decides order and augmentation.
        augmentation: one of `data.augmentation.names()`.
        start_step: number of the first step to give.
        num_steps: the step to stop before, counted from 0 and not from `start_step`; None never
            stops.

    Returns:
        An iterator with `get_state`, `set_state` and `fingerprint`.

    Raises:
        errors.UserError: an argument is not allowed.
    """
    plan = BatchPlan(len(split), batch_size, seed, sys.maxsize if num_steps is None else num_steps)
    return TrainingBatches(split, plan, augmentation, start_step)


def evaluation_batches(split: ImageSplit, batch_size: int) -> Iterator[Batch]:
    """Batches that hold every example exactly once, in order, all of one size.

    The last batch is filled up with copies of the first example, of weight 0.

    Args:
        split: the examples.
        batch_size: examples per batch.

    Returns:
        An iterator over ceil(n / batch_size) batches.

    Raises:
        errors.UserError: the batch size is not allowed.
    """
    _check_batch_size(batch_size)
    return (_padded(split, start, batch_size) for start in range(0, len(split), batch_size))


def _padded(split: ImageSplit, start: int, batch_size: int) -> Batch:
    indices = np.arange(start, start + batch_size)
    real = indices < len(split)
    return _batch(split, np.where(real, indices, 0), real.astype(np.float32))


def _batch(split: ImageSplit, indices: np.ndarray, weight: np.ndarray) -> Batch:
    return {"image": split.images[indices], "label": split.labels[indices], "weight": weight}


def _check_batch_size(batch_size: int) -> None:
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise errors.UserError(f"batch_size {batch_size!r} is not allowed: a whole number >= 1 is needed")
