"""One label for every vector: part of speech, entities, phones."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from data.speech.load import labelled
from data.text.load import tagged
from data.text.vocabulary import UNLABELLED
from errors import UserError
from models.set_model import TAGGER
from spec import Block, Registry
from tasks import spans
from tasks.sequences import SequenceTask
from tasks.task import Batch, Evaluated, Inputs, Record, Sums

TAGGED = Registry("data set", {"text": tagged, "speech": labelled})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequenceLabeling(SequenceTask):
    """A sequence in, a label for each of its vectors out; cross-entropy, or the likelihood of a CRF.

    Attributes:
        dataset: which sequences.
        model: what tells their labels.
    """

    per = "token"
    datasets = TAGGED
    dataset: Annotated[Block, TAGGED] = dataclasses.field(compare=False)
    model: Annotated[Block, TAGGER] = dataclasses.field(compare=False)

    def __post_init__(self):
        if self.label_smoothing and self.model["head"]["crf"]:
            raise UserError(
                f"config.label_smoothing is {self.label_smoothing}; with config.model.head.crf it must be 0"
            )

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The tagger for the data set's columns and tags."""
        return TAGGER.build(
            self.model,
            "config.model",
            columns=self.vectors.columns(inputs),
            num_outputs=len(inputs["labels"]),
            rngs=rngs,
        )

    @property
    def best_metric(self) -> str:
        """Strict F1 of spans where the labels tag spans, else accuracy."""
        return "f1" if spans.are_iob2(self.encoded.inputs["labels"]) else "accuracy"

    def loss(self, model: Any, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Sum of the loss over all labelled vectors, their number, and the sum for the training accuracy."""
        tags, mask = batch["tags"], batch["mask"]
        logits, penalty = model(batch, train=True, rngs=rngs)
        labelled = mask & (tags >= 0)
        losses = model.head.loss(logits, tags, mask, label_smoothing=self.label_smoothing)
        correct = jnp.where(labelled, logits.argmax(-1) == tags, False)
        total = (losses + penalty * batch["weight"]).sum()
        return total, labelled.sum().astype(total.dtype), {"accuracy": correct.sum().astype(total.dtype)}

    def evaluate(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The label chosen for each vector, and the loss of each example without smoothing."""
        logits, _ = model(batch, train=False)
        losses = model.head.loss(logits, batch["tags"], batch["mask"])
        return {"tags": model.head.decode(logits, batch["mask"]), "loss": losses}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Accuracy and mean loss over every labelled vector; a label that train does not have is an error.

        Also the accuracy on words that were, and were not, in the training part, where that is known; and
        precision, recall and F1 of spans where the labels tag spans, strictly (`f1`, which chooses the best
        checkpoint) and as conlleval counts (`f1_conlleval`).
        """
        labels = self.encoded.inputs["labels"]
        names = [*labels, "O", "O"]  # the last ones for a label that train does not have, or for none
        tags_spans = spans.are_iob2(labels)
        true, found, known = [], [], []
        loss = 0.0
        counts = spans.Counts()
        for batch, output in evaluated:
            tags, labelled = batch["tags"], batch["mask"] & (batch["tags"] != UNLABELLED)
            true.append(tags[labelled])
            found.append(output["tags"][labelled])
            loss += float(output["loss"].sum(dtype=np.float64))
            if "known" in batch:
                known.append(batch["known"][labelled])
            if tags_spans:
                for row in np.flatnonzero(batch["weight"] > 0):
                    real = batch["mask"][row]
                    counts.add(*([names[tag] for tag in of[row][real]] for of in (tags, output["tags"])))
        right = np.concatenate(true) == np.concatenate(found)
        metrics = {"accuracy": float(right.mean()), "loss": loss / len(right), "vectors": float(len(right))}
        if known:
            seen = np.concatenate(known).astype(bool)
            for name, where in (("known", seen), ("unknown", ~seen)):
                if where.any():
                    metrics[f"accuracy_{name}"] = float(right[where].mean())
        return metrics | (counts.scores() if tags_spans else {})

    def predict(self, model: Any, batch: Batch) -> dict[str, jax.Array]:
        """The label chosen for each vector, -1 at padding, and its probability by the logits alone."""
        logits, _ = model(batch, train=False)
        tags = model.head.decode(logits, batch["mask"])
        chosen = jnp.take_along_axis(jax.nn.softmax(logits), jnp.maximum(tags, 0)[..., None], axis=-1)
        return {"tags": tags, "probability": chosen[..., 0]}

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """The labels, one for each vector; in a line with blanks between."""
        real = prediction["tags"] >= 0
        labels = [inputs["labels"][tag] for tag in prediction["tags"][real]]
        probability = [round(float(p), 6) for p in prediction["probability"][real]]
        said = {name: record[name] for name in ("text", "tokens") if name in record}
        return {"line": " ".join(labels), **said, "labels": labels, "probability": probability}
