"""One label for a sequence of vectors: sentiment, the kind of a question, a spoken digit, a speaker."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from data.speech import load as speech
from data.text import load as text
from models.losses import cross_entropy
from models.set_model import CLASSIFIER
from spec import Block, Registry
from tasks.sequences import SequenceTask
from tasks.task import Batch, Evaluated, Inputs, Record, Sums

LABELLED = Registry("data set", {"text": text.labelled, "speech": speech.labelled})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequenceClassification(SequenceTask):
    """A sequence in, one of a set of labels out; cross-entropy, and the penalty of the pooling.

    Attributes:
        dataset: which sequences.
        model: what tells their labels.
    """

    per = "set"
    datasets = LABELLED
    best_metric = "accuracy"
    dataset: Annotated[Block, LABELLED] = dataclasses.field(compare=False)
    model: Annotated[Block, CLASSIFIER] = dataclasses.field(compare=False)

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The classifier for the data set's columns and labels."""
        return CLASSIFIER.build(
            self.model,
            "config.model",
            columns=self.vectors.columns(inputs),
            num_outputs=len(inputs["labels"]),
            rngs=rngs,
        )

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Weighted sum of the loss, the weight, and the sum for the training accuracy."""
        logits, penalty = model(batch, train=True, rngs=rngs)
        losses = cross_entropy(logits, batch["label"], self.label_smoothing) + penalty
        weight = batch["weight"]
        correct = jnp.where(logits.argmax(-1) == batch["label"], weight, 0)
        return (losses * weight).sum(), weight.sum(), {"accuracy": correct.sum()}

    def evaluate(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label of each example, and its loss without smoothing."""
        logits, _ = model(batch, train=False)
        known = batch["label"] >= 0  # one that train does not have is an error, and no loss
        losses = cross_entropy(logits, jnp.where(known, batch["label"], 0))
        return {"label": logits.argmax(-1), "loss": jnp.where(known, losses, 0)}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Accuracy, the mean of the F1 of each label, and mean loss over every example of a split."""
        from sklearn.metrics import f1_score

        true, found = [], []
        loss = 0.0
        for batch, output in evaluated:
            real = batch["weight"] > 0
            true.append(batch["label"][real])
            found.append(output["label"][real])
            loss += float(output["loss"][real].sum(dtype=np.float64))
        labels, chosen = np.concatenate(true), np.concatenate(found)
        return {
            "accuracy": float((labels == chosen).mean()),
            "macro_f1": float(f1_score(labels, chosen, average="macro", zero_division=0)),
            "loss": loss / len(labels),
            "examples": float(len(labels)),
        }

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """The likeliest label and the probability of each."""
        logits, _ = model(batch, train=False)
        return {"label": logits.argmax(-1), "probability": jax.nn.softmax(logits)}

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """The label, and how probable it is."""
        said = {name: record[name] for name in ("text", "tokens") if name in record}
        if said and not any(map(str.strip, said.values() if "text" in said else said["tokens"])):
            return {"line": "", **said, "label": None, "probability": None}
        label = int(prediction["label"])
        probability = round(float(prediction["probability"][label]), 6)
        name = inputs["labels"][label]
        return {"line": name, **said, "label": name, "probability": probability}
