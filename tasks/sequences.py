"""What labelling and classification of sequences share: data, model, and new input of any kind."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from flax import nnx
from ml_collections import ConfigDict

from data.examples import Examples
from data.splits import Splits
from errors import UserError, unknown
from models import set_model
from tasks import bucketed
from tasks.task import Batch, Inputs, Record, TaskData, label_smoothing


class Encoded(NamedTuple):
    """A data set as numbers.

    Attributes:
        parts: the examples, with `tags` or `label`.
        inputs: all that is needed to treat new input alike, with the names of the labels in "labels".
    """

    parts: Splits[Examples]
    inputs: dict[str, Any]


class Kind(Protocol):
    """A kind of vectors, such as words or frames of speech: a module with these three functions."""

    def load(self, config: ConfigDict, *, per: set_model.Per, seed: int) -> Encoded:
        """The data set of a config's block `dataset`, with labels per vector or per set."""

    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """Which columns a batch has, with their sizes, as `models.set_model.build` takes them."""

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Examples:
        """New input as examples without labels.

        Raises:
            UserError: a record is of another kind; it is named by its "where".
        """


def kinds() -> dict[str, Kind]:
    """The kinds of vectors by the word for them in a config."""
    from tasks import speech, text

    return {"text": text, "speech": speech}


@dataclasses.dataclass(frozen=True)
class SequenceTask:
    """A task on sequences of vectors.

    Tasks compare by what decides the loss alone, so that runs on other data share compiled steps.

    Attributes:
        label_smoothing: probability spread evenly over all classes in the training targets.
        config: the whole experiment config.
    """

    label_smoothing: float
    config: ConfigDict = dataclasses.field(compare=False)
    lower_is_better = False
    per: ClassVar[set_model.Per]

    @classmethod
    def from_config(cls, config: ConfigDict):
        """The task a config describes."""
        return cls(label_smoothing=label_smoothing(config), config=config)

    @functools.cached_property
    def kind(self) -> Kind:
        """What the vectors are."""
        found = kinds()
        if self.config.dataset.kind not in found:
            raise unknown("config.dataset.kind", self.config.dataset.kind, found)
        return found[self.config.dataset.kind]

    @functools.cached_property
    def encoded(self) -> Encoded:
        """The data set."""
        found = self.kind.load(self.config.dataset, per=self.per, seed=self.config.seed)
        for name, part in vars(found.parts).items():
            self._check_lengths(part.sizes[:, 0], f"example {{}} of {name}".format)
        return found

    @property
    def longest(self) -> int:
        """How many vectors the model can take, by its tables of positions; 0 for any number."""
        lengths = list(_values(self.config.model, "max_length"))
        token = self.config.model.head.get("pool") == "class"
        return min(lengths) - token if lengths else 0

    def _check_lengths(self, lengths: np.ndarray, where: Callable[[int], str]) -> None:
        for row in np.flatnonzero(lengths > self.longest) if self.longest else []:
            raise UserError(
                f"{where(int(row))} has {lengths[row]} vectors, but the model takes {self.longest}, the "
                "max_length of its positions or attention; raise that, or choose others that have none"
            )

    def data(self) -> TaskData:
        """The data set's three splits in batches of examples of like lengths."""
        config, (parts, inputs) = self.config, self.encoded
        return bucketed.task_data(
            *_all(parts),
            batch_vectors=config.batch_vectors,
            evaluation_batch_vectors=config.evaluation_batch_vectors,
            buckets=config.buckets,
            seed=config.seed,
            inputs=inputs,
            longest=self.longest,
        )

    def model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model of `config.model` for the data set's columns and labels."""
        return set_model.build(
            self.config.model,
            inputs=self.kind.columns(inputs),
            outputs=len(inputs["labels"]),
            per=self.per,
            rngs=rngs,
        )

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterable[tuple[np.ndarray, Batch]]:
        """New input as batches."""
        examples = self.kind.encode(records, inputs)
        self._check_lengths(examples.sizes[:, 0], lambda row: str(records[row].get("where", "input")))
        return bucketed.new_input(examples, self.config.evaluation_batch_vectors, self.longest)


def _all(parts: Splits[Examples]) -> tuple[Examples, Examples, Examples]:
    return parts.train, parts.validation, parts.test


def _values(block: Any, name: str) -> Iterator[int]:
    """Every value of that name in a block of a config, however deep."""
    if isinstance(block, Mapping | ConfigDict):
        for key, value in block.items():
            if key == name:
                yield value
            yield from _values(value, name)
    elif isinstance(block, tuple | list):
        for value in block:
            yield from _values(value, name)
