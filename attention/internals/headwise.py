"""Attention one key head at a time, so that all one head needs stays in cache.

A sparse form is given as a function of a single sequence and a single key head with the G query heads
that read it, without batch axes. The heads of all sequences are mapped over in turn; what a head computes
is forgotten and computed once more in the backward pass, which costs less than fetching it from memory
and leaves no more to store than the inputs.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention.internals import unseen

Form = Callable[..., Array]
Reach = Callable[..., Array]


def attend(
    form: Form,
    reach: Reach,
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    mask: Bool[Array, "*#B 1 1 #S"] | None,
    *per_sequence: Array,
) -> Float[Array, "*B T N V"]:
    """Apply a sparse form to every head, and hide from every query what it may not see.

    Args:
        form: `(query [G T H], key [S H], value [S V], shown [S], *per_sequence) -> out [G T V]`, given
            finite numbers only, and 0 in place of the keys and values that are not `shown`.
        reach: `(marked [S], *per_sequence) -> [T]`, whether each query sees any of the marked keys, in
            time linear in S if the form is to be linear. It says which queries meet a NaN.
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        mask: which keys exist, `[*B 1 1 S]`.
        *per_sequence: further arrays, each with the batch axes `*B` first.

    Returns:
        The output `[*B T N V]` in the query's dtype.
    """
    *batch, T, N, H = query.shape
    *_, S, K, V = value.shape
    heads, G = math.prod(batch) * K, N // K
    if 0 in (*batch, T, S):
        return jnp.zeros((*batch, T, N, V), query.dtype)

    @jax.checkpoint
    def one_head(arrays: tuple[Array, ...]) -> Float[Array, "G T V"]:
        query, key, value, shown, *others = arrays
        spoilt = shown & ~(_all_finite(key) & _all_finite(value))
        spoilt_rows = reach(spoilt, *others)[None] | (~_all_finite(query) & reach(shown, *others)[None])
        key, value = (jnp.where(shown[:, None] & jnp.isfinite(x), x, 0.0) for x in (key, value))
        query = jnp.where(jnp.isfinite(query), query, 0.0)
        out = form(query, key, value, shown, *others)
        return (out + jnp.where(spoilt_rows, jnp.nan, 0.0)[..., None].astype(out.dtype)).astype(query.dtype)

    def by_head(x: Float[Array, "*B L K H"]) -> Float[Array, "BK L H"]:
        *_, L, count, width = x.shape
        return jnp.swapaxes(x, -2, -3).reshape(math.prod(batch) * count, L, width)

    def repeated(x: Array) -> Array:
        """What holds for a sequence, once for each of its key heads."""
        sizes = x.shape[len(batch) :]
        x = jnp.expand_dims(x, len(batch))
        return jnp.broadcast_to(x, (*batch, K, *sizes)).reshape(heads, *sizes)

    shown = unseen.existing(mask, batch, S)
    queries = by_head(query).reshape(heads, G, T, H)
    out = jax.lax.map(
        one_head, (queries, by_head(key), by_head(value), repeated(shown), *map(repeated, per_sequence))
    )
    return jnp.swapaxes(out.reshape(*batch, N, T, V), -2, -3)


def _all_finite(x: Float[Array, "*L H"]) -> Bool[Array, "*L"]:
    return jnp.all(jnp.isfinite(x), axis=-1)
