"""Sparse attention with global positions: Longformer's over single positions, BigBird's over blocks.

A few positions see everything and are seen by all, so that any two positions are two steps apart; all
others see a window, and in BigBird a few random blocks. Both are the attention of `attend` under a mask
and never form it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention.banded import window_part, window_reach
from attention.internals import contract, headwise, softmax_parts


@contract.primitive("window", "scale")
def longformer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    window: tuple[int, int],
    global_positions: Int[Array, "..."],
    mask: Bool[Array, "*#B 1 1 #T"] | None = None,
    scale: float | None = None,
) -> Float[Array, "*B T N V"]:
    """Sliding window and global positions, `out[t] = sum_s softmax(scale * q[t] . k[s]) v[s]` over seen s.

    Query t sees key s if `-left <= s - t <= right`, or if t or s is global: equal to `attend` with
    `masks.band(...) | masks.global_tokens(...)`. Head n of the query reads key and value head
    `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        window: `(left, right)`, how many keys before and after its own position a query sees.
        global_positions: the g global ones, `[g]` for all sequences alike or `[*B g]`. A position listed
            twice counts once, one outside [0, T) not at all: fill lists of different lengths with -1.
        mask: boolean, True for the keys that exist, `[*B 1 1 T]`.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for queries that see no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries, or a negative side.
        TypeError: dtypes that differ, a window that is not a pair of integers, or positions that are
            not integers.

    Cost: O(T (w + g)) time and memory, w = left + right.

    Beltagy, Peters and Cohan (2020), "Longformer: the long-document transformer". There the global
    positions have projections of their own, which are the caller's business here.
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("longformer_attention", shape)
    contract.check_key_mask("longformer_attention", mask, shape)
    *batch, _, T, _ = shape
    left, right = (min(side, T) for side in contract.check_window(window))
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    listed = jnp.asarray(global_positions)
    contract.check_integers("global_positions", listed)
    if listed.ndim == 0 or listed.shape[:-1] not in ((), tuple(batch)):
        raise ValueError(
            f"global_positions must be [g] or [*B g] with batch axes {tuple(batch)}, "
            f"got {listed.shape} for scores {shape}"
        )
    listed = jnp.broadcast_to(_listed_once(listed.astype(jnp.int32), T), (*batch, listed.shape[-1]))

    def is_global(listed: Int[Array, "g"]) -> Bool[Array, "T"]:
        return jnp.zeros(T, bool).at[listed].set(True, mode="drop")

    def form(
        query: Float[Array, "G T H"],
        key: Float[Array, "T H"],
        value: Float[Array, "T V"],
        shown: Bool[Array, "T"],
        listed: Int[Array, "g"],
    ) -> Float[Array, "G T V"]:
        near = window_part(query, key, value, shown & ~is_global(listed), (left, right), scale)
        at = jnp.minimum(listed, T - 1)
        usable = shown[at] & (listed < T)
        far = softmax_parts.part(query, key[at], value[at], usable[:, None, None], scale)
        out = softmax_parts.softmax(near, far)
        from_global = softmax_parts.softmax(
            softmax_parts.part(query[:, at], key, value, shown[:, None, None], scale)
        )
        return out.at[:, listed].set(from_global, mode="drop")

    def reach(marked: Bool[Array, "T"], listed: Int[Array, "g"]) -> Bool[Array, "T"]:
        everywhere = is_global(listed)
        near = window_reach(marked, (left, right), T)
        return near | jnp.any(marked & everywhere) | (everywhere & jnp.any(marked))

    return headwise.attend(form, reach, query, key, value, mask, listed)


@contract.primitive("block_size", "window", "global_blocks", "scale")
def bigbird_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    block_size: int,
    random_blocks: Int[Array, "M R"],
    window: tuple[int, int] = (1, 1),
    global_blocks: int = 1,
    mask: Bool[Array, "*#B 1 1 #T"] | None = None,
    scale: float | None = None,
) -> Float[Array, "*B T N V"]:
    """Window, global and random blocks, `out[t] = sum_s softmax(scale * q[t] . k[s]) v[s]` over seen s.

    The T positions make M blocks of b. A query in block i sees the keys of block j if
    `-left <= j - i <= right`, if i or j is among the first g blocks, or if j is in `random_blocks[i]`:
    equal to `attend` with that mask. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        block_size: b; the last block may be shorter.
        random_blocks: what further blocks each block sees, `[M R]`, made by `draw_random_blocks` or by
            hand. The pattern is an argument, so training and evaluation have the same one. A block listed
            twice counts once, one outside [0, M) not at all.
        window: `(left, right)`, how many blocks before and after its own one a query sees.
        global_blocks: g, how many blocks at the start see everything and are seen by all.
        mask: boolean, True for the keys that exist, `[*B 1 1 T]`.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for queries that see no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries, a size that is too small.
        TypeError: dtypes that differ, or a window that is not a pair of integers.

    Cost: O(T b (left + right + g + R)) time and memory.

    Zaheer et al. (2020), "Big Bird: transformers for longer sequences".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("bigbird_attention", shape)
    contract.check_key_mask("bigbird_attention", mask, shape)
    T = shape[-1]
    M, b = _count_blocks(T, block_size), block_size
    left, right = (min(side, M) for side in contract.check_window(window))
    if global_blocks < 0:
        raise ValueError(f"global_blocks must not be negative, got {global_blocks}")
    g = min(global_blocks, M)
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    drawn = jnp.asarray(random_blocks)
    contract.check_integers("random_blocks", drawn)
    if drawn.ndim != 2 or len(drawn) != M:
        raise ValueError(
            f"random_blocks must be [M R] with a row for each of {M} blocks of {b}, got {drawn.shape} "
            f"for scores {shape}"
        )
    near = np.arange(M, dtype=np.int32)[:, None] + np.arange(-left, right + 1, dtype=np.int32)
    first = np.broadcast_to(np.arange(g, dtype=np.int32), (M, g))
    listed = jnp.concatenate([jnp.asarray(near), jnp.asarray(first), drawn.astype(jnp.int32)], axis=1)
    listed = _listed_once(listed, M)
    at, usable = jnp.minimum(listed, M - 1), listed < M

    def in_blocks(x: Array) -> Array:
        return jnp.pad(x, [(0, M * b - T)] + [(0, 0)] * (x.ndim - 1)).reshape(M, b, *x.shape[1:])

    def form(
        query: Float[Array, "G T H"],
        key: Float[Array, "T H"],
        value: Float[Array, "T V"],
        shown: Bool[Array, "T"],
    ) -> Float[Array, "G T V"]:
        G = len(query)
        rows = jnp.swapaxes(in_blocks(jnp.swapaxes(query, 0, 1)), 1, 2)
        keys, values = (in_blocks(x)[at].reshape(M, -1, x.shape[-1]) for x in (key, value))
        visible = (in_blocks(shown)[at] & usable[..., None]).reshape(M, -1, 1, 1)
        out = softmax_parts.softmax(softmax_parts.part(rows, keys, values, visible, scale))
        out = jnp.swapaxes(out, 0, 1).reshape(G, M * b, -1)
        from_global = softmax_parts.softmax(
            softmax_parts.part(query[:, : g * b], key, value, shown[:, None, None], scale)
        )
        return jnp.concatenate([from_global, out[:, g * b : T]], axis=1)

    def reach(marked: Bool[Array, "T"]) -> Bool[Array, "T"]:
        hit = jnp.any(in_blocks(marked), axis=1)
        hits = jnp.any(hit[at] & usable, axis=1) | (jnp.any(hit) & (jnp.arange(M) < g))
        return jnp.repeat(hits, b)[:T]

    return headwise.attend(form, reach, query, key, value, mask)


@contract.primitive("T", "block_size", "count", "window", "global_blocks")
def draw_random_blocks(
    key: PRNGKeyArray,
    T: int,
    *,
    block_size: int,
    count: int = 3,
    window: tuple[int, int] = (1, 1),
    global_blocks: int = 1,
) -> Int[Array, "M R"]:
    """The random part of BigBird's pattern: blocks that are neither in the window nor global.

    Args:
        key: a key of `jax.random.key`; one key gives one pattern.
        T: length of the sequence.
        block_size: as for `bigbird_attention`.
        count: R, how many blocks to draw for each, uniformly and without replacement.
        window: as for `bigbird_attention`.
        global_blocks: as for `bigbird_attention`.

    Returns:
        Indices of blocks `[M R]`, with -1 where fewer than R are left to draw from.

    Raises:
        ValueError: a block_size below 1, a negative count or side.
        TypeError: a window that is not a pair of integers.

    Zaheer et al. (2020), "Big Bird: transformers for longer sequences".
    """
    M = _count_blocks(T, block_size)
    left, right = contract.check_window(window)
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    ahead = np.arange(M) - np.arange(M)[:, None]
    seen = ((ahead >= -left) & (ahead <= right)) | (np.arange(M) < global_blocks)
    lots = jnp.where(seen, -1.0, jax.random.uniform(key, (M, M)))
    best, blocks = jax.lax.top_k(lots, min(count, M))
    blocks = jnp.where(best >= 0, blocks, -1)
    return jnp.pad(blocks, ((0, 0), (0, count - blocks.shape[1])), constant_values=-1)


def _count_blocks(T: int, block_size: int) -> int:
    return -(-T // contract.check_at_least_one("block_size", block_size))


def _listed_once(listed: Int[Array, "*L g"], size: int) -> Int[Array, "*L g"]:
    """Move whatever is listed again, or is not in [0, size), to `size`, where scatters drop it."""
    g = listed.shape[-1]
    same = listed[..., :, None] == listed[..., None, :]
    again = jnp.any(same & np.tri(g, k=-1, dtype=bool).reshape((1,) * (listed.ndim - 1) + (g, g)), axis=-1)
    return jnp.where(again | (listed < 0) | (listed >= size), size, listed)
