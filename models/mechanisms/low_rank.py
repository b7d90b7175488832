"""A softmax over fewer keys than there are: mixtures of them, or landmarks."""

from typing import Any

from flax import nnx

import attention
from models.mechanisms.base import Array, Mechanism, like, normal
from spec import Natural


class Linformer(Mechanism):
    """Keys and values projected along the length: `attention.linformer_attention`.

    Args:
        max_length: vectors in the longest sequence.
        rank: mixtures of keys that a query sees.
    """

    def __init__(
        self,
        *,
        max_length: int = 512,
        rank: int = 64,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.max_length = max_length
        self.key_projection = normal(rngs, "key_projection", (max_length, rank), fan=max_length)
        self.value_projection = normal(rngs, "value_projection", (max_length, rank), fan=max_length)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        length = key.shape[-3]
        return attention.linformer_attention(
            query,
            key,
            value,
            key_projection=like(self.key_projection, query)[:length],
            value_projection=like(self.value_projection, query)[:length],
            mask=mask,
        )


class Nystromformer(Mechanism):
    """A softmax estimated from means of queries and keys: `attention.nystromformer_attention`.

    Args:
        landmarks: segments of the sequence that means are taken of.
        iterations: steps towards the pseudo-inverse.
    """

    def __init__(
        self,
        *,
        landmarks: int = 32,
        iterations: Natural = 6,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.landmarks, self.iterations = landmarks, iterations
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        return attention.nystromformer_attention(
            query, key, value, landmarks=self.landmarks, iterations=self.iterations, mask=mask
        )
