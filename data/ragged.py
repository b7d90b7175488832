"""Arrays of different lengths in one, laid end to end: how sentences, recordings and graphs lie in memory."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Ragged:
    """n arrays that differ in their first axis alone.

    Attributes:
        values: all of them end to end, `[total, ...]`.
        offsets: where each begins, and where the last one ends, int64 `[n + 1]`, rising from 0 to total.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self):
        offsets = self.offsets
        if offsets.ndim != 1 or not len(offsets) or offsets[0] or (np.diff(offsets) < 0).any():
            raise ValueError(f"offsets must rise from 0, [n + 1], not {offsets[:10]} of {offsets.shape}")
        if offsets[-1] != len(self.values):
            raise ValueError(f"offsets end at {offsets[-1]}, but there are {len(self.values)} values")

    @classmethod
    def of(cls, arrays: Iterable[Any], dtype: Any, shape: Sequence[int] = ()) -> "Ragged":
        """From sequences of entries, each of `shape`."""
        parts = [np.asarray(array, dtype).reshape(-1, *shape) for array in arrays]
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return cls(np.concatenate([np.empty((0, *shape), dtype), *parts]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """One of the arrays."""
        if not 0 <= index < len(self):
            raise IndexError(f"{index} is not within 0 to {len(self) - 1}")
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """How long each is, int64 `[n]`."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> "Ragged":
        """The arrays at `indices`, in that order."""
        lengths = self.lengths[indices]
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        starts = np.repeat(self.offsets[:-1][indices] - offsets[:-1], lengths)
        return Ragged(self.values[starts + np.arange(offsets[-1])], offsets)

    def padded(self, indices: np.ndarray, size: int) -> np.ndarray:
        """The arrays at `indices`, filled up with zeros to one length; -1 stands for an empty one.

        Returns:
            `[B, size, ...]`.

        Raises:
            ValueError: one of them is longer than `size`.
        """
        exist = self.existing(indices, size)
        where = self.offsets[np.maximum(indices, 0)][:, None] + np.arange(size)
        out = np.zeros((*exist.shape, *self.values.shape[1:]), self.values.dtype)
        out[exist] = self.values[where[exist]]
        return out

    def existing(self, indices: np.ndarray, size: int) -> np.ndarray:
        """Which entries of `padded` are real, bool `[B, size]`."""
        lengths = np.where(indices < 0, 0, self.lengths[indices])
        if lengths.size and lengths.max() > size:
            raise ValueError(f"an array of length {lengths.max()} does not fit in {size}")
        return np.arange(size) < lengths[:, None]
