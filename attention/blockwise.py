"""Softmax attention block by block: dense attention's results from memory linear in the lengths.

A block of queries meets one block of keys at a time. Of its scores only the largest, the sum of the
exponentials and the weighted sum of the values are kept, corrected whenever a larger score turns up
(the online softmax), so no array of size `T * S` exists in either pass. On a CPU that is also the
fast way: a block of scores never leaves the cache.

The derivative is one rule, the tangent. It computes the weights of each block anew from the
log-sum-exp, inside `jax.checkpoint`, and is plain JAX otherwise; so JAX transposes it into the
backward pass, again block by block, and differentiates it once more where second derivatives are
asked for. There is no rule for reverse mode that forward mode would have to go around.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention.internals import contract
from attention.internals.softmax_parts import finite_maximum
from attention.internals.tiles import (
    KEYS_FORWARD,
    KEYS_TANGENT,
    Masks,
    Plan,
    Tiles,
    by_key_head,
    each,
    each_head,
    pick,
    sum_over_blocks,
)


@contract.primitive("is_causal", "window", "scale", "block_size", "return_logsumexp")
def blockwise_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    is_causal: bool = False,
    query_offset: int | Int[Array, "..."] | None = None,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    block_size: int | None = None,
    return_logsumexp: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N T"]]:
    """Softmax attention without storing scores, `out = softmax(scale * Q K^T + bias) V`.

    Equal to `dot_product_attention` in values and in derivatives of any order, forward and reverse,
    and to itself for any block size. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis, which is then
            never written out.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis, which is then
            never written out, nor is its gradient.
        is_causal: show each query only the keys up to its own position. Made block by block from
            positions; blocks with nothing to see are skipped.
        query_offset: position of the first query among the keys, one integer or one per batch
            element `[*B]`; needed with `is_causal` or `window` where T differs from S. With it, no
            block is skipped in a derivative.
        window: `(left, right)`, show only so many keys on each side of the query's own position,
            which is always included: (3, 0) shows four keys. Blocks outside it are skipped as well.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number; put a learned one
            on the query.
        block_size: queries and keys per block; chosen for speed if None.
        return_logsumexp: return the logarithm of each row's sum of exponentials as well.

    Returns:
        The output `[*B T N V]` in the query's dtype; with `return_logsumexp` a pair of it and the
        log-sum-exp `[*B N T]`, in float32 or wider. A row that sees no key has output 0 and
        log-sum-exp -inf.

    Raises:
        ValueError: shapes that do not fit, or an argument out of its range or ambiguous.
        TypeError: dtypes that differ, or an argument of the wrong kind.

    Cost: O(T S) time, O(T + S) memory besides the arguments, in both passes.

    Rabe and Staats (2021), "Self-attention does not need O(n^2) memory"; Dao et al. (2022),
    "FlashAttention: Fast and memory-efficient exact attention with IO-awareness".
    """
    shape = contract.check_attention(query, key, value, mask=mask, bias=bias)
    band = contract.check_band(shape, is_causal, query_offset, window)
    _check_block_size(block_size)
    *batch, N, T, S = shape
    query_dtype, dtype, K = query.dtype, contract.working_dtype(query.dtype), key.shape[-2]
    if T == 0 or S == 0:
        empty = jnp.zeros((*batch, T, N, value.shape[-1]), query.dtype)
        return (empty, jnp.full((*batch, N, T), -jnp.inf, dtype)) if return_logsumexp else empty
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5

    query = query.reshape(*batch, T, K, N // K, -1)
    visible: Masks = () if mask is None else (by_key_head(mask, N, K),)
    if bias is not None:
        bias = by_key_head(bias, N, K)
        allowed = bias != -jnp.inf
        visible = (*visible, allowed)  # Not joined with the mask, which may vary along other axes.
        bias = jnp.where(allowed, bias, 0.0)
    offset = None if band is None else _by_batch(query_offset, len(batch))
    plan = Plan(band, query_offset is None, block_size, scale, N // K, T, S)

    owed = None
    if band is not None or visible:
        owed = _owed(plan, query, key, value, visible, offset)
        query, key, value = (jnp.where(jnp.isfinite(x), x, 0.0) for x in (query, key, value))
    query, key, value = (x.astype(dtype) for x in (query, key, value))
    out, logsumexp = _attention(plan, query, key, value, bias, visible, offset)
    if owed is not None:
        of_scores, of_sums = (x.astype(dtype) for x in owed)
        out = out + jnp.moveaxis(of_sums, -1, -3)[..., None]
        logsumexp = logsumexp + of_scores

    out = out.reshape(*batch, T, N, -1).astype(query_dtype)
    return (out, logsumexp.reshape(*batch, N, T)) if return_logsumexp else out


def _check_block_size(block_size: int | None) -> None:
    if block_size is None:
        return
    if not isinstance(block_size, int) or isinstance(block_size, bool):
        raise TypeError(f"block_size must be a Python integer, got {block_size!r}")
    contract.check_at_least_one("block_size", block_size)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _attention(
    plan: Plan,
    query: Float[Array, "*B T K G H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    bias: Float[Array, "*#B #K #G #T #S"] | None,
    visible: Masks,
    offset: Int[Array, "*#B 1"] | None,
) -> tuple[Float[Array, "*B T K G V"], Float[Array, "*B K G T"]]:
    """Output and log-sum-exp, from finite arrays in the working dtype."""
    tiles = Tiles(plan, plan.keys(KEYS_FORWARD))
    dtype, V = query.dtype, value.shape[-1]

    def head(
        query: Float[Array, "T G H"],
        key: Float[Array, "S H"],
        value: Float[Array, "S V"],
        bias: Float[Array, "I J #G queries keys"] | None,
        masks: Masks,
        offset: Int[Array, ""] | None,
    ) -> tuple[Float[Array, "T G V"], Float[Array, "G T"]]:
        def block(row: Any, columns: Any) -> tuple[Array, Array]:
            def step(j: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
                top, total, out = state
                column = pick(columns, j)
                scores = tiles.scores(row, column, j)
                largest = jnp.maximum(top, jnp.max(scores, axis=-1, keepdims=True))
                # A row that has seen nothing yet has no largest score to subtract.
                shift = finite_maximum(largest)
                weights, before = jnp.exp(scores - shift), jnp.exp(top - shift)
                total = total * before + jnp.sum(weights, axis=-1, keepdims=True)
                return largest, total, out * before + weights @ column["value"]

            R = row["query"].shape[0]
            state = jnp.full((R, 1), -jnp.inf, dtype), jnp.zeros((R, 1), dtype), jnp.zeros((R, V), dtype)
            if tiles.grid[1] == 1:
                state = step(0, state)
            else:
                state = jax.lax.fori_loop(*tiles.needed(row["i"], row["offset"]), step, state)
            top, total, out = state
            total = jnp.where(total == 0, 1.0, total)
            return out / total, top + jnp.log(total)

        out, logsumexp = each(
            block,
            tiles.grid[:1],
            {
                "query": tiles.by_rows(jnp.swapaxes(query, 0, 1) * plan.scale),
                "i": tiles.by_index(0),
                "offset": None if offset is None else offset[None],
            },
            {
                "key": tiles.by_columns(key, -2),
                "value": tiles.by_columns(value, -2),
                "bias": bias,
                "masks": masks,
            },
        )
        return jnp.swapaxes(tiles.from_rows(out), 0, 1), tiles.from_rows(logsumexp)[..., 0]

    return each_head(
        head,
        (*key.shape[:-3], key.shape[-2]),
        {
            "query": query,
            "key": key,
            "value": value,
            "bias": tiles.by_both(bias),
            "masks": jax.tree.map(tiles.by_both, visible),
            "offset": offset,
        },
        {"query": 1, "key": 1, "value": 1},
        (1, 0),
    )


@_attention.defjvp
def _tangent(plan: Plan, primals: Any, tangents: Any) -> Any:
    """With weights w and scores a: `d out = sum_s w (da - dl) v + w dv`, and `dl = sum_s w da`.

    What is linear here in the tangents of keys and values is laid out so that its transpose is a product
    `[H R] [R keys]`, three times as quick on a CPU as one of `[keys R] [R H]`.
    """
    out, logsumexp = _attention(plan, *primals)
    bias, visible, offset = primals[3:]
    d_bias = tangents[3]
    (rows, keys, values), (d_rows, d_keys, d_values) = (_by_head(*x[:3]) for x in (primals, tangents))
    rows, d_rows = rows * plan.scale, d_rows * plan.scale
    tiles = Tiles(plan, plan.keys(KEYS_TANGENT))
    lead, dtype = keys.shape[:-2], rows.dtype

    # Known quantities are computed anew where they are needed, not stored.
    @functools.partial(jax.checkpoint, prevent_cse=False)
    def tile(row: Any, column: Any, j: Any) -> tuple[Array, Array]:
        def present() -> tuple[Array, Array]:
            weights = jnp.exp(tiles.scores(row, column, j) - row["logsumexp"])
            d_scores = row["d_query"] @ column["key"].T + row["query"] @ column["d_key"]
            if bias is not None:
                by_head = d_scores.reshape(plan.group, tiles.queries, tiles.keys)
                d_scores = (by_head + column["d_bias"].astype(dtype)).reshape(d_scores.shape)
            changes = weights * d_scores
            d_out = changes @ column["value"] + weights @ column["d_value"].T
            return d_out, jnp.sum(changes, axis=-1, keepdims=True)

        # A given offset may differ within a batch, and JAX cannot transpose a `cond` that does.
        if plan.band is None or not plan.at_start:
            return present()
        start, stop = tiles.needed(row["i"], row["offset"])
        absent = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(present))
        return jax.lax.cond((start <= j) & (j < stop), present, lambda: absent)

    def block(row: Any, columns: Any) -> tuple[Array, Array]:
        count = tiles.grid[1]
        if count == 1:
            d_out, d_logsumexp = tile(row, pick(columns, 0), 0)
        else:
            d_out, d_logsumexp = sum_over_blocks(functools.partial(tile, row), count, columns)
        return d_out - d_logsumexp * row["out"], d_logsumexp

    d_out, d_logsumexp = each(
        block,
        (*lead, tiles.grid[0]),
        {
            "query": tiles.by_rows(rows),
            "d_query": tiles.by_rows(d_rows),
            "out": tiles.by_rows(jnp.moveaxis(out, -4, -2)),
            "logsumexp": tiles.by_rows(finite_maximum(logsumexp)[..., None]),
            "i": tiles.by_index(len(lead)),
            "offset": None if offset is None else offset[..., None],
        },
        {
            "key": tiles.by_columns(keys, -2),
            "value": tiles.by_columns(values, -2),
            "d_key": tiles.by_columns(jnp.swapaxes(d_keys, -2, -1), -1),
            "d_value": tiles.by_columns(jnp.swapaxes(d_values, -2, -1), -1),
            "bias": tiles.by_both(bias),
            "d_bias": None if bias is None else tiles.by_both(d_bias),
            "masks": jax.tree.map(tiles.by_both, visible),
        },
    )
    d_out = jnp.moveaxis(tiles.from_rows(d_out), -2, -4)
    return (out, logsumexp), (d_out, tiles.from_rows(d_logsumexp)[..., 0])


def _owed(
    plan: Plan,
    query: Float[Array, "*B T K G H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    visible: Masks,
    offset: Int[Array, "*#B 1"] | None,
) -> tuple[Float[Array, "*B K G T"], Float[Array, "*B K G T"]]:
    """NaN in the rows that see a query or key that is not finite, and in those that see such a value too.

    As in `attention.internals.unseen`, but tile by tile, and only where anything is not finite.
    """
    tiles = Tiles(plan, plan.keys(KEYS_FORWARD))
    bad_row, bad_key, bad_value = (
        ~jnp.all(jnp.isfinite(x), axis=-1, keepdims=True) for x in _by_head(query, key, value)
    )

    def block(row: Any, columns: Any) -> tuple[Array, Array]:
        shape = (plan.group, tiles.queries, tiles.keys)

        def step(j: Any, found: tuple[Array, ...]) -> tuple[Array, ...]:
            column = pick(columns, j)
            seen = tiles.visible(row["i"], j, row["offset"], column["masks"])
            seen = jnp.broadcast_to(True if seen is None else seen, shape).reshape(-1, tiles.keys)
            hits = [seen, seen & column["key"].T, seen & column["value"].T]
            return tuple(f | jnp.any(h, axis=-1, keepdims=True) for f, h in zip(found, hits, strict=True))

        nothing = jnp.zeros_like(row["query"])
        any_key, of_keys, of_values = jax.lax.fori_loop(0, tiles.grid[1], step, (nothing,) * 3)
        of_scores = of_keys | (row["query"] & any_key)
        return of_scores, of_scores | of_values

    def search() -> tuple[Array, Array]:
        lead = bad_key.shape[:-2]
        found = each(
            block,
            (*lead, tiles.grid[0]),
            {
                "query": tiles.by_rows(bad_row),
                "i": tiles.by_index(len(lead)),
                "offset": None if offset is None else offset[..., None],
            },
            {
                "key": tiles.by_columns(bad_key, -2),
                "value": tiles.by_columns(bad_value, -2),
                "masks": jax.tree.map(tiles.by_both, visible),
            },
        )
        of_scores, of_sums = (tiles.from_rows(x)[..., 0] for x in found)
        return of_scores, of_sums

    any_bad = jnp.any(bad_row) | jnp.any(bad_key) | jnp.any(bad_value)
    none = jnp.zeros(bad_row.shape[:-1], bool)
    found = jax.lax.cond(any_bad, search, lambda: (none, none))
    of_scores, of_sums = (jnp.where(x, jnp.nan, 0.0).astype(jnp.float32) for x in found)
    return of_scores, of_sums


def _by_head(
    query: Float[Array, "*B T K G H"], key: Float[Array, "*B S K H"], value: Float[Array, "*B S K V"]
) -> tuple[Float[Array, "*B K G T H"], Float[Array, "*B K S H"], Float[Array, "*B K S V"]]:
    """Everything in the order in which it is walked through."""
    return jnp.moveaxis(query, -4, -2), jnp.swapaxes(key, -3, -2), jnp.swapaxes(value, -3, -2)


def _by_batch(query_offset: int | Array | None, batch_dims: int) -> Int[Array, "*#B 1"]:
    offset = jnp.asarray(0 if query_offset is None else query_offset).astype(jnp.int32)
    return offset.reshape(*(offset.shape or (1,) * batch_dims), 1)
