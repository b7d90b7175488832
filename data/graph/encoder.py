"""From graphs and molecules to numbers, by what was measured on those of train alone."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

import errors
from data.examples import Examples
from data.graph import smiles
from data.graph.types import Example, Graph, Molecule
from data.ragged import Ragged

Scaling = Literal["none", "rows", "standard"]


@dataclasses.dataclass(frozen=True)
class GraphEncoder:
    """Graphs to `data.examples.Examples`; made by `fit`, kept as JSON in a run's folder.

    Attributes:
        molecules: whether examples are molecules, to be turned into graphs.
        per_node: whether every node has a label, rather than the graph.
        tags: the words on nodes that are known; any other is none of them.
        num_features: what is measured of each node.
        edge_dim: what is measured of each edge.
        scaling: of measured features: "none"; "rows", so that a node's sum to 1; or "standard", to mean
            0 and deviation 1 over all training nodes.
        feature_mean: for "standard", one for each feature.
        feature_std: likewise.
        labels: the classes, in the order of the outputs; none where numbers are asked for.
        target_mean: of each number that is asked for, in its own unit.
        target_std: likewise.
    """

    molecules: bool
    per_node: bool
    tags: tuple[str, ...]
    num_features: int
    edge_dim: int
    scaling: Scaling
    feature_mean: tuple[float, ...]
    feature_std: tuple[float, ...]
    labels: tuple[str, ...]
    target_mean: tuple[float, ...]
    target_std: tuple[float, ...]

    @classmethod
    def fit(cls, train: Sequence[Example], *, scaling: Scaling = "none") -> "GraphEncoder":
        """The encoder for these training graphs.

        Args:
            train: one example at least, all of a kind.
            scaling: of node features: none, rows that sum to 1, or standard, to mean 0 and deviation 1.

        Raises:
            errors.UserError: the scaling is unknown, or a molecule can't be read.
        """
        if scaling not in get_args(Scaling):
            raise errors.unknown("scaling", scaling, get_args(Scaling))
        graphs = [_graph(example) for example in train]
        features = np.concatenate([graph.features for graph in graphs])
        mean = std = np.zeros(0)
        if scaling == "standard":
            mean, std = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
        per_node = bool(graphs[0].labels)
        asked = [label for graph in graphs for label in (graph.labels if per_node else [graph.target])]
        numbers = np.array([target for target in asked if isinstance(target, tuple)], np.float64)
        target_mean = numbers.mean(axis=0) if len(numbers) else np.zeros(0)
        target_std = numbers.std(axis=0) if len(numbers) else np.zeros(0)
        return cls(
            molecules=isinstance(train[0], Molecule),
            per_node=per_node,
            tags=tuple(sorted({tag for graph in graphs for tag in graph.tags})),
            num_features=features.shape[1],
            edge_dim=graphs[0].edges.shape[1],
            scaling=scaling,
            feature_mean=tuple(mean.tolist()),
            feature_std=_not_zero(std),
            labels=tuple(sorted({label for label in asked if isinstance(label, str)})),
            target_mean=tuple(target_mean.tolist()),
            target_std=_not_zero(target_std),
        )

    @property
    def node_dim(self) -> int:
        """Width of the nodes."""
        return len(self.tags) + self.num_features

    @property
    def outputs(self) -> int:
        """How many numbers a model must give."""
        return len(self.labels) or len(self.target_mean)

    def encode(self, given: Sequence[Example]) -> Examples:
        """Graphs as arrays: `nodes`, `senders`, `receivers`, `edges`, and what is asked, if it is known.

        Targets are standardised, by those of train.

        Raises:
            errors.UserError: nodes or edges of another width, a label that no training example has, or a
                molecule that can't be read.
        """
        graphs = [_graph(example) for example in given]
        for graph in graphs:
            widths = (graph.features.shape[1], graph.edges.shape[1])
            if widths != (self.num_features, self.edge_dim):
                raise errors.UserError(
                    f"{graph.where}: {widths[0]} features per node and {widths[1]} per edge; there must be "
                    f"{self.num_features} and {self.edge_dim}, as in training"
                )
        vectors = {"nodes": Ragged.of(map(self._nodes, graphs), np.float32, (self.node_dim,))}
        edges = {
            "senders": Ragged.of((graph.senders for graph in graphs), np.int32),
            "receivers": Ragged.of((graph.receivers for graph in graphs), np.int32),
        }
        if self.edge_dim:
            edges["edges"] = Ragged.of((graph.edges for graph in graphs), np.float32, (self.edge_dim,))
        fields: dict[str, np.ndarray] = {}
        if self.per_node:
            if all(graph.labels for graph in graphs):
                labels = ([self._index(label, graph) for label in graph.labels] for graph in graphs)
                vectors["tags"] = Ragged.of(labels, np.int32)
        elif all(graph.target is not None for graph in graphs):
            if self.labels:
                fields["label"] = np.array([self._index(graph.target, graph) for graph in graphs], np.int32)
            else:
                values = np.array([graph.target for graph in graphs], np.float64)
                values = (values - self.target_mean) / self.target_std
                fields["target"] = values.astype(np.float32)
        return Examples(fields, vectors, edges)

    def to_json(self) -> dict[str, Any]:
        """As JSON can write it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "GraphEncoder":
        """From what `to_json` gave, read back."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()
        }
        return cls(**fields)

    def _nodes(self, graph: Graph) -> np.ndarray:
        features = graph.features
        if self.scaling == "rows":
            features = features / np.maximum(features.sum(axis=1, keepdims=True), 1e-12)
        elif self.scaling == "standard":
            features = (features - np.array(self.feature_mean)) / np.array(self.feature_std)
        if not self.tags:
            return features
        place = {tag: column for column, tag in enumerate(self.tags)}
        tags = np.zeros((len(graph), len(self.tags)), np.float32)
        for node, tag in enumerate(graph.tags):
            if tag in place:
                tags[node, place[tag]] = 1
        return np.concatenate([tags, features], axis=1)

    def _index(self, label: Any, graph: Graph) -> int:
        if label is None:
            return -1
        if label not in self.labels:
            raise errors.UserError(
                f"{graph.where}: label {label!r} occurs in no training example; "
                f"those that do: {', '.join(self.labels)}"
            )
        return self.labels.index(label)


def _graph(example: Example) -> Graph:
    return smiles.graph(example) if isinstance(example, Molecule) else example


def _not_zero(std: np.ndarray) -> tuple[float, ...]:
    """What never changes has no deviation to divide by."""
    return tuple(float(value) if value > 1e-6 else 1.0 for value in std)
