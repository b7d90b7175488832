"""What the training loop asks of a task, and nothing else."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import jax
import numpy as np
from flax import nnx

from data.splits import Splits

Batch = Mapping[str, Any]
Sums = dict[str, jax.Array]
Inputs = Mapping[str, Any]
Per = Literal["token", "set"]  # whether there is a label for each vector or one for all
Record = Mapping[str, Any]
Evaluated = tuple[Batch, Mapping[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The data of a task, as batches of few shapes.

    Attributes:
        train: makes the endless iterator over training batches; its `get_state` gives what goes into a
            checkpoint, and its `set_state` refuses the state of other data.
        evaluation: for each split ("validation", "test"), a function that makes one pass over it; every
            example once, what a batch lacks filled up with examples of weight 0.
        num_train: training examples, for durations in examples.
        batches_per_epoch: batches that hold `num_train` examples, for durations in epochs.
        batch_sizes: the numbers of examples that training batches have.
        example: a batch of one, as `train` would give it, for shapes.
        inputs: what a trained model must know to take new input and to say its answer: words, label
            names, means. As JSON can write it; it is kept in the run's folder.
    """

    train: Callable[[], "TrainIterator"]
    evaluation: Mapping[str, Callable[[], Iterable[Batch]]]
    num_train: int
    batches_per_epoch: float
    batch_sizes: tuple[int, ...]
    example: Batch
    inputs: Inputs


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


@dataclasses.dataclass(frozen=True)
class Encoded:
    """A data set as numbers.

    Attributes:
        splits: the examples.
        inputs: all that is needed to treat new input alike, as JSON can write it.
        answers: of all three splits, one after the other, what an example's field `example` is the number of
            and metrics are measured by: texts to be made, questions.
    """

    splits: Splits[Any]
    inputs: dict[str, Any]
    answers: Sequence[Any] = ()


def numbered(splits: Splits[Any], encode: Callable[[Any, int], Any]) -> Splits[Any]:
    """The examples of each split, by `encode(split, number of its first answer)`."""
    sides = list(vars(splits).values())
    firsts = np.cumsum([0, *map(len, sides[:-1])]).tolist()
    return Splits(*(encode(side, first) for side, first in zip(sides, firsts, strict=True)))


class Task(Protocol):
    """A task type: what a batch means, the loss, the metrics, how to predict.

    A task is made of the fields of a config, and is hashable by those that decide the loss, so that runs on
    other data share compiled steps. Losses are sums with weights, divided once at the end, so that padding,
    accumulation and devices cannot change them.
    """

    @property
    def best_metric(self) -> str:
        """Which evaluation metric chooses the best checkpoint."""

    @property
    def lower_is_better(self) -> bool:
        """Whether the best of it is the lowest."""

    def __hash__(self) -> int:
        """By what decides the loss alone."""

    def data(self) -> TaskData:
        """Which data sets."""

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """Which model."""

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Sum of the loss over a training batch, its weight, and metric sums of the same forward pass."""

    def evaluate(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """What `metrics` must know of an evaluation batch, compiled: losses, predictions, scores."""

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Metrics of a whole split, from its batches and what `evaluate` made of each."""

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterable[tuple[np.ndarray, Batch]]:
        """New input, without labels, as batches with the number of the record in each row, -1 for padding.

        Raises UserError, naming the record by `record["where"]`, on one that can't be taken.
        """

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """Predictions for a batch, one row for each of its rows, compiled."""

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """What to say of a record, as JSON can write it; `"line"` says it in one line."""


def answers(
    task: Task,
    predict: Callable[[Batch], Mapping[str, jax.Array]],
    records: Sequence[Record],
    inputs: Inputs,
) -> list[dict[str, Any]]:
    """The answer to each record, in order; one that the task passes over has an empty line.

    Args:
        task: what the records are for.
        predict: `task.predict` with the model in it.
        records: new input.
        inputs: of `TaskData`.

    Raises:
        UserError: a record can't be taken; it is named by its "where".
    """
    found: list[dict[str, Any]] = [{"line": ""} for _ in records]
    for rows, batch in task.encode(records, inputs):
        predictions = jax.device_get(predict(batch))
        for place, row in enumerate(rows):
            if row >= 0:
                prediction = {name: array[place] for name, array in predictions.items()}
                found[row] = task.answer(records[row], prediction, inputs)
    return found
