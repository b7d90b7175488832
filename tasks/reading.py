"""Reading: a passage and a question about it in, the span of the passage that answers it out."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from data.examples import Examples
from data.ragged import Ragged
from data.splits import Splits
from data.text.load import questions
from data.text.types import LabelledTexts, Question, Text
from data.text.vocabulary import Vocabulary
from errors import UserError
from models.reader import READER
from spec import Block, Natural, call, derived
from tasks import answer_scores, bucketed
from tasks.task import Batch, Encoded, Evaluated, Inputs, Record, Sums, TaskData

QUESTIONS = call(questions)
VOCABULARY = call(Vocabulary.fit, given=("train",))
_PASSAGE = {"words": "words", "affixes": "affixes"}
_QUESTION = {"words": "question", "affixes": "question_affixes"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """Cross-entropy of the first and of the last token; exact match and F1 of the answer's text.

    An example has `start` and `end`, the first and last token of the answer, and `example`, the number of the
    question.

    Attributes:
        max_answer_length: tokens in an answer, at most.
        batch_tokens: tokens of passages per update, padding included.
        evaluation_batch_tokens: the same for evaluation and for new input.
        buckets: lengths that passages are padded to, at most.
        dataset: which questions.
        vocabulary: how words become numbers.
        model: what reads.
        seed: of the order of questions.
    """

    max_answer_length: int = 30
    batch_tokens: int = dataclasses.field(default=2048, compare=False)
    evaluation_batch_tokens: Annotated[int, derived(lambda batch_tokens: 4 * batch_tokens)] = (
        dataclasses.field(compare=False)
    )
    buckets: int = dataclasses.field(default=4, compare=False)
    dataset: Annotated[Block, QUESTIONS] = dataclasses.field(compare=False)
    vocabulary: Annotated[Block, VOCABULARY] = dataclasses.field(compare=False)
    model: Annotated[Block, READER] = dataclasses.field(compare=False)
    seed: Natural = dataclasses.field(default=0, compare=False)
    lower_is_better = False
    best_metric = "exact_match"

    @functools.cached_property
    def encoded(self) -> Encoded:
        """The data set, its vocabulary measured on passages and questions of the training part."""
        splits = QUESTIONS.build(self.dataset, "config.dataset")
        # Several questions are about a passage, which counts once.
        passages = {question.passage.text: question.passage for question in splits.train}
        texts = [text.tokens for text in (*passages.values(), *(each.question for each in splits.train))]
        vocabulary = VOCABULARY.build(
            self.vocabulary, "config.vocabulary", train=LabelledTexts(texts, ["text"] * len(texts))
        )
        every: list[Question] = []
        encoded = []
        for part in vars(splits).values():
            examples = _encode([(each.passage, each.question) for each in part], vocabulary)
            spans = np.asarray([each.span for each in part], np.int32)
            numbers = np.arange(len(every), len(every) + len(part), dtype=np.int32)
            fields = {"start": spans[:, 0], "end": spans[:, 1], "example": numbers}
            encoded.append(dataclasses.replace(examples, fields=fields))
            every += part
        return Encoded(Splits(*encoded), {"vocabulary": vocabulary.to_json()}, every)

    def data(self) -> TaskData:
        """The data set's three splits in batches of passages of like lengths."""
        return bucketed.task_data(
            self.encoded,
            batch_tokens=self.batch_tokens,
            evaluation_batch_tokens=self.evaluation_batch_tokens,
            buckets=self.buckets,
            seed=self.seed,
        )

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The reader for the data set's vocabulary."""
        vocabulary = Vocabulary.from_json(inputs["vocabulary"])
        columns = {"words": vocabulary.size, "affixes": vocabulary.affix_sizes}
        return READER.build(self.model, "config.model", columns=columns, rngs=rngs)

    def loss(self, model: Any, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Weighted sum of the loss, the weight, and the sum for how many spans training finds."""
        spans = model(batch, train=True, rngs=rngs)
        weight = batch["weight"]
        start, end = spans.best(batch["mask"], self.max_answer_length)
        right = jnp.where((start == batch["start"]) & (end == batch["end"]), weight, 0)
        losses = -spans.log_probability(batch["start"], batch["end"])
        return (losses * weight).sum(), weight.sum(), {"exact_match": right.sum()}

    def evaluate(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest span of each passage, and the loss."""
        spans = model(batch, train=False)
        start, end = spans.best(batch["mask"], self.max_answer_length)
        return {"start": start, "end": end, "loss": -spans.log_probability(batch["start"], batch["end"])}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Exact match, F1 and mean loss over every question of a split."""
        exact, f1, losses = [], [], []
        for batch, output in evaluated:
            for row in np.flatnonzero(batch["weight"] > 0):
                question = self.encoded.answers[batch["example"][row]]
                answer = question.passage.span(output["start"][row], output["end"][row])
                exact.append(answer_scores.exact_match(answer, question.answers))
                f1.append(answer_scores.f1(answer, question.answers))
                losses.append(float(output["loss"][row]))
        return {
            "exact_match": float(np.mean(exact)),
            "f1": float(np.mean(f1)),
            "loss": float(np.mean(losses)),
            "examples": float(len(losses)),
        }

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterable[tuple[np.ndarray, Batch]]:
        """Records with "context" and "question"."""
        for record in records:
            if not all(isinstance(record.get(name), str) for name in ("context", "question")):
                raise UserError(
                    f"{record.get('where', 'input')}: 'context' and 'question' must be strings, in an object "
                    "for each question (--format=jsonl); found "
                    f"{', '.join(name for name in record if name != 'where') or 'neither'}"
                )
        texts = [(Text.of(record["context"]), Text.of(record["question"])) for record in records]
        examples = _encode(texts, Vocabulary.from_json(inputs["vocabulary"]))
        return bucketed.new_input(examples, self.evaluation_batch_tokens)

    def predict(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest span of each passage, and the probability of that."""
        spans = model(batch, train=False)
        start, end = spans.best(batch["mask"], self.max_answer_length)
        return {"start": start, "end": end, "probability": jnp.exp(spans.log_probability(start, end))}

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """The text of the span, and the character it begins with; none if passage or question is blank."""
        said = {name: record[name] for name in ("id", "question") if name in record}
        passage = Text.of(record["context"])
        if not passage.places or not Text.of(record["question"]).places:
            return {"line": "", **said, "answer": "", "answer_start": None, "probability": None}
        first, last = int(prediction["start"]), int(prediction["end"])
        answer = passage.span(first, last)
        return {
            "line": " ".join(answer.split()),
            **said,
            "answer": answer,
            "answer_start": passage.places[first][0],
            "probability": round(float(prediction["probability"]), 6),
        }


def _encode(texts: Sequence[tuple[Text, Text]], vocabulary: Vocabulary) -> Examples:
    """Passages as vectors, and questions as what is beside them."""

    def columns(side: int, names: Mapping[str, str]) -> dict[str, Ragged]:
        found = vocabulary.encode([pair[side].tokens for pair in texts]).vectors
        return {name: found[column] for column, name in names.items() if column in found}

    return Examples(vectors=columns(0, _PASSAGE), targets=columns(1, _QUESTION))
