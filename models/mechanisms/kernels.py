"""A kernel in place of a softmax, `phi(q) . phi(k)`: linear in the length."""

import math
from typing import Annotated, Any, ClassVar

from flax import nnx

import attention
from attention.performer import orthogonal_projection
from models.mechanisms.base import Array, Drawn, Mechanism, like
from models.rngs import named
from spec import derived


class Linear(Mechanism):
    """The kernel of `elu(x) + 1`: `attention.linear_attention`.

    Args:
        is_causal: show each query only the keys up to its own position.
        block_size: positions that the causal form takes at once, which changes the speed alone.
    """

    by_place: ClassVar[bool] = True

    def __init__(
        self,
        *,
        is_causal: bool = False,
        block_size: int = 128,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.is_causal, self.block_size = is_causal, block_size
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        return attention.linear_attention(
            query, key, value, mask=mask, is_causal=self.is_causal, block_size=self.block_size
        )


class Performer(Mechanism):
    """A softmax estimated from positive random features: `attention.performer_attention`.

    Args:
        features: random features, drawn once; by default `H ln H`, what the paper's bound asks for.
        is_causal: show each query only the keys up to its own position.
        block_size: positions that the causal form takes at once, which changes the speed alone.
    """

    by_place: ClassVar[bool] = True

    def __init__(
        self,
        *,
        features: Annotated[int, derived(lambda head_dim: max(round(head_dim * math.log(head_dim)), 1))],
        is_causal: bool = False,
        block_size: int = 128,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.is_causal, self.block_size = is_causal, block_size
        key = named(rngs, "projection").params()
        self.projection = Drawn(orthogonal_projection(key, features, head_dim))
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(self, query: Array, key: Array, value: Array, *, mask: Array | None) -> Any:
        return attention.performer_attention(
            query,
            key,
            value,
            projection=like(self.projection, query),
            mask=mask,
            is_causal=self.is_causal,
            block_size=self.block_size,
        )


class Cosformer(Mechanism):
    """The kernel of a ReLU, times a cosine of the distance: `attention.cosformer_attention`.

    Args:
        max_length: vectors in the longest sequence, the distance at which a weight is 0.
        is_causal: show each query only the keys up to its own position.
        block_size: positions that the causal form takes at once, which changes the speed alone.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"query_offset"})
    max_length: int

    def __init__(
        self,
        *,
        max_length: int = 512,
        is_causal: bool = False,
        block_size: int = 128,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.max_length, self.is_causal, self.block_size = max_length, is_causal, block_size
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None,
        query_offset: int | Array | None = None,
    ) -> Any:
        return attention.cosformer_attention(
            query,
            key,
            value,
            max_length=self.max_length,
            query_offset=query_offset,
            mask=mask,
            is_causal=self.is_causal,
            block_size=self.block_size,
        )
