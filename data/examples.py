"""Examples held in memory, and batches of them with padding: sentences, recordings, graphs."""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Self

import numpy as np

from data.ragged import Ragged

Batch = dict[str, np.ndarray]
Size = tuple[int, int]  # vectors and edges, or vectors and targets, of one example


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Sets of vectors, with whatever belongs to a set, to its vectors, and to edges between them.

    Attributes:
        fields: what there is once for each example, such as a label, `[n, ...]`.
        vectors: what there is once for each vector, such as a word or its tag; all of the same lengths.
        edges: what there is once for each edge of a graph, such as its sender; all of the same lengths.
        targets: what there is once for each place of a sequence to be made, such as its token; all of the
            same lengths. Examples have edges or targets, not both.
    """

    fields: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    vectors: Mapping[str, Ragged] = dataclasses.field(default_factory=dict)
    edges: Mapping[str, Ragged] = dataclasses.field(default_factory=dict)
    targets: Mapping[str, Ragged] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if self.edges and self.targets:
            raise ValueError(f"edges {', '.join(self.edges)} and targets {', '.join(self.targets)}: not both")
        if len({len(column) for column in self._columns().values()}) != 1:
            sizes = {name: len(column) for name, column in self._columns().items()}
            raise ValueError(f"every column must have an entry for each example, got {sizes}")
        for columns in (self.vectors, self.edges, self.targets):
            lengths = [column.lengths for column in columns.values()]
            if any(not np.array_equal(lengths[0], other) for other in lengths[1:]):
                raise ValueError(f"{', '.join(columns)} must have the same lengths in each example")

    def _columns(self) -> dict[str, np.ndarray | Ragged]:
        return {**self.fields, **self.vectors, **self.edges, **self.targets}

    def __len__(self) -> int:
        return len(next(iter(self._columns().values())))

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """Vectors and edges, or vectors and targets, of each example, int64 `[n, 2]`."""
        none = np.zeros(len(self), np.int64)
        sides = (self.vectors, self.edges or self.targets)
        columns = [next(iter(side.values()), None) for side in sides]
        return np.stack([none if column is None else column.lengths for column in columns], axis=1)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, shapes and contents, in hex."""
        digest = hashlib.sha256()
        for name, column in sorted(self._columns().items()):
            arrays = [column.values, column.offsets] if isinstance(column, Ragged) else [column]
            for array in arrays:
                digest.update(repr((name, array.dtype.str, array.shape)).encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def take(self, indices: np.ndarray) -> Self:
        """The examples at `indices`, in that order."""
        return dataclasses.replace(
            self,
            fields={name: column[indices] for name, column in self.fields.items()},
            vectors={name: column.take(indices) for name, column in self.vectors.items()},
            edges={name: column.take(indices) for name, column in self.edges.items()},
            targets={name: column.take(indices) for name, column in self.targets.items()},
        )

    def gather(self, indices: np.ndarray, size: Size) -> Batch:
        """A batch, every example padded with zeros to `size`.

        Args:
            indices: `[B]`; -1 stands for padding: an example without vectors or edges, whose fields are
                those of the first example.
            size: vectors T and edges or targets E of each example.

        Returns:
            Every column by its name, `[B, ...]`, `[B, T, ...]` or `[B, E, ...]`; `mask`, bool `[B, T]`,
            True for vectors that exist, and `edge_mask` or `target_mask`, bool `[B, E]`, where there are such
            columns; and `weight`, float32 `[B]`, 1 for examples and 0 for padding.
        """
        batch = {name: column[np.maximum(indices, 0)] for name, column in self.fields.items()}
        for columns, mask, length in (
            (self.vectors, "mask", size[0]),
            (self.edges, "edge_mask", size[1]),
            (self.targets, "target_mask", size[1]),
        ):
            batch |= {name: column.padded(indices, length) for name, column in columns.items()}
            if columns:
                batch[mask] = next(iter(columns.values())).existing(indices, length)
        return batch | {"weight": (indices >= 0).astype(np.float32)}
