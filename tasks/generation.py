"""What translation, transcription and captioning share: a model makes a sequence and decides its length."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from ml_collections import ConfigDict

from data.examples import Examples
from data.splits import Splits
from data.text.subwords import Subwords
from errors import UserError
from models import decoding, encoder_decoder
from models.decoding import Search
from tasks import bucketed
from tasks.alignment import Alignment
from tasks.task import Batch, Evaluated, Inputs, Record, Sums, TaskData, label_smoothing


class Encoded(NamedTuple):
    """A data set as numbers.

    Attributes:
        parts: the examples, each with its target `tokens` and, in the field `example`, the number of its text
            in `references`.
        inputs: all that is needed to treat new input alike; "target" is the vocabulary of what is made.
        references: what the texts of all three parts should be, for metrics; each may be several.
    """

    parts: Splits[Any]
    inputs: dict[str, Any]
    references: Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class GenerationTask(abc.ABC):
    """A task whose answer is a sequence of tokens.

    The loss knows all tokens before the one it asks for; every other metric is of what the model makes alone.

    Attributes:
        label_smoothing: probability spread evenly over all tokens in the training targets.
        search: how the sequence is looked for.
        align: say in an answer where the model looked.
        seed: of sampling.
        config: the whole experiment config.
    """

    label_smoothing: float
    search: Search
    align: bool
    seed: int
    config: ConfigDict = dataclasses.field(compare=False)
    lower_is_better = False
    best_metric = "loss"

    @classmethod
    def from_config(cls, config: ConfigDict):
        """The task a config describes."""
        chosen = dict(config.decoding)
        align, seed = chosen.pop("align"), chosen.pop("seed")
        try:
            search = Search(**chosen)
        except (TypeError, ValueError) as error:
            raise UserError(f"config.decoding: {error}") from None
        return cls(label_smoothing(config), search, align, seed, config)

    @abc.abstractmethod
    def load(self) -> Encoded:
        """The data set of the config."""

    @abc.abstractmethod
    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """Which columns a batch has, with their sizes, as `models.encoding.build` takes them."""

    @abc.abstractmethod
    def measure(
        self, made: Sequence[str], references: Sequence[Sequence[str]], examples: np.ndarray
    ) -> dict[str, float]:
        """Metrics of texts: what was made, what each should be, and the field `example` of each."""

    @abc.abstractmethod
    def encode_records(self, records: Sequence[Record], inputs: Inputs) -> tuple[np.ndarray, Examples]:
        """The numbers of the records that can be answered, int `[n]`, and their examples without targets."""

    def source(self, record: Record, inputs: Inputs, length: int) -> Sequence[str]:
        """What to write at each of the `length` vectors that a record became, where they are drawn."""
        return [str(place) for place in range(length)]

    @functools.cached_property
    def encoded(self) -> Encoded:
        """The data set."""
        return self.load()

    def data(self) -> TaskData:
        """The data set's three parts in batches of examples of like lengths."""
        config, (parts, inputs, _) = self.config, self.encoded
        return bucketed.task_data(
            parts.train,
            parts.validation,
            parts.test,
            batch_vectors=config.batch_vectors,
            evaluation_batch_vectors=config.evaluation_batch_vectors,
            buckets=config.buckets,
            seed=config.seed,
            inputs=inputs,
        )

    def model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model of `config.model` for the data set's columns and vocabulary."""
        return encoder_decoder.build(
            self.config.model,
            inputs=self.columns(inputs),
            vocab_size=Subwords.from_json(inputs["target"]).size,
            rngs=rngs,
        )

    def loss(self, model: Any, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Sum of the smoothed cross-entropy over all target tokens, their number, and the accuracy's sum."""
        logits = model(batch, train=True, rngs=rngs).logits
        tokens, real = batch["tokens"], batch["target_mask"]
        losses = jnp.where(real, cross_entropy(logits, tokens, self.label_smoothing), 0)
        right = jnp.where(real, logits.argmax(axis=-1) == tokens, False)
        weight = real.sum().astype(losses.dtype)
        return losses.sum(), weight, {"accuracy": right.sum().astype(losses.dtype)}

    def forward(self, model: Any, batch: Batch) -> jax.Array:
        """One pass over known sequences, for counting what it costs."""
        return model(batch, train=False).logits

    def evaluate(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The sequence made for each example, and the loss of its target without smoothing."""
        logits = model(batch, train=False).logits
        losses = jnp.where(batch["target_mask"], cross_entropy(logits, batch["tokens"]), 0)
        made = decoding.decode(model, batch, self.search, keys=self._keys(batch))
        return {"loss": losses.sum(axis=-1), "tokens": made.tokens[:, 0], "finished": made.finished[:, 0]}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Mean loss and perplexity per token, how many sequences ended by themselves, and the task's own."""
        _, inputs, references = self.encoded
        target = Subwords.from_json(inputs["target"])
        loss, tokens, examples, made, finished = 0.0, 0, [], [], 0
        for batch, output in evaluated:
            real = batch["weight"] > 0
            loss += float(output["loss"].sum(dtype=np.float64))
            tokens += int(batch["target_mask"].sum())
            finished += int(output["finished"][real].sum())
            examples.append(batch["example"][real])
            made += [target.decode(row.tolist()) for row in output["tokens"][real]]
        numbers = np.concatenate(examples)
        own = self.measure(made, [references[number] for number in numbers], numbers)
        mean = loss / tokens
        perplexity = float(np.exp(min(mean, 100.0)))
        return {**own, "loss": mean, "perplexity": perplexity, "finished": finished / len(made)}

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterable[tuple[np.ndarray, Batch]]:
        """New input as batches."""
        rows, examples = self.encode_records(records, inputs)
        for places, batch in bucketed.new_input(examples, self.config.evaluation_batch_vectors):
            yield np.where(places < 0, -1, rows[places]), batch

    def predict(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The best sequences found, `[B, n, L]`, and their scores; if asked, where it looked, `[B, L, S]`."""
        made = decoding.decode(model, batch, self.search, keys=self._keys(batch))
        found = {"tokens": made.tokens, "score": made.score, "finished": made.finished}
        if self.align:
            known = {**batch, "tokens": made.tokens[:, 0]}
            weights = model(known, return_weights=True).weights
            if not weights:
                raise UserError("this model has no attention: there is nothing to align by")
            found["weights"] = sum(layer.mean(axis=1) for layer in weights) / len(weights)
            found["length"] = model.encode(batch).mask.sum(axis=-1)
        return found

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """The best text; whether it ended by itself; all texts with their scores; and the alignment."""
        target = Subwords.from_json(inputs["target"])
        texts = [target.decode(row.tolist()) for row in prediction["tokens"]]
        said: dict[str, Any] = {"line": " ".join(texts[0].split("\n")), "text": texts[0]}
        said["finished"] = bool(prediction["finished"][0])
        said["hypotheses"] = [
            {"text": text, "score": round(float(score), 6), "finished": bool(finished)}
            for text, score, finished in zip(texts, prediction["score"], prediction["finished"], strict=True)
        ]
        if self.align:
            pieces = target.pieces([token for token in prediction["tokens"][0].tolist() if token])
            length = int(prediction["length"])
            weights = prediction["weights"][: len(pieces), :length]
            said["alignment"] = Alignment(tuple(self.source(record, inputs, length)), tuple(pieces), weights)
        return said

    def _keys(self, batch: Batch) -> jax.Array | None:
        """A key for each example, by its number alone; None where nothing is drawn."""
        if not self.search.temperature:
            return None
        return jax.vmap(functools.partial(jax.random.fold_in, jax.random.key(self.seed)))(batch["example"])


def numbered(parts: Splits[Any], encode: Callable[[Any, int], Examples]) -> Splits[Any]:
    """The examples of each part, by `encode(part, number of its first text in the references)`."""
    sides = list(vars(parts).values())
    firsts = np.cumsum([0, *map(len, sides[:-1])]).tolist()
    return Splits(*(encode(side, first) for side, first in zip(sides, firsts, strict=True)))


def signature(score: Any) -> str:
    """What a metric of sacreBLEU does, in its own words, with one reference (Post 2018)."""
    score.corpus_score(["a"], [["a"]])  # before it has scored it does not know the number of references
    return score.get_signature().format()


def cross_entropy(logits: jax.Array, tokens: jax.Array, label_smoothing: float = 0.0) -> jax.Array:
    """`-log p(token)`, `[*B]`, with part of the target's probability spread evenly over all tokens.

    Args:
        logits: `[*B, V]`.
        tokens: the right ones, int `[*B]`.
        label_smoothing: the part that is spread (Szegedy et al. 2016).
    """
    # Not by one-hot targets, which would be as large as the logits.
    log_sum = jax.nn.logsumexp(logits, axis=-1)
    right = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
    loss = log_sum - right
    if label_smoothing:
        loss = (1 - label_smoothing) * loss + label_smoothing * (log_sum - logits.mean(axis=-1))
    return loss
