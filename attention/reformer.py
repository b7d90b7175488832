"""Reformer: attention among the positions that locality-sensitive hashing puts together."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention.internals import contract, softmax_parts, unseen


def draw_rotations(
    key: PRNGKeyArray, rounds: int, head_dim: int, buckets: int, dtype: Any = jnp.float32
) -> Float[Array, "R H C"]:
    """Random directions for `reformer_attention`, each of which with its opposite makes two of the buckets.

    Args:
        key: a key of `jax.random.key`.
        rounds: R, number of hashings.
        head_dim: H.
        buckets: 2 C, an even number; or 1, for which there is nothing to draw.
        dtype: that of the queries.

    Returns:
        Normal numbers `[R H C]`.

    Raises:
        ValueError: an odd number of buckets above 1, or less than one bucket or round.
    """
    if rounds < 1 or buckets < 1 or (buckets > 1 and buckets % 2):
        raise ValueError(
            f"rounds must be 1 or more and buckets even, or 1, got {rounds} rounds and {buckets} buckets"
        )
    return jax.random.normal(key, (rounds, head_dim, buckets // 2), dtype)


@contract.primitive()
def hash_buckets(x: Float[Array, "*B L K H"], rotations: Float[Array, "R H C"]) -> Int[Array, "*B K R L"]:
    """The bucket of each vector in each round, `argmax([x R, -x R])`; all are 0 if C is 0.

    Args:
        x: `[*B L K H]`.
        rotations: `[R H C]`, as of `draw_rotations`.

    Returns:
        Integers in [0, 2 C), `[*B K R L]`, the same for all lengths of a vector.

    Andoni, Indyk, Laarhoven, Razenshteyn and Schmidt (2015), "Practical and optimal LSH for angular
    distance".
    """
    dtype = contract.working_dtype(x.dtype)
    towards = jnp.einsum("...lkh,rhc->...krlc", x.astype(dtype), rotations.astype(dtype))
    if rotations.shape[-1] == 0:
        return jnp.zeros(towards.shape[:-1], jnp.int32)
    return jnp.argmax(jnp.concatenate([towards, -towards], axis=-1), axis=-1).astype(jnp.int32)


@contract.primitive("chunk_size", "is_causal", "hide_self")
def reformer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    rotations: Float[Array, "R H C"],
    chunk_size: int,
    is_causal: bool = False,
    hide_self: bool = False,
    mask: Bool[Array, "*#B 1 1 T"] | None = None,
) -> Float[Array, "*B T N V"]:
    """Self-attention to the positions of one's own bucket, `out = softmax(Q K^T / sqrt(H)) V` over them.

    In each round every position gets a bucket by its key, and the members of a bucket, in their order,
    are cut into chunks. A query sees its own chunk and the one before it; over several rounds it sees a
    key if it does in any of them. So this equals dense attention under a mask that depends on the keys,
    and dense attention itself with one bucket and a chunk as long as the sequence.

    In the paper query and key are one vector, up to its length: give `key = query / |query|`, so that
    a bucket holds the keys that its queries match best. Chunks here begin anew in each bucket, where the
    paper cuts the whole sorted sequence: there, what follows a position moves the cuts before it, and
    so what it sees.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        rotations: directions that hash the keys in R rounds into 2 C buckets, `[R H C]`, such as those
            of `draw_rotations`; with C = 0 there is one bucket.
        chunk_size: positions in a chunk, 1 or more.
        is_causal: show each query only the keys up to its own position.
        hide_self: hide the query's own position, unless it sees no other: with query and key in one
            vector its own score would outdo all others.
        mask: boolean `[*B 1 1 T]`, True where a position exists, as a key and as a query. Others are in
            no bucket.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 at positions that do not exist.

    Raises:
        ValueError: shapes that do not fit, numbers of queries and keys that differ, a chunk size out of
            range, or a mask that differs between queries.
        TypeError: dtypes that differ, a mask that is not boolean.

    Costs O(R (T + C m) m) time and memory for chunks of m, and O(R T log T) for the sorting.

    Kitaev, Kaiser and Levskaya (2020), "Reformer: the efficient transformer".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("reformer_attention", shape)
    contract.check_key_mask("reformer_attention", mask, shape)
    contract.check_floating(query=query, rotations=rotations)
    if rotations.ndim != 3 or rotations.shape[0] < 1 or rotations.shape[1] != query.shape[-1]:
        raise ValueError(
            f"rotations must be [R H C] with R at least 1 and H={query.shape[-1]}, got {rotations.shape}"
        )
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be 1 or more, got {chunk_size}")
    *batch, N, T, _ = shape
    K = key.shape[-2]
    if T == 0:
        return jnp.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
    hidden = unseen.Finite(*(unseen.hide(x, mask) for x in (query, key, value)))
    finite = unseen.take_out_causal(*hidden[:3]) if is_causal else hidden

    exists = jnp.broadcast_to(unseen.existing(mask, batch, T)[..., None, :], (*batch, K, T))
    buckets = hash_buckets(finite.key, rotations)
    q = jnp.swapaxes(finite.query, -2, -3).reshape(*batch, K, N // K, T, query.shape[-1])
    k, v = (jnp.swapaxes(x, -2, -3) for x in (finite.key, finite.value))

    one_head = functools.partial(
        _one_head,
        buckets=max(2 * rotations.shape[-1], 1),
        chunk_size=chunk_size,
        is_causal=is_causal,
        hide_self=hide_self,
    )
    for _ in (*batch, K):
        one_head = jax.vmap(one_head)
    out = one_head(q, k, v, buckets, exists).reshape(*batch, N, T, value.shape[-1])
    return jnp.swapaxes(finite.restore_sums(out), -2, -3).astype(query.dtype)


def _one_head(
    query: Float[Array, "N T H"],
    key: Float[Array, "T H"],
    value: Float[Array, "T V"],
    bucket: Int[Array, "R T"],
    exists: Bool[Array, "T"],
    *,
    buckets: int,
    chunk_size: int,
    is_causal: bool,
    hide_self: bool,
) -> Float[Array, "N T V"]:
    """The attention of the query heads that share a key head, in the working dtype."""
    N, T, H = query.shape
    R, dtype = bucket.shape[0], contract.working_dtype(query.dtype)
    divide = functools.partial(_divide_into_chunks, buckets=buckets, chunk_size=chunk_size)
    chunk, slot, members = jax.vmap(divide, (0, None))(bucket, exists)  # [R T] [R T] [R G m]
    before = jnp.concatenate([jnp.full_like(members[:, :1], T), members[:, :-1]], axis=1)
    others = jnp.concatenate([before, members], axis=2)  # [R G M], M = 2m

    def of(x: Array, positions: Int[Array, "R G M"], fill: float) -> Array:
        return jnp.take(x, positions, axis=x.ndim - 2, mode="fill", fill_value=fill)

    def meets(round_chunk: Int[Array, "T"]) -> Bool[Array, "R G m M"]:
        """Whether a query sees a key by the chunks of one round, for all that share a chunk in any."""
        own, other = (
            jnp.take(round_chunk, positions, mode="fill", fill_value=-1) for positions in (members, others)
        )
        ahead = own[..., :, None] - other[..., None, :]
        return (ahead == 0) | (ahead == 1)

    seen = (members < T)[..., :, None] & (others < T)[..., None, :]
    distance = members[..., :, None] - others[..., None, :]
    if is_causal:
        seen = seen & (distance >= 0)
    if hide_self:
        seen = seen & (distance != 0)
    rounds = [meets(chunk[r]) for r in range(R)]
    seen = seen & jnp.stack([rounds[r][r] for r in range(R)])
    # A key that is met in several rounds counts once in all.
    times = functools.reduce(jnp.add, [met.astype(jnp.int32) for met in rounds])

    q, k, v = of(query, members, 0.0), of(key, others, 0.0), of(value, others, 0.0)
    scores = jnp.einsum("nrgqh,rgkh->nrgqk", q, k, preferred_element_type=dtype) * max(H, 1) ** -0.5
    scores = scores - jnp.log(jnp.maximum(times, 1).astype(dtype))[None]
    exponentials, total, shift = softmax_parts.undivided(scores, seen[None])
    sums = jnp.einsum("nrgqk,rgkv->nrgqv", exponentials, v.astype(dtype))

    def in_order(x: Float[Array, "N R G m D"], fill: float) -> Float[Array, "N R T D"]:
        flat = x.reshape(N, R, x.shape[2] * x.shape[3], x.shape[-1])
        pick = functools.partial(jnp.take, axis=1, mode="fill", fill_value=fill)
        return jax.vmap(pick, (1, 0), 1)(flat, slot)

    # A row that saw nothing in a round has a divisor of 1 there, which its shift of -inf takes out.
    sums, total, shift = in_order(sums, 0.0), in_order(total, 0.0), in_order(shift, -jnp.inf)
    highest = jnp.max(shift, axis=1, keepdims=True)
    share = jnp.exp(shift - softmax_parts.finite_maximum(highest))
    sums, total = jnp.sum(share * sums, axis=1), jnp.sum(share * total, axis=1)
    out = sums / jnp.where(total == 0, 1.0, total)
    # Values of positions that do not exist are 0 by now.
    return jnp.where(total == 0, value.astype(dtype)[None], out) if hide_self else out


def _divide_into_chunks(
    bucket: Int[Array, "T"], exists: Bool[Array, "T"], *, buckets: int, chunk_size: int
) -> tuple[Int[Array, "T"], Int[Array, "T"], Int[Array, "G m"]]:
    """Cut every bucket into chunks, and lay out these one after the other.

    Returns:
        The chunk of each position, numbered so that only neighbours of one bucket differ by 1; the place of
        each position in the layout; and the position at each place, T where there is none.
    """
    T, m = bucket.shape[0], chunk_size
    places = min((T + buckets * (m - 1)) // m, T) * m  # enough, however the positions are spread
    bucket = jnp.where(exists, bucket, buckets)
    order = jnp.argsort(bucket, stable=True)
    ordered = bucket[order]
    index = jnp.arange(T, dtype=jnp.int32)
    begins = jnp.concatenate([jnp.ones_like(ordered[:1], bool), ordered[1:] != ordered[:-1]])
    rank = index - jax.lax.cummax(jnp.where(begins, index, 0))
    place = (jnp.cumsum(rank % m == 0, dtype=jnp.int32) - 1) * m + rank % m
    place = jnp.where(ordered < buckets, place, places)

    members = jnp.full((places,), T, jnp.int32).at[place].set(order.astype(jnp.int32), mode="drop")
    number = ordered * (T // m + 2) + rank // m
    chunk, slot = (jnp.zeros_like(bucket).at[order].set(x) for x in (number, place))
    return chunk, slot, members.reshape(places // m, m)
