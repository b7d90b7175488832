"""Masked positions are unseen: nothing a masked key or value holds can reach a query.

A weight of 0 alone does not hide a NaN, since `0 * nan = nan` in the weighted sum and again in its
gradient, where a row that has met a NaN would spoil every key it shares with other rows. So what
is not finite is taken out before any arithmetic, everything differentiable runs on finite numbers,
and the rows that did see something not finite get NaN added to their result, as a constant. Then
such a key or value is invisible, in value and gradient, to the queries that may not see it, and
turns exactly the other ones into NaN. Without a mask there is nothing to hide and nothing to pay.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def split_bias(
    mask: Bool[Array, "..."] | None, bias: Float[Array, "..."] | None
) -> tuple[Bool[Array, "..."] | None, Float[Array, "..."] | None]:
    """Move the -inf of a bias, which means masked, into the mask; leave 0 in its place."""
    if bias is None:
        return mask, None
    allowed = bias != -jnp.inf
    return allowed if mask is None else mask & allowed, jnp.where(allowed, bias, 0.0)


class Finite(NamedTuple):
    """Inputs with 0 for all that is not finite, and what results are owed in return.

    `nan_scores` is NaN in the rows that see such a query or key, `nan_sums` in the rows that see
    such a query, key or value, and both are 0 elsewhere. Without a mask the inputs are as they
    were, and nothing is owed.
    """

    query: Float[Array, "*B T N Hq"]
    key: Float[Array, "*B S K Hk"]
    value: Float[Array, "*B S K V"]
    visible: Bool[Array, "*#B #N #T #S"] | None = None
    nan_scores: Float[Array, "*B N T 1"] | None = None
    nan_sums: Float[Array, "*B N T 1"] | None = None

    def restore_sums(self, sums: Float[Array, "*B N T V"]) -> Float[Array, "*B N T V"]:
        """Give weighted sums the NaN their rows have seen."""
        return sums if self.nan_sums is None else sums + self.nan_sums.astype(sums.dtype)

    def restore_rows(self, rows: Float[Array, "*B N T 1"]) -> Float[Array, "*B N T 1"]:
        """Give numbers made from whole rows of scores the NaN those rows have seen."""
        return rows if self.nan_scores is None else rows + self.nan_scores.astype(rows.dtype)

    def restore_weights(self, weights: Float[Array, "*B N T S"]) -> Float[Array, "*B N T S"]:
        """The same for weights, where a masked one stays exactly 0."""
        if self.visible is None or self.nan_scores is None:
            return weights
        return weights + jnp.where(self.visible, self.nan_scores.astype(weights.dtype), 0.0)


def take_out(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    visible: Bool[Array, "*#B #N #T #S"] | None,
) -> Finite:
    """Take out what is not finite where a boolean mask says which query sees which key."""
    if visible is None:
        return Finite(query, key, value)
    N, K, S = query.shape[-2], key.shape[-2], key.shape[-3]
    sees = jnp.broadcast_to(visible, (*visible.shape[:-1], S))
    *batch, n, t, _ = sees.shape
    rows = sees.reshape(*batch, *((1, 1) if n == 1 else (K, N // K)), t, S).astype(jnp.float32)

    def reach(bad: Bool[Array, "*B K S"]) -> Bool[Array, "*B N #T"]:
        # Counting by a matrix product is cheap: it has the mask's own axes, rarely one per head.
        hits = jnp.matmul(rows, bad.astype(jnp.float32)[..., None, :, None])[..., 0] > 0
        return _spread(hits, N)

    # A query counts only in rows that see any key at all: a fully masked row is 0.
    return _take_out(query, key, value, visible, jnp.any(sees, axis=-1), reach)


def hide(x: Float[Array, "*B S K H"], mask: Bool[Array, "*#B 1 1 S"] | None) -> Float[Array, "*B S K H"]:
    """Zero in place of what a key mask hides: enough where a key is hidden from all queries or none."""
    return x if mask is None else jnp.where(mask[..., 0, 0, :, None, None], x, 0.0)


def hide_blind(
    query: Float[Array, "*B T N H"], mask: Bool[Array, "*#B 1 1 S"] | None, is_causal: bool
) -> Float[Array, "*B T N H"]:
    """Zero in place of the queries that see no key, whose output is 0 whatever they hold."""
    if mask is None:
        return query
    shown = mask[..., 0, 0, :]
    seen = jnp.cumsum(shown, axis=-1, dtype=jnp.int32) > 0 if is_causal else jnp.any(shown, -1, keepdims=True)
    return jnp.where(seen[..., None, None], query, 0.0)


def existing(mask: Bool[Array, "*#B 1 1 #S"] | None, batch: Sequence[int], S: int) -> Bool[Array, "*B S"]:
    """Which keys of each sequence a key mask shows; all of them if None."""
    return jnp.broadcast_to(True if mask is None else mask[..., 0, 0, :], (*batch, S))


def take_out_causal(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B T K Hk"],
    value: Float[Array, "*B T K V"],
    left: int | None = None,
) -> Finite:
    """The same where query t sees key t and the `left` keys before it, or all of them.

    No array of size `T * T` is made: counts over a run of keys are differences of running counts.
    """
    N, T = query.shape[-2], query.shape[-3]
    last = jnp.arange(T)
    first = jnp.zeros_like(last) if left is None else jnp.maximum(last - left, 0)

    def reach(bad: Bool[Array, "*B K T"]) -> Bool[Array, "*B N T"]:
        count = jnp.cumsum(bad, axis=-1, dtype=jnp.int32)
        before = jnp.where(bad, count - 1, count)
        return _spread((count > before[..., first])[..., None, :], N)

    every_row = jnp.ones((1,) * (query.ndim - 3) + (1, T), dtype=bool)
    return _take_out(query, key, value, None, every_row, reach)


def _take_out(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    visible: Bool[Array, "*#B #N #T #S"] | None,
    sees_any: Bool[Array, "*#B #N #T"],
    reach: Callable[[Bool[Array, "*B K S"]], Bool[Array, "*B N #T"]],
) -> Finite:
    bad_query, bad_key, bad_value = map(_bad_vectors, (query, key, value))
    own = sees_any & bad_query
    # Reached once for both: most callers want sums only, and then the first line is never computed.
    of_scores = own | reach(bad_key)
    of_sums = own | reach(bad_key | bad_value)
    nan_scores, nan_sums = (
        jnp.where(rows[..., None], jnp.nan, 0.0).astype(jnp.float32) for rows in (of_scores, of_sums)
    )
    query, key, value = (jnp.where(jnp.isfinite(x), x, 0.0) for x in (query, key, value))
    return Finite(query, key, value, visible, nan_scores, nan_sums)


def _bad_vectors(x: Float[Array, "*B L N H"]) -> Bool[Array, "*B N L"]:
    return jnp.swapaxes(~jnp.all(jnp.isfinite(x), axis=-1), -1, -2)


def _spread(hits: Bool[Array, "*B K #G #T"], N: int) -> Bool[Array, "*B N #T"]:
    """Repeat what holds for a key head over the query heads of its group."""
    *batch, K, _, t = hits.shape
    return jnp.broadcast_to(hits, (*batch, K, N // K, t)).reshape(*batch, N, t)
