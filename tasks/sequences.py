"""What labelling and classification of sequences share: data, model, and new input of any kind."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from flax import nnx
from ml_collections import ConfigDict

from data.examples import Examples
from data.speech.frames import FrameEncoder
from data.splits import Splits
from data.text.vocabulary import Vocabulary
from errors import UserError
from spec import Block, Natural, Rate, Registry, derived
from tasks import bucketed, speech, text
from tasks.task import Batch, Encoded, Inputs, Per, Record, TaskData

ENCODINGS = Registry("encoding", {"words": Vocabulary.fit, "frames": FrameEncoder.fit}, given=("train",))


class Vectors(Protocol):
    """A kind of vectors, such as words or frames of speech: a module with these three functions."""

    def encoded(self, splits: Splits[Any], encoder: Any, per: Per) -> Encoded:
        """A data set as numbers, with labels per token or per set: examples with `tags` or `label`."""

    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """Which columns a batch has, with their sizes, as `models.inputs.build` takes them."""

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Examples:
        """New input as examples without labels.

        Raises:
            UserError: a record is of another kind; it is named by its "where".
        """


# By the kind of a data set: what the vectors are, and the kind of their encoding.
VECTORS: dict[str, tuple[Vectors, str]] = {"text": (text, "words"), "speech": (speech, "frames")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequenceTask:
    """A task on sequences of vectors.

    Attributes:
        label_smoothing: probability spread evenly over all classes in the training targets.
        batch_tokens: words or frames per update, padding included.
        evaluation_batch_tokens: the same for evaluation and for new input.
        buckets: lengths that sequences are padded to, at most.
        dataset: which sequences.
        encoding: how they become numbers.
        model: what tells their labels.
        seed: of the order of sequences.
    """

    label_smoothing: Rate = 0.0
    batch_tokens: int = dataclasses.field(default=1024, compare=False)
    evaluation_batch_tokens: Annotated[int, derived(lambda batch_tokens: 4 * batch_tokens)] = (
        dataclasses.field(compare=False)
    )
    buckets: int = dataclasses.field(default=4, compare=False)
    dataset: Block = dataclasses.field(compare=False)
    encoding: Annotated[Block, ENCODINGS] = dataclasses.field(compare=False)
    model: Block = dataclasses.field(compare=False)
    seed: Natural = dataclasses.field(default=0, compare=False)
    lower_is_better = False
    per: ClassVar[Per]
    datasets: ClassVar[Registry]

    @property
    def vectors(self) -> Vectors:
        """What the vectors are."""
        return VECTORS[self.dataset["kind"]][0]

    @functools.cached_property
    def encoded(self) -> Encoded:
        """The data set."""
        kind, needed = self.dataset["kind"], VECTORS[self.dataset["kind"]][1]
        if self.encoding["kind"] != needed:
            raise UserError(
                f"config.encoding.kind is {self.encoding['kind']!r}; with config.dataset.kind {kind!r} it "
                f"must be {needed!r}"
            )
        splits = self.datasets.build(self.dataset, "config.dataset")
        encoder = ENCODINGS.build(self.encoding, "config.encoding", train=splits.train)
        found = self.vectors.encoded(splits, encoder, self.per)
        for name, split in vars(found.splits).items():
            self._check_lengths(split.sizes[:, 0], f"example {{}} of {name}".format)
        return found

    @property
    def longest(self) -> int:
        """How many vectors the model can take, by its tables of positions; 0 for any number."""
        lengths = list(_values(self.model, "max_length"))
        token = self.per == "set" and self.model["head"]["pool"]["kind"] == "class"
        return min(lengths) - token if lengths else 0

    def _check_lengths(self, lengths: np.ndarray, where: Callable[[int], str]) -> None:
        for row in np.flatnonzero(lengths > self.longest) if self.longest else []:
            raise UserError(
                f"{where(int(row))} has {lengths[row]} vectors, but the model takes {self.longest}, the "
                "max_length of its positions or attention; raise that, or choose others that have none"
            )

    def data(self) -> TaskData:
        """The data set's three splits in batches of examples of like lengths."""
        return bucketed.task_data(
            self.encoded,
            batch_tokens=self.batch_tokens,
            evaluation_batch_tokens=self.evaluation_batch_tokens,
            buckets=self.buckets,
            seed=self.seed,
            longest=self.longest,
        )

    @abc.abstractmethod
    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model for the data set's columns and labels."""

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterable[tuple[np.ndarray, Batch]]:
        """New input as batches."""
        examples = self.vectors.encode(records, inputs)
        self._check_lengths(examples.sizes[:, 0], lambda row: str(records[row].get("where", "input")))
        return bucketed.new_input(examples, self.evaluation_batch_tokens, self.longest)


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
