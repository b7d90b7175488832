"""A text in one language, the text in another: subwords in, subwords out."""

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import jax
import numpy as np
import sacrebleu
from flax import nnx

from data.examples import Examples
from data.ragged import Ragged
from data.text.load import parallel
from data.text.subwords import END, Subwords
from data.text.types import Link, ParallelText
from errors import UserError
from spec import Block, call
from tasks.generation import SUBWORDS, GenerationTask
from tasks.task import Batch, Encoded, Evaluated, Inputs, Record, numbered

PAIRS = call(parallel)

# By metric: the cased text as people read it; and as much of the older literature counts, lower-cased.
SCORES = {
    "bleu": sacrebleu.BLEU(),
    "bleu_lower": sacrebleu.BLEU(lowercase=True),
    "chrf": sacrebleu.CHRF(),
}

Span = tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation(GenerationTask):
    """Pairs of texts; measured by BLEU and chrF of the detokenised text (Post 2018).

    Where it is known which part of a text says what part of the other, also by how often attention is
    strongest there, all tokens before being known.

    Attributes:
        dataset: which pairs of texts.
        joint_vocabulary: one vocabulary for both languages.
        max_length: tokens of the longest pair to train on, on either side; None: all are trained on.
    """

    best_metric = "bleu"
    dataset: Annotated[Block, PAIRS] = dataclasses.field(compare=False)
    joint_vocabulary: bool = dataclasses.field(default=True, compare=False)
    max_length: int | None = dataclasses.field(default=None, compare=False)

    def load(self) -> Encoded:
        """The data set, with one vocabulary or two, learnt from the training part."""
        splits = PAIRS.build(self.dataset, "config.dataset")

        def learnt(texts: Sequence[str]) -> Subwords:
            return SUBWORDS.build(self.subwords, "config.subwords", lines=texts)

        train = splits.train
        if self.joint_vocabulary:
            source = target = learnt([*train.source, *train.target])
        else:
            source, target = learnt(train.source), learnt(train.target)
        examples = numbered(splits, lambda part, first: _examples(part, source, target, first))
        examples = dataclasses.replace(examples, train=_without_long(examples.train, self.max_length))
        inputs = {
            "source": None if self.joint_vocabulary else source.to_json(),
            "target": target.to_json(),
            "longest": int(examples.train.sizes[:, 0].max()),
        }
        references = [[text] for split in vars(splits).values() for text in split.target]
        return Encoded(examples, inputs, references)

    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """Words, as many as the source's vocabulary has."""
        return {"words": _source(inputs).size}

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model; one table for both sides needs one vocabulary."""
        if self.model["share_embeddings"] and inputs["source"] is not None:
            raise UserError(
                "config.model.share_embeddings needs config.joint_vocabulary; turn both on or off"
            )
        return super().make_model(inputs, rngs)

    def measure(
        self, made: Sequence[str], references: Sequence[Sequence[str]], examples: np.ndarray
    ) -> dict[str, float]:
        """BLEU and chrF of the text, and BLEU of both texts in lower case."""
        right = [[reference for reference, *_ in references]]
        return {name: score.corpus_score(made, right).score for name, score in SCORES.items()}

    def evaluate(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """Besides what every such task measures, of how many tokens attention found their source."""
        found = super().evaluate(model, batch)
        if "looks" in batch and (weights := model(batch, return_weights=True).weights):
            place = sum(layer.mean(axis=1) for layer in weights).argmax(axis=-1)
            first, last = batch["looks"][..., 0], batch["looks"][..., 1]
            right = (first <= place) & (place <= last) & batch["target_mask"]
            found["aligned"] = right.sum(axis=-1)
        return found

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Besides what every such task measures, the share of such tokens."""
        aligned, known = 0, 0

        def counted():
            nonlocal aligned, known
            for batch, output in evaluated:
                if "aligned" in output:
                    aligned += int(output["aligned"].sum())
                    known += int((batch["looks"][..., 0] >= 0)[batch["target_mask"]].sum())
                yield batch, output

        metrics = super().metrics(counted())
        return {**metrics, **({"alignment_accuracy": aligned / known} if known else {})}

    def encode_records(self, records: Sequence[Record], inputs: Inputs) -> tuple[np.ndarray, Examples]:
        """Every text that is not blank; one longer than any in training is warned about."""
        for record in records:
            if not isinstance(record.get("text"), str):
                raise UserError(f'{record.get("where", "input")} has no text; a "text" is needed')
        rows = np.array([row for row, record in enumerate(records) if record["text"].strip()], np.int64)
        words = _with_end(_source(inputs), [records[row]["text"] for row in rows])
        for row, tokens in zip(rows, words, strict=True):
            if len(tokens) > inputs["longest"]:
                logging.getLogger(__name__).warning(
                    "%s has %d subwords, more than the %d of the longest text in training",
                    records[row].get("where", f"record {row + 1}"),
                    len(tokens),
                    inputs["longest"],
                )
        return rows, Examples({"example": rows.astype(np.int32)}, {"words": Ragged.of(words, np.int32)})

    def source(self, record: Record, inputs: Inputs, length: int) -> Sequence[str]:
        """The subwords of the source."""
        subwords = _source(inputs)
        return subwords.pieces(_with_end(subwords, [record["text"]])[0])[:length]


def _source(inputs: Inputs) -> Subwords:
    return Subwords.from_json(inputs["source"] or inputs["target"])


def _with_end(subwords: Subwords, texts: Sequence[str]) -> list[list[int]]:
    return [[*tokens, END] for tokens in subwords.encode(texts)]


def _examples(part: ParallelText, source: Subwords, target: Subwords, first: int) -> Examples:
    targets = {"tokens": Ragged.of(_with_end(target, part.target), np.int32)}
    if part.links is not None:
        texts = zip(part.source, part.target, part.links, strict=True)
        found = [looks(source.spans(one), target.spans(other), links) for one, other, links in texts]
        targets["looks"] = Ragged.of(found, np.int32, (2,))
    return Examples(
        fields={"example": np.arange(first, first + len(part), dtype=np.int32)},
        vectors={"words": Ragged.of(_with_end(source, part.source), np.int32)},
        targets=targets,
    )


def looks(source: Sequence[Span], target: Sequence[Span], links: Sequence[Link]) -> list[Span]:
    """The first and the last source token that each target token should look at; -1 where that is open.

    Args:
        source: the characters of each source token, from the first up to the second.
        target: those of each target token; the end comes after the last.
        links: which characters say the same.
    """
    found = []
    for token in (*target, (0, 0)):  # and the end
        inside = [link.source for link in links if link.target[0] < token[1] and token[0] < link.target[1]]
        places = [
            place
            for place, (begin, end) in enumerate(source)
            if any(begin < last and first < end for first, last in inside)
        ]
        found.append((places[0], places[-1]) if places else (-1, -1))
    return found


def _without_long(train: Examples, most: int | None) -> Examples:
    """What has at most so many tokens on either side; all of it where `most` is None."""
    if most is None:
        return train
    keep = np.flatnonzero(train.sizes.max(axis=1) <= most)
    if not len(keep):
        raise UserError(f"config.max_length is {most}; every training pair is longer")
    return train.take(keep)
