"""A softmax over the keys that hashing or sorting puts near a query."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx

import attention
from attention import reformer
from models.mechanisms.base import Array, Drawn, Mechanism, like
from models.rngs import named
from spec import Natural, Positive


class Reformer(Mechanism):
    """The keys in one's own bucket, where query and key are one vector: `attention.reformer_attention`.

    As published: the key is the query at length 1, and no position sees itself.

    Args:
        chunk_size: positions in a chunk of a bucket; a query sees its own chunk and the one before.
        is_causal: show each query only the keys up to its own position.
        rounds: hashings.
        buckets: buckets of each hashing, an even number, or 1.
    """

    reads: ClassVar[tuple[str, ...]] = ("query",)

    def __init__(
        self,
        *,
        chunk_size: int = 32,
        is_causal: bool = False,
        rounds: int = 2,
        buckets: int = 8,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.chunk_size, self.is_causal = chunk_size, is_causal
        key = named(rngs, "rotations").params()
        self.rotations = Drawn(reformer.draw_rotations(key, rounds, head_dim, buckets))
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        squares = jnp.sum(query * query, axis=-1, keepdims=True)
        nonzero = squares > 0  # and both branches of a `where` are differentiated
        key = jnp.where(nonzero, query * jax.lax.rsqrt(jnp.where(nonzero, squares, 1)), 0)
        return attention.reformer_attention(
            query,
            key,
            value,
            rotations=like(self.rotations, query),
            chunk_size=self.chunk_size,
            is_causal=self.is_causal,
            hide_self=True,
            mask=mask,
        )


class Sinkhorn(Mechanism):
    """One's own block and one that is sorted to it: `attention.sinkhorn_attention`.

    Args:
        block_size: positions in a block.
        temperature: what the scores of the blocks are divided by.
        iterations: how often columns and rows are balanced.
    """

    def __init__(
        self,
        *,
        block_size: int = 32,
        temperature: Positive = 0.75,
        iterations: Natural = 8,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.block_size, self.temperature, self.iterations = block_size, temperature, iterations
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        return attention.sinkhorn_attention(
            query,
            key,
            value,
            block_size=self.block_size,
            temperature=self.temperature,
            iterations=self.iterations,
            mask=mask,
        )
