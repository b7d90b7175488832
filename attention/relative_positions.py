"""Relative positions: what a query makes of a key depends on how far away it stands.

Distances are counted from the query, `s - (t + query_offset)`, so keys ahead of it are at positive
distances and `query_offset` places the first query among the keys. What depends on the distance
alone is worked out once per distance, of which there are T + S, and then shifted into the rows of
the `T x S` scores: no array with a vector for every query and key is made, and nothing as large as
the scores is gathered.
"""

import bisect
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention import normalizers, positions
from attention.internals import contract, dropout, grouped, unseen


@contract.primitive()
def shaw_scores(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    key_table: Float[Array, "R H"],
    query_offset: int | Int[Array, "..."] | None = None,
) -> Float[Array, "*B N T S"]:
    """Scaled dot products with a learned vector added to each key by its distance.

    `score[t, s] = q[t] . (k[s] + a[clip(s - t, -k, k)]) / sqrt(H)`. A score like those of
    `attention.scores`: with `attend(..., score=jax.tree_util.Partial(shaw_scores, key_table=a))` it
    makes attention with relative keys and without relative values.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        key_table: a, `[2k+1 H]`, shared by all heads: the vectors of the distances -k to k. Keys
            further away count as k away.
        query_offset: position of the first query among the keys, one integer or one per batch
            element `[*B]`; needed where T differs from S.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: shapes that do not fit, a table of even length, or T differs from S and there is
            no query_offset.
        TypeError: dtypes that differ, or a query_offset that is not an integer.

    Cost: O(T (T + S) H) time and O(T (T + S)) memory per head.

    Shaw, Uszkoreit and Vaswani (2018), "Self-attention with relative position representations".
    """
    contract.check_query_key(query, key, same_width=True)
    contract.check_floating(query=query, key_table=key_table)
    return _shaw_scores(query, key, key_table, query_offset)


def _shaw_scores(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    key_table: Float[Array, "R H"],
    query_offset: int | Int[Array, "..."] | None,
) -> Float[Array, "*B N T S"]:
    H, S = query.shape[-1], key.shape[-3]
    scale = max(H, 1) ** -0.5
    vectors = _by_distance("key_table", key_table, H, contract.scores_shape(query, key), query_offset)
    relative = grouped.products(query, vectors[..., None, :], scale)
    return grouped.products(query, key, scale) + _into_rows(relative, S)


@contract.primitive("dropout_rate", "return_weights")
def shaw_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    key_table: Float[Array, "R H"],
    value_table: Float[Array, "Rv V"] | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N T S"]]:
    """Softmax attention with relative keys and values.

    `w = softmax(q[t] . (k[s] + a[clip(s - t, -k, k)]) / sqrt(H) + bias)`,
    `out[t] = sum_s w[t, s] (v[s] + b[clip(s - t, -k, k)])`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        key_table: a, `[2k+1 H]`, shared by all heads: the vectors of the distances -k to k. Keys
            further away count as k away.
        value_table: b, `[2k+1 V]`, likewise and with a k of its own; None for values without
            relative positions.
        query_offset: position of the first query among the keys, one integer or one per batch
            element `[*B]`; needed where T differs from S.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis.
        dropout_rate: share of the weights set to 0, in [0, 1).
        dropout_key: a key of `jax.random.key`, needed where the rate is above 0.
        return_weights: return the weights, before dropout, as well.

    Returns:
        The output `[*B T N V]` in the query's dtype; with `return_weights` a pair of it and the
        weights `[*B N T S]`, in float32 or wider. A row that sees no key has output 0 and weights
        0.

    Raises:
        ValueError: shapes that do not fit, a table of even length, a rate outside [0, 1), a missing
            dropout key, or T differs from S and there is no query_offset.
        TypeError: dtypes that differ, a mask that is not boolean, or a query_offset that is not an
            integer.

    Cost: O(T (T + S) (H + V)) time and O(T (T + S)) memory per head.

    Shaw, Uszkoreit and Vaswani (2018), "Self-attention with relative position representations".
    """
    shape = contract.check_attention(
        query, key, value, mask=mask, bias=bias, dropout_rate=dropout_rate, dropout_key=dropout_key
    )
    contract.check_floating(query=query, key_table=key_table)
    visible, bias = unseen.split_bias(mask, bias)
    finite = unseen.take_out(query, key, value, visible)

    scores = _shaw_scores(finite.query, finite.key, key_table, query_offset)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    weights = normalizers.softmax(scores, visible)
    kept = dropout.drop(weights, dropout_rate, dropout_key)
    sums = grouped.sums(kept, finite.value)
    if value_table is not None:
        contract.check_floating(query=query, value_table=value_table)
        V = value.shape[-1]
        vectors = _by_distance("value_table", value_table, V, shape, query_offset)
        sums = sums + jnp.matmul(_by_column(kept), vectors.astype(kept.dtype)[..., None, :, :])
    out = jnp.swapaxes(finite.restore_sums(sums), -2, -3).astype(query.dtype)
    return (out, finite.restore_weights(weights)) if return_weights else out


@contract.primitive("T", "S", "num_buckets", "max_distance", "bidirectional", "batch_dims")
def t5_buckets(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
    batch_dims: int = 1,
) -> Int[Array, "*B 1 T S"]:
    """Which bucket each distance falls in: one each for the near ones, wider and wider for the far.

    Of the n buckets of one direction the first n/2 hold one distance each; distance d beyond them
    is in bucket `n/2 + floor(log(d / (n/2)) / log(max_distance / (n/2)) * (n - n/2))`, at most
    n - 1. The edges of the buckets are found in whole numbers, so that a distance exactly on one
    is in the upper bucket on every device.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, one integer or one per batch
            element, with `batch_dims` axes; needed where T differs from S.
        num_buckets: in all; with `bidirectional` half of them are for each direction.
        max_distance: from here on all distances share the last bucket of their direction.
        bidirectional: True tells keys behind a query, and its own position (buckets 0 to n - 1),
            from those ahead of it (n to 2n - 1); False is for causal attention, where all keys
            ahead are in bucket 0.
        batch_dims: number of batch axes.

    Returns:
        Buckets `[*B 1 T S]`, from 0 to `num_buckets - 1`.

    Raises:
        ValueError: too few buckets, an odd number of them for two directions, a max_distance they
            reach without it, or T differs from S and there is no query_offset.

    Cost: O(T S).

    Raffel et al. (2020), "Exploring the limits of transfer learning with a unified text-to-text
    transformer".
    """
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    return _t5_buckets(keys - queries, num_buckets, max_distance, bidirectional)


@contract.primitive("T", "S", "max_distance", "bidirectional", "batch_dims")
def t5_bias(
    table: Float[Array, "buckets N"],
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    max_distance: int = 128,
    bidirectional: bool = True,
    batch_dims: int = 1,
) -> Float[Array, "*B N T S"]:
    """A learned number per head and bucket of distances, `bias[n, t, s] = table[bucket(s - t), n]`.

    T5 adds it to dot products that are not scaled: `attend(..., score=scores.dot, bias=...)`.

    Args:
        table: `[num_buckets N]`.
        T: number of queries.
        S: number of keys, T if None.
        query_offset: as for `t5_buckets`.
        max_distance: as for `t5_buckets`.
        bidirectional: as for `t5_buckets`.
        batch_dims: number of batch axes.

    Returns:
        Bias `[*B N T S]` in the dtype of the table.

    Raises:
        ValueError: as for `t5_buckets`.

    Cost: O(T (T + S)) per head.

    Raffel et al. (2020), "Exploring the limits of transfer learning with a unified text-to-text
    transformer".
    """
    contract.check_floating(table=table)
    S = T if S is None else S
    distances = _distances(T, S, query_offset, batch_dims)
    buckets = _t5_buckets(distances, table.shape[0], max_distance, bidirectional)
    line = jnp.swapaxes(table[buckets], -1, -2)[..., None, :]
    return _into_rows(jnp.broadcast_to(line, (*line.shape[:-2], T, line.shape[-1])), S)


@contract.primitive("N", "T", "S", "batch_dims", "dtype")
def alibi(
    N: int,
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    batch_dims: int = 1,
    dtype: Any = jnp.float32,
) -> Float[Array, "*B {N} T S"]:
    """A penalty that grows with the distance, `bias[n, t, s] = -slope[n] |s - t|`.

    The paper's attention is causal; ahead of the query, where it says nothing, the penalty is that
    of the same distance behind it.

    Args:
        N: number of heads.
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, one integer or one per batch
            element, with `batch_dims` axes; needed where T differs from S.
        batch_dims: number of batch axes.
        dtype: of the bias.

    Returns:
        Bias `[*B N T S]`.

    Raises:
        ValueError: T differs from S and there is no query_offset.

    Cost: O(T S) per head.

    Press, Smith and Lewis (2022), "Train short, test long: attention with linear biases enables
    input length extrapolation".
    """
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    slopes = jnp.asarray(alibi_slopes(N), dtype).reshape((1,) * batch_dims + (N, 1, 1))
    return -slopes * jnp.abs(keys - queries).astype(dtype)


def alibi_slopes(N: int) -> np.ndarray:
    """The slopes of ALiBi for N heads, a geometric sequence.

    `slope[n] = 2^(-8 (n + 1) / N)` where N is a power of two. Otherwise, as in the paper's own
    code, the slopes of the power of two below N, followed by every second one of those of the power
    of two above it.

    Args:
        N: number of heads.

    Returns:
        `[N]` in float64.

    Press, Smith and Lewis (2022), "Train short, test long: attention with linear biases enables
    input length extrapolation".
    """
    below = 2 ** (max(N, 1).bit_length() - 1)
    first, rest = (2.0 ** (-8 / heads * np.arange(1, heads + 1)) for heads in (below, 2 * below))
    return np.concatenate([first, rest[::2]])[:N]


def _t5_buckets(
    distances: Int[Array, "*D"], num_buckets: int, max_distance: int, bidirectional: bool
) -> Int[Array, "*D"]:
    n, odd = divmod(num_buckets, 2) if bidirectional else (num_buckets, 0)
    if odd or n < 2:
        raise ValueError(
            f"num_buckets must be {'even and at least 4' if bidirectional else 'at least 2'} with "
            f"bidirectional={bidirectional}, got {num_buckets}"
        )
    exact = n // 2
    if max_distance <= exact:
        raise ValueError(
            f"max_distance must be above {exact}, up to where {num_buckets} buckets with "
            f"bidirectional={bidirectional} hold one distance each, got {max_distance}"
        )
    starts = jnp.asarray(_t5_starts(exact, n - exact, max_distance), jnp.int32)
    far = jnp.abs(distances) if bidirectional else jnp.maximum(-distances, 0)
    beyond = jnp.searchsorted(starts, far, side="right", method="compare_all").astype(jnp.int32)
    bucket = jnp.where(far < exact, far, exact - 1 + beyond)
    return bucket + jnp.where(distances > 0, n, 0) if bidirectional else bucket


def _t5_starts(exact: int, wide: int, max_distance: int) -> list[int]:
    """The least distance in each of the wide buckets.

    Bucket i starts at the least d with `log(d / exact) / log(max_distance / exact) * wide >= i`,
    which is `d^wide >= max_distance^i exact^(wide - i)`.
    """
    powers = [max_distance**i * exact ** (wide - i) for i in range(wide)]
    return [bisect.bisect_left(range(max_distance), power, key=lambda d: d**wide) for power in powers]


def _distances(
    T: int, S: int, query_offset: int | Int[Array, "..."] | None, batch_dims: int
) -> Int[Array, "*B C"]:
    """The distances `c - T - query_offset` of the columns c that `_into_rows` shifts."""
    if query_offset is None:
        contract.check_lengths(T, S)
        query_offset = 0
    contract.check_integers("query_offset", query_offset)
    first, columns = positions.places(1, T + S + 1, query_offset, batch_dims)
    return (columns - T - first)[..., 0, 0, :]


def _by_distance(
    name: str,
    table: Float[Array, "R H"],
    width: int,
    scores: contract.Shape,
    query_offset: int | Int[Array, "..."] | None,
) -> Float[Array, "*#B C H"]:
    """The vectors of a table of clipped distances for every distance there is."""
    R = table.shape[0]
    if table.ndim != 2 or R % 2 == 0 or table.shape[1] != width:
        raise ValueError(
            f"{name} must be [2k+1 {width}] for these heads, the distances -k to k, got {table.shape}"
        )
    contract.check_query_offset(query_offset, scores)
    *batch, _, T, S = scores
    k = R // 2
    distances = _distances(T, S, query_offset, len(batch))
    return jnp.broadcast_to(table[jnp.clip(distances, -k, k) + k], (*batch, T + S + 1, width))


def _into_rows(x: Float[Array, "*B T C"], S: int) -> Float[Array, "*B T {S}"]:
    """Take column `s - t + T` of row t to column s, for all s at once.

    In the flat array that is element `t (T + S + 1) + s - t + T = T + t (T + S) + s`: the same
    numbers read in rows of T + S, from element T on.
    """
    *batch, T, columns = x.shape
    flat = x.reshape(*batch, T * columns)[..., T:]
    return flat.reshape(*batch, T, T + S)[..., :S]


def _by_column(x: Float[Array, "*B T S"]) -> Float[Array, "*B T C"]:
    """The way back: column s of row t to column `s - t + T`, and 0 in all others."""
    *batch, T, S = x.shape
    none = [(0, 0)] * len(batch)
    flat = jnp.pad(x, [*none, (0, 0), (0, T)]).reshape(*batch, T * (T + S))
    return jnp.pad(flat, [*none, (T, 0)]).reshape(*batch, T, T + S + 1)
