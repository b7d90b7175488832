"""A softmax over a fixed pattern of keys, at less cost than over all of them.

None of them forms its weights; those are made anew, of the pattern as a mask, where they are asked for.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from flax import nnx

import attention
from attention import masks
from attention.block_sparse import draw_random_blocks
from models.mechanisms.base import Array, Drawn, Mechanism
from models.rngs import named
from spec import Natural


class Pattern(Mechanism):
    """A softmax of scaled dot products over the keys that a pattern shows.

    Attributes:
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"return_weights"})
    scale: float | None

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        """The mask of the pattern, `[*B 1 T S]`."""
        raise NotImplementedError

    def _weights(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None,
        bias: Array | None = None,
        query_offset: int | Array | None = None,
    ) -> Array:
        """The weights `[*B N T S]` of what is computed without them."""
        visible = self._pattern(query, key, query_offset)
        scaled = query if self.scale is None else query * (self.scale * query.shape[-1] ** 0.5)
        mask = visible if mask is None else visible & mask
        result: Any = attention.attend(scaled, key, value, mask=mask, bias=bias, return_weights=True)
        return result[1]


class Blockwise(Pattern):
    """Dot products over all keys, without storing the scores: `attention.blockwise_attention`.

    Args:
        is_causal: show each query only the keys up to its own position.
        window: keys before and after each query that it sees, (left, right); None: all.
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
        block_size: queries and keys in a block, which changes the speed alone; None: what is fast.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "return_weights", "query_offset"})

    def __init__(
        self,
        *,
        is_causal: bool = False,
        window: tuple[int, int] | None = None,
        scale: float | None = None,
        block_size: int | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.is_causal, self.window, self.scale, self.block_size = is_causal, window, scale, block_size
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None,
        bias: Array | None = None,
        query_offset: int | Array | None = None,
        return_weights: bool = False,
    ) -> Any:
        out = attention.blockwise_attention(
            query,
            key,
            value,
            mask=mask,
            bias=bias,
            is_causal=self.is_causal,
            query_offset=query_offset,
            window=self.window,
            scale=self.scale,
            block_size=self.block_size,
        )
        if not return_weights:
            return out
        return out, self._weights(query, key, value, mask=mask, bias=bias, query_offset=query_offset)

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        T, S, batch_dims = query.shape[-3], key.shape[-3], query.ndim - 3
        if self.window is None and not self.is_causal:
            return jnp.ones((1,) * batch_dims + (1, T, S), bool)
        left, right = self.window or (T + S, T + S)
        window = (left, 0 if self.is_causal else right)
        return masks.band(T, S, window, query_offset, batch_dims=batch_dims)


class Banded(Pattern):
    """A softmax over a window of keys: `attention.banded_attention`.

    Args:
        window: keys before and after each query that it sees, (left, right).
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
        block_size: queries handled together, which changes the speed alone; None: what is fast.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"return_weights", "query_offset"})

    def __init__(
        self,
        *,
        window: tuple[int, int] = (15, 15),
        scale: float | None = None,
        block_size: int | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.window, self.scale, self.block_size = window, scale, block_size
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None,
        query_offset: int | Array | None = None,
        return_weights: bool = False,
    ) -> Any:
        out = attention.banded_attention(
            query,
            key,
            value,
            window=self.window,
            mask=mask,
            query_offset=query_offset,
            scale=self.scale,
            block_size=self.block_size,
        )
        if not return_weights:
            return out
        return out, self._weights(query, key, value, mask=mask, query_offset=query_offset)

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        T, S = query.shape[-3], key.shape[-3]
        return masks.band(T, S, self.window, query_offset, batch_dims=query.ndim - 3)


class Dilated(Pattern):
    """A softmax over every so many keys of a window: `attention.dilated_attention`.

    Args:
        window: keys before and after each query that it sees, (left, right).
        dilation: how far apart these keys are.
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
    """

    def __init__(
        self,
        *,
        window: tuple[int, int] = (15, 15),
        dilation: int = 2,
        scale: float | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.window, self.dilation, self.scale = window, dilation, scale
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self, query: Array, key: Array, value: Array, *, mask: Array | None, return_weights: bool = False
    ) -> Any:
        out = attention.dilated_attention(
            query, key, value, window=self.window, dilation=self.dilation, mask=mask, scale=self.scale
        )
        return (out, self._weights(query, key, value, mask=mask)) if return_weights else out

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        T, batch_dims = query.shape[-3], query.ndim - 3
        return masks.dilated(T, T, self.window, dilation=self.dilation, batch_dims=batch_dims)


class Strided(Pattern):
    """The last keys and every so many before, causal: `attention.strided_attention`.

    Args:
        stride: how many of the last keys a query sees, and how far apart those before are.
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
    """

    def __init__(
        self,
        *,
        stride: int = 16,
        scale: float | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.stride, self.scale = stride, scale
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self, query: Array, key: Array, value: Array, *, mask: Array | None, return_weights: bool = False
    ) -> Any:
        out = attention.strided_attention(query, key, value, stride=self.stride, mask=mask, scale=self.scale)
        return (out, self._weights(query, key, value, mask=mask)) if return_weights else out

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        return masks.strided(query.shape[-3], stride=self.stride, batch_dims=query.ndim - 3)


class Longformer(Pattern):
    """A window, and positions that see all and are seen by all: `attention.longformer_attention`.

    Args:
        window: keys before and after each query that it sees, (left, right).
        global_positions: the positions that see all and are seen by all.
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
    """

    def __init__(
        self,
        *,
        window: tuple[int, int] = (15, 15),
        global_positions: tuple[int, ...] = (0,),
        scale: float | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.window, self.global_positions, self.scale = window, global_positions, scale
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self, query: Array, key: Array, value: Array, *, mask: Array | None, return_weights: bool = False
    ) -> Any:
        out = attention.longformer_attention(
            query,
            key,
            value,
            window=self.window,
            global_positions=jnp.asarray(self.global_positions, jnp.int32),
            mask=mask,
            scale=self.scale,
        )
        return (out, self._weights(query, key, value, mask=mask)) if return_weights else out

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        T, batch_dims = query.shape[-3], query.ndim - 3
        is_global = np.isin(np.arange(T), self.global_positions).reshape((1,) * batch_dims + (T,))
        band = masks.band(T, T, self.window, batch_dims=batch_dims)
        return band | masks.global_tokens(jnp.asarray(is_global))


class BigBird(Pattern):
    """Blocks in a window, global ones, and some drawn at random: `attention.bigbird_attention`.

    Args:
        block_size: positions in a block.
        max_length: vectors in the longest sequence.
        count: random blocks for each block, drawn once.
        window: blocks before and after its own one that a query sees, (left, right).
        global_blocks: blocks at the start that see all and are seen by all.
        scale: what dot products are multiplied by; None: `1 / sqrt(H)`.
    """

    def __init__(
        self,
        *,
        block_size: int = 16,
        max_length: int = 512,
        count: Natural = 3,
        window: tuple[int, int] = (1, 1),
        global_blocks: Natural = 1,
        scale: float | None = None,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.block_size, self.max_length, self.scale = block_size, max_length, scale
        self.window, self.global_blocks = window, global_blocks
        self.random_blocks = Drawn(
            draw_random_blocks(
                named(rngs, "random_blocks").params(),
                max_length,
                block_size=block_size,
                count=count,
                window=window,
                global_blocks=global_blocks,
            )
        )
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self, query: Array, key: Array, value: Array, *, mask: Array | None, return_weights: bool = False
    ) -> Any:
        out = attention.bigbird_attention(
            query,
            key,
            value,
            block_size=self.block_size,
            random_blocks=self._drawn(query),
            window=self.window,
            global_blocks=self.global_blocks,
            mask=mask,
            scale=self.scale,
        )
        return (out, self._weights(query, key, value, mask=mask)) if return_weights else out

    def _pattern(self, query: Array, key: Array, query_offset: int | Array | None) -> Array:
        T, batch_dims = query.shape[-3], query.ndim - 3
        drawn = self._drawn(query)
        M = len(drawn)
        first = (jnp.arange(M) < self.global_blocks)[None]
        listed = jnp.any(drawn[:, :, None] == jnp.arange(M).reshape(1, 1, M), axis=1)
        blocks = masks.band(M, M, self.window) | masks.global_tokens(first) | listed[None, None]
        spread = jnp.repeat(jnp.repeat(blocks, self.block_size, axis=-2), self.block_size, axis=-1)
        return spread[..., :T, :T].reshape((1,) * batch_dims + (1, T, T))

    def _drawn(self, query: Array) -> Array:
        """The rows of the blocks that there are."""
        return self.random_blocks[...][: -(-query.shape[-3] // self.block_size)]
