"""Weights of every channel by a learned bias of positions and the key: `attention.attention_free`."""

from typing import Any

from flax import nnx

import attention
from models.mechanisms.base import Array, Mechanism, constant, like


class AttentionFreeFull(Mechanism):
    """A bias for every pair of positions: `attention.attention_free_full`.

    Args:
        max_length: vectors in the longest sequence.
        is_causal: show each query only the keys up to its own position.
        block_size: queries taken at once, which changes speed and memory alone.
    """

    def __init__(
        self,
        *,
        max_length: int = 512,
        is_causal: bool = False,
        block_size: int = 32,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.max_length, self.is_causal, self.block_size = max_length, is_causal, block_size
        self.position_bias = constant(0.0, max_length, max_length)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        length = key.shape[-3]
        return attention.attention_free_full(
            query,
            key,
            value,
            position_bias=like(self.position_bias, query)[:length, :length],
            mask=mask,
            is_causal=self.is_causal,
            block_size=self.block_size,
        )


class AttentionFreeLocal(Mechanism):
    """A bias for the pairs of positions near each other: `attention.attention_free_local`.

    Args:
        max_length: vectors in the longest sequence.
        window: keys before and after each query on which the bias counts, (left, right).
        is_causal: show each query only the keys up to its own position.
        block_size: queries taken at once, which changes speed and memory alone.
    """

    def __init__(
        self,
        *,
        max_length: int = 512,
        window: tuple[int, int] = (15, 15),
        is_causal: bool = False,
        block_size: int = 32,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.max_length, self.window = max_length, window
        self.is_causal, self.block_size = is_causal, block_size
        self.position_bias = constant(0.0, max_length, max_length)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        length = key.shape[-3]
        return attention.attention_free_local(
            query,
            key,
            value,
            position_bias=like(self.position_bias, query)[:length, :length],
            window=self.window,
            mask=mask,
            is_causal=self.is_causal,
            block_size=self.block_size,
        )
