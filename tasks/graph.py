"""Graphs: a label for every node, or a label or numbers for the whole graph."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from data.graph.encoder import GraphEncoder
from data.graph.load import graphs
from data.graph.readers import folder
from data.graph.types import Example, Graph, Molecule, undirected
from data.splits import Splits
from errors import UserError, unknown
from models.graphs.edges import Edges
from models.graphs.model import GRAPH_MODEL
from models.losses import cross_entropy
from spec import Block, Natural, NonNegative, call, derived
from tasks import bucketed
from tasks.task import Batch, Encoded, Evaluated, Inputs, Record, Sums, TaskData

GRAPHS = call(graphs)
GRAPH_ENCODING = call(GraphEncoder.fit, given=("train",))

# Which metrics can choose the best checkpoint, the usual one first.
_CLASSES = ("accuracy", "roc_auc", "loss")
_NUMBERS = ("rmse", "mae", "loss")
_HIGHER = ("accuracy", "roc_auc")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphPrediction:
    """A graph in; out comes a label for each node, or for the graph, or numbers for the graph.

    Which of these, the data says. Labels are learned by cross-entropy and measured by accuracy and, where
    there are two, the area under the ROC curve; numbers are learned by squared error, standardised, and
    measured by RMSE and MAE in their own unit.

    A set about nodes is one graph: its loss is over the nodes that are labelled in the batch, and all other
    nodes are there to be heard.

    Attributes:
        l2: penalty on the kernels, `l2 / 2 * sum(kernel ** 2)`, added to the mean loss. Unlike the
            optimiser's decoupled weight decay it goes through the moments, as in Velickovic et al. 2018.
        choose_by: which metric on validation chooses the checkpoint: of classes accuracy, loss or, of two,
            roc_auc; of numbers rmse, mae or loss. Accuracy on a small validation part is too coarse.
        batch_nodes: nodes per update, padding included; a larger graph is a batch alone, as the one of a set
            about nodes is.
        evaluation_batch_nodes: the same for evaluation and for new input.
        buckets: how many sizes of graphs to pad to, at most.
        dataset: which graphs.
        encoding: how their features become numbers.
        model: what answers.
        seed: of the order of graphs.
    """

    l2: NonNegative = 0.0
    choose_by: Literal["loss", "accuracy", "roc_auc", "rmse", "mae"] = dataclasses.field(
        default="loss", compare=False
    )
    batch_nodes: int = dataclasses.field(default=1024, compare=False)
    evaluation_batch_nodes: Annotated[int, derived(lambda batch_nodes: 8 * batch_nodes)] = dataclasses.field(
        compare=False
    )
    buckets: int = dataclasses.field(default=3, compare=False)
    dataset: Annotated[Block, GRAPHS] = dataclasses.field(compare=False)
    encoding: Annotated[Block, GRAPH_ENCODING] = dataclasses.field(compare=False)
    model: Annotated[Block, GRAPH_MODEL] = dataclasses.field(compare=False)
    seed: Natural = dataclasses.field(default=0, compare=False)

    @functools.cached_property
    def splits(self) -> Splits[Sequence[Example]]:
        """The graphs, in memory."""
        return GRAPHS.build(self.dataset, "config.dataset")

    @functools.cached_property
    def measured(self) -> GraphEncoder:
        """What numbers mean, measured on the training part."""
        return GRAPH_ENCODING.build(self.encoding, "config.encoding", train=self.splits.train)

    @property
    def best_metric(self) -> str:
        """The metric of the config."""
        allowed: tuple[str, ...] = _CLASSES if self.measured.labels else _NUMBERS
        allowed = tuple(name for name in allowed if name != "roc_auc" or len(self.measured.labels) == 2)
        if self.choose_by not in allowed:
            raise unknown("config.choose_by", self.choose_by, allowed)
        return self.choose_by

    @property
    def lower_is_better(self) -> bool:
        """True for losses and errors."""
        return self.best_metric not in _HIGHER

    def data(self) -> TaskData:
        """Three parts as batches of graphs of like sizes."""
        _ = self.best_metric  # a wrong one is told before training, not after
        encoding = self.measured
        splits = Splits(*(encoding.encode(split) for split in vars(self.splits).values()))
        return bucketed.task_data(
            Encoded(splits, {"encoding": encoding.to_json()}),
            batch_tokens=self.batch_nodes,
            evaluation_batch_tokens=self.evaluation_batch_nodes,
            buckets=self.buckets,
            seed=self.seed,
        )

    def make_model(self, inputs: Inputs, rngs: nnx.Rngs) -> nnx.Module:
        """The model for the data set's features and answers."""
        encoding = GraphEncoder.from_json(inputs["encoding"])
        return GRAPH_MODEL.build(
            self.model,
            "config.model",
            node_dim=encoding.node_dim,
            edge_dim=encoding.edge_dim,
            num_outputs=encoding.outputs,
            per_node=encoding.per_node,
            rngs=rngs,
        )

    def loss(self, model: nnx.Module, batch: Batch, *, rngs: nnx.Rngs) -> tuple[jax.Array, jax.Array, Sums]:
        """Weighted sum of the losses, the weight, and the sum for the training accuracy or RMSE."""
        outputs = _outputs(model, batch, train=True, rngs=rngs)
        losses, weight = _losses(outputs, batch)
        total = jnp.where(weight > 0, losses, 0).sum()
        total = total + weight.sum() * 0.5 * self.l2 * _squared_kernels(model)
        if "target" in batch:
            return total, weight.sum(), {}
        correct = outputs.argmax(-1) == _labels(batch)
        return total, weight.sum(), {"accuracy": jnp.where(correct, weight, 0).sum()}

    def evaluate(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """Outputs, losses without penalty, and which of them count."""
        outputs = _outputs(model, batch)
        losses, weight = _losses(outputs, batch)
        return {"output": outputs, "loss": losses, "weight": weight}

    def metrics(self, evaluated: Iterable[Evaluated]) -> dict[str, float]:
        """Accuracy, and ROC AUC of two classes; or RMSE and MAE in the unit of the target."""
        outputs, losses, asked = [], [], []
        for batch, found in evaluated:
            real = found["weight"] > 0
            outputs.append(found["output"][real].astype(np.float64))
            losses.append(found["loss"][real].astype(np.float64))
            asked.append(np.asarray(batch["target"] if "target" in batch else _labels(batch))[real])
        output, true = np.concatenate(outputs), np.concatenate(asked)
        metrics = {"loss": float(np.concatenate(losses).mean()), "examples": float(len(true))}
        if not self.measured.labels:
            errors = (output - true) * np.array(self.measured.target_std)
            return {
                "rmse": float(np.sqrt((errors**2).mean())),
                "mae": float(np.abs(errors).mean()),
                **metrics,
            }
        metrics = {"accuracy": float((output.argmax(-1) == true).mean()), **metrics}
        if len(self.measured.labels) == 2:
            from sklearn.metrics import roc_auc_score  # takes longer to import than a command may wait

            # Without both classes there is no curve; one half is what chance gives.
            both = len(np.unique(true)) == 2
            metrics["roc_auc"] = float(roc_auc_score(true, output[:, 1] - output[:, 0])) if both else 0.5
        return metrics

    def encode(self, records: Sequence[Record], inputs: Inputs) -> Iterator[tuple[np.ndarray, Batch]]:
        """New graphs, as the training part was given. Empty records are passed over."""
        encoding = GraphEncoder.from_json(inputs["encoding"])
        directed = self.dataset["is_directed"]
        given = [_example(record, encoding, directed) for record in records]
        where = np.flatnonzero([example is not None for example in given])
        examples = encoding.encode([example for example in given if example is not None])
        for rows, batch in bucketed.new_input(examples, self.evaluation_batch_nodes):
            yield np.where(rows < 0, -1, where[rows]), batch

    def predict(self, model: nnx.Module, batch: Batch) -> dict[str, jax.Array]:
        """What the model gives for each node or graph."""
        return {"output": _outputs(model, batch)}

    def answer(self, record: Record, prediction: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, Any]:
        """A number; a label and its probability; or the id and label of each node, a line for each."""
        encoding = GraphEncoder.from_json(inputs["encoding"])
        output = np.asarray(prediction["output"], np.float64)
        if not encoding.labels:
            value = output * np.array(encoding.target_std) + np.array(encoding.target_mean)
            return {
                "line": "\t".join(f"{v:.6g}" for v in value),
                "value": [round(float(v), 6) for v in value],
            }
        powers = np.exp(output - output.max(-1, keepdims=True))
        probability = powers.max(-1) / powers.sum(-1)
        labels = [encoding.labels[index] for index in np.atleast_1d(output.argmax(-1))]
        if not encoding.per_node:
            return {"line": labels[0], "label": labels[0], "probability": round(float(probability), 6)}
        path = _path(record)
        _, ids = folder.unlabelled(Path(path), is_directed=self.dataset["is_directed"])
        # predict.py writes the path before the first line alone.
        between = f"\n{path}\t" if "path" in record else "\n"
        return {
            "line": between.join(f"{node}\t{label}" for node, label in zip(ids, labels, strict=False)),
            "labels": dict(zip(ids, labels, strict=False)),
        }


def _outputs(
    model: nnx.Module, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None
) -> jax.Array:
    """What the model gives: `[B T K]` for nodes, `[B K]` for graphs."""
    edges = Edges(batch["senders"], batch["receivers"], batch["edge_mask"], batch.get("edges"))
    return model(batch["nodes"], batch["mask"], edges=edges, train=train, rngs=rngs)


def _labels(batch: Batch) -> Any:
    return batch["tags"] if "tags" in batch else batch["label"]


def _losses(outputs: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Loss and weight of each graph or node; a node counts if it exists and has a label."""
    if "target" in batch:
        return ((outputs - batch["target"]) ** 2).mean(-1), batch["weight"]
    labels = _labels(batch)
    weight = batch["weight"]
    if "tags" in batch:
        weight = (batch["mask"] & (labels >= 0)).astype(outputs.dtype)
    return cross_entropy(outputs, jnp.maximum(labels, 0)), weight


def _squared_kernels(model: nnx.Module) -> jax.Array:
    """The sum of squares of all kernels; biases and normalisations are left alone."""
    leaves = jax.tree_util.tree_leaves_with_path(nnx.state(model, nnx.Param))
    kernels = [leaf for path, leaf in leaves if "kernel" in jax.tree_util.keystr(path)]
    return sum(((kernel**2).sum() for kernel in kernels), start=jnp.zeros(()))


def _path(record: Record) -> str:
    return str(record.get("path") or record.get("text") or "")


def _example(record: Record, encoding: GraphEncoder, is_directed: bool) -> Example | None:
    """New input: a folder, a SMILES, or `{"tags": [...], "edges": [[sender, receiver], ...]}`."""
    where = str(record.get("where", "a record"))
    if encoding.per_node:
        path = _path(record).strip()
        if not path:
            return None
        return dataclasses.replace(
            folder.unlabelled(Path(path), is_directed=is_directed)[0], where=f"{where}: {path}"
        )
    if encoding.molecules:
        smiles = record.get("smiles", record.get("text"))
        if not isinstance(smiles, str):
            raise UserError(f"{where}: a molecule is needed, as a line of SMILES or in a field 'smiles'")
        return Molecule(smiles.strip(), where=where) if smiles.strip() else None
    if record.get("text") == "":
        return None
    try:
        tags, pairs = [str(tag) for tag in record["tags"]], np.array(record["edges"], np.int64).reshape(-1, 2)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{where}: a graph is needed, by --format=jsonl, as "
            '{"tags": [a word per node], "edges": [[node, node], ...]} with nodes counted from 0'
        ) from None
    if not tags or pairs.min(initial=0) < 0 or pairs.max(initial=0) >= len(tags):
        raise UserError(f"{where}: edges must join the nodes 0 to {len(tags) - 1}")
    senders, receivers = undirected(pairs)
    edges = np.zeros((len(senders), encoding.edge_dim), np.float32)
    features = np.zeros((len(tags), encoding.num_features), np.float32)
    return Graph(features, senders, receivers, edges, tags=tags, where=where)
