"""Banded attention: each query sees the keys near its own position, and nothing else is computed.

Queries are cut into blocks. A block of b queries sees, taken together, `b + left + right` keys in a row,
so that a stack of small dense attentions does the work, under one and the same little mask:

    queries  ..[ q q q q ]..
    keys     ..k k[ k k k k ]k..      (left, right) = (2, 1)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attention.internals import contract, headwise, softmax_parts
from attention.internals.softmax_parts import Part


@contract.primitive("window", "scale", "block_size")
def banded_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    window: tuple[int, int],
    mask: Bool[Array, "*#B 1 1 #S"] | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    scale: float | None = None,
    block_size: int | None = None,
) -> Float[Array, "*B T N V"]:
    """Sliding-window attention, `out[t] = sum_s softmax(scale * q[t] . k[s]) v[s]` over s near t.

    Query t sees the keys s with `-left <= s - t <= right`: equal to `attend` with `masks.band`, at a cost
    linear in the length. Also known as local, restricted or truncated attention; with `right = 0` it is
    causal. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        window: `(left, right)`, how many keys before and after the query's own position it sees besides
            that one: (3, 0) shows four keys.
        mask: boolean, True for the keys that exist, `[*B 1 1 S]`.
        query_offset: position of the first query among the keys, one integer or one per batch element
            `[*B]`, between -T and S; needed where T differs from S.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.
        block_size: b, how many queries are handled together. It changes the speed alone; chosen by the
            window if None.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for queries that see no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries, a negative side, a
            block_size below 1, or T differs from S and there is no query_offset.
        TypeError: dtypes that differ, or a window that is not a pair of integers.

    Cost: O(T w) time and memory, w = left + right + b.

    Parmar et al. (2018), "Image transformer"; Beltagy, Peters and Cohan (2020), "Longformer: the
    long-document transformer".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask("banded_attention", mask, shape)
    *batch, _, T, S = shape
    # A side longer than all there is changes nothing, and must not cost anything either.
    left, right = (min(side, T + S) for side in contract.check_window(window))
    if block_size is not None:
        contract.check_at_least_one("block_size", block_size)
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    contract.check_query_offset(query_offset, shape)
    per_sequence: tuple[Array, ...] = ()
    if query_offset is not None:
        per_sequence = (jnp.broadcast_to(jnp.asarray(query_offset).astype(jnp.int32), batch),)

    def form(
        query: Array, key: Array, value: Array, shown: Array, offset: int | Array = 0
    ) -> Float[Array, "G T V"]:
        return softmax_parts.softmax(
            window_part(query, key, value, shown, (left, right), scale, offset, block_size)
        )

    def reach(marked: Array, offset: int | Array = 0) -> Bool[Array, "T"]:
        return window_reach(marked, (left, right), T, offset)

    return headwise.attend(form, reach, query, key, value, mask, *per_sequence)


def window_part(
    query: Float[Array, "G T H"],
    key: Float[Array, "S H"],
    value: Float[Array, "S V"],
    shown: Bool[Array, "S"],
    window: tuple[int, int],
    scale: float,
    offset: int | Int[Array, ""] = 0,
    block_size: int | None = None,
) -> Part:
    """What the keys in the window of each query add to its output.

    Args:
        query: `[G T H]`.
        key: `[S H]`.
        value: `[S V]`.
        shown: which keys exist, `[S]`.
        window: `(left, right)`, checked.
        scale: factor on the dot products.
        offset: position of the first query among the keys.
        block_size: how many queries are handled together.
    """
    G, T, H = query.shape
    left, right = window
    b = min(block_size or _block_size(window), T)
    n = -(-T // b)
    width = b + left + right
    query = _run(jnp.swapaxes(query, 0, 1), 0, n * b).reshape(n, b, G, H).swapaxes(1, 2)
    key, value, shown = (
        _overlapping(_run(x, offset - left, left + T + right), n, b, width) for x in (key, value, shown)
    )
    row, column = np.arange(b), np.arange(width)[:, None]
    band = (column >= row) & (column <= row + left + right)
    visible = shown[:, :, None, None] & jnp.asarray(band)[None, :, None, :]
    found = softmax_parts.part(query, key, value, visible, scale)
    return Part(*(jnp.swapaxes(x, 0, 1).reshape(G, n * b, *x.shape[3:])[:, :T] for x in found))


def window_reach(
    marked: Bool[Array, "S"], window: tuple[int, int], T: int, offset: int | Int[Array, ""] = 0
) -> Bool[Array, "T"]:
    """Whether any marked key is in the window of each of T queries."""
    left, right = window
    count = jnp.cumsum(_run(marked, offset - left - 1, 1 + left + T + right), dtype=jnp.int32)
    return count[1 + left + right :] > count[:T]


def _block_size(window: tuple[int, int]) -> int:
    """Larger blocks fill the matrix units better, and compute more that no query of the block may see."""
    for size, most in ((32, 48), (64, 512)):
        if sum(window) < most:
            return size
    return 128


def _run(x: Array, start: int | Int[Array, ""], size: int) -> Array:
    """`x[start : start + size]` with 0 wherever that is outside of x."""
    zero, others = jnp.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1)
    S = len(x)
    if isinstance(start, int):
        return jax.lax.pad(x, zero, [(-start, start + size - S, 0), *others])
    around = jax.lax.pad(x, zero, [(size, size, 0), *others])
    return jax.lax.dynamic_slice_in_dim(around, jnp.clip(start, -size, S) + size, size)


def _overlapping(x: Array, n: int, b: int, width: int) -> Array:
    """The n runs `x[i b : i b + width]`, made of whole blocks, since slices are cheaper than a gather."""
    shifts = -(-width // b)
    blocks = _run(x, 0, (n + shifts - 1) * b).reshape(-1, b, *x.shape[1:])
    return jnp.concatenate([blocks[j : j + n] for j in range(shifts)], axis=1)[:, :width]
