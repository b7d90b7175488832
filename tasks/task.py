"""What the training loop asks of a task, and nothing else."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import jax
from flax import nnx

Batch = Mapping[str, Any]
Sums = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The data of a task, as batches of fixed shapes.

    Attributes:
        train: makes the endless iterator over training batches; its `get_state` gives what goes into a
            checkpoint, and its `set_state` refuses the state of other data.
        evaluation: for each split ("validation", "test"), a function that makes one pass over it; every
            example once, the last batch padded with examples of weight 0.
        num_train: training examples, for durations in epochs.
        example: a batch of one, as `train` would give it, for shapes.
    """

    train: Callable[[], "TrainIterator"]
    evaluation: Mapping[str, Callable[[], Iterable[Batch]]]
    num_train: int
    example: Batch


class TrainIterator(Protocol):
    """Batches whose place can be saved and restored."""

    def __next__(self) -> Batch:
        """The next batch."""

    def get_state(self) -> dict[str, Any]:
        """The place, as JSON-able values."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to a place; raises UserError if it is one of other data."""


class Mapped:
    """A training iterator with a function applied to each batch."""

    def __init__(self, batches: TrainIterator, function: Callable[[Any], Batch]):
        self._batches, self._function = batches, function
        self.get_state, self.set_state = batches.get_state, batches.set_state

    def __next__(self) -> Batch:
        """The next batch, mapped."""
        return self._function(next(self._batches))


class Task(Protocol):
    """A task type: what a batch means, the loss, the metrics, how to predict.

    A task is hashable by value: two equal configs make equal tasks, so that their compiled steps are
    shared. Losses and metrics are sums with weights, divided once at the end, so that padding,
    accumulation and devices cannot change them.
    """

    @property
    def best_metric(self) -> str:
        """Which evaluation metric chooses the best checkpoint; higher is better."""

    def __hash__(self) -> int:
        """By what decides the loss alone."""

    def data(self) -> TaskData:
        """Which data sets."""

    def model(self, data: TaskData, rngs: nnx.Rngs) -> nnx.Module:
        """Which model."""

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Sum of the loss over a training batch, its weight, and metric sums of the same forward pass."""

    def metric_sums(self, model: nnx.Module, batch: Batch) -> Sums:
        """Sums over an evaluation batch that `metrics` divides."""

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Final metrics from sums over a whole split."""

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """Predictions for a batch."""
