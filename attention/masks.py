"""Masks: boolean arrays, `True` where a query may attend to a key. Combine them with `&` and `|`.

The rule of rank, which holds wherever this package takes a mask: **a mask has every axis of the
scores `[*B N T S]`**, of size 1 where it does not vary. Nothing else is accepted, since a mask
whose axes had to be guessed would be read wrongly in silence whenever two sizes agree, `[B S]` as
`[T S]` for one. So the builders return masks that can be used and combined as they are:

- those made from data (`padding`, `segments`, `edges`, `global_tokens`) have the batch axes of that
  data;
- those made from sizes alone (`causal`, `band`, `dilated`, `blocks`, `strided`, `fixed`,
  `random_blocks`) have `batch_dims` axes of size 1, by default one, for queries `[B T N H]`; for
  unbatched queries `[T N H]` say `batch_dims=0`.

The sparse patterns of the literature are unions of these:

- Longformer: `band(T, T, (w, w)) | global_tokens(...)`, or with `dilated` in place of `band`;
- BigBird: blocks near the diagonal, global blocks and `random_blocks`;
- Sparse Transformer: `strided` or `fixed`.
"""

import operator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from attention import positions
from attention.internals import contract


@contract.primitive("size")
def padding(lengths: Int[Array, "*B"], size: int) -> Bool[Array, "*B 1 1 {size}"]:
    """Show the first `lengths` keys of each sequence, hide the padding after them.

    Args:
        lengths: number of true positions of each sequence, `[*B]`.
        size: S, the padded length.

    Returns:
        Mask `[*B 1 1 S]`, `mask[b, 0, 0, s] = s < lengths[b]`.

    Raises:
        TypeError: lengths that are not integers.
    """
    lengths = jnp.asarray(lengths)
    contract.check_integers("lengths", lengths)
    keys = jnp.arange(size, dtype=jnp.int32).reshape((1,) * (lengths.ndim + 2) + (size,))
    return keys < lengths[..., None, None, None].astype(jnp.int32)


@contract.primitive("T", "S", "batch_dims")
def causal(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query the keys up to and including its own position.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys; one integer, or one for each batch
            element, with `batch_dims` axes. Needed where T differs from S.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`, `mask[b, 0, t, s] = s <= t + query_offset[b]`.

    Raises:
        ValueError: T differs from S and there is no query_offset.
    """
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    return keys <= queries


@contract.primitive("T", "S", "window", "batch_dims")
def band(
    T: int,
    S: int,
    window: tuple[int, int],
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query the keys near its own position.

    Args:
        T: number of queries.
        S: number of keys.
        window: `(left, right)`, how many keys before and after the query's own position it sees
            besides that one: (3, 0) shows four keys.
        query_offset: position of the first query among the keys; one integer, or one for each batch
            element, with `batch_dims` axes. Needed where T differs from S.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`, `mask[b, 0, t, s] = -left <= s - (t + query_offset[b]) <= right`.

    Raises:
        ValueError: a negative side, or T differs from S and there is no query_offset.
        TypeError: a window that is not a pair of integers.
    """
    left, right = contract.check_window(window)
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    return (keys >= queries - left) & (keys <= queries + right)


@contract.primitive("T", "S", "window", "dilation", "batch_dims")
def dilated(
    T: int,
    S: int,
    window: tuple[int, int],
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    dilation: int,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query every `dilation`-th key around its own position, a band with gaps.

    Args:
        T: number of queries.
        S: number of keys.
        window: `(left, right)`, how many keys before and after the query's own position it sees
            besides that one: (3, 0) shows four keys, the first `3 dilation` before the query.
        query_offset: position of the first query among the keys, as for `band`.
        dilation: distance of two neighbouring visible keys; 1 makes a `band`.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`, True where `s - (t + query_offset[b]) = i dilation` for an integer i,
        `-left <= i <= right`.

    Raises:
        ValueError: a negative side, a dilation below 1, or T differs from S and there is no
            query_offset.
        TypeError: a window that is not a pair of integers.

    Beltagy, Peters and Cohan (2020), "Longformer: the long-document transformer".
    """
    left, right = contract.check_window(window)
    dilation = contract.check_at_least_one("dilation", dilation)
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    ahead = keys - queries
    steps = ahead // dilation
    return (ahead % dilation == 0) & (steps >= -left) & (steps <= right)


@contract.primitive("T", "S", "block_size", "batch_dims")
def blocks(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    block_size: int,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query the keys of its own block, for sequences cut into blocks of one size.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, as for `causal`.
        block_size: length of a block; the last one may be shorter.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`, True where `(t + query_offset[b]) // block_size = s // block_size`.

    Raises:
        ValueError: a block_size below 1, or T differs from S and there is no query_offset.

    Qiu et al. (2020), "Blockwise self-attention for long document understanding".
    """
    block_size = contract.check_at_least_one("block_size", block_size)
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    return queries // block_size == keys // block_size


@contract.primitive("T", "S", "stride", "batch_dims")
def strided(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    stride: int,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query the last `stride` positions and, before them, every `stride`-th one.

    The strided pattern of the Sparse Transformer, causal as in the paper, with its two parts in one
    head: `A1[i] = {max(0, i - l), ..., i}` and `A2[i] = {j <= i: (i - j) mod l = 0}`. To put them on
    separate heads, take `band(T, S, (stride, 0))` and `dilated(T, S, (S, 0), dilation=stride)`.
    With a stride near `sqrt(S)` a query sees `O(sqrt(S))` keys, and everything within two layers.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, as for `causal`.
        stride: l.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`; with `i = t + query_offset[b]`, True where `s <= i` and either
        `i - s <= stride` or `(i - s) mod stride = 0`.

    Raises:
        ValueError: a stride below 1, or T differs from S and there is no query_offset.

    Child et al. (2019), "Generating long sequences with sparse transformers".
    """
    stride = contract.check_at_least_one("stride", stride)
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    back = queries - keys
    return (back >= 0) & ((back <= stride) | (back % stride == 0))


@contract.primitive("T", "S", "stride", "summary", "batch_dims")
def fixed(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    stride: int,
    summary: int = 1,
    batch_dims: int = 1,
) -> Bool[Array, "*B 1 T S"]:
    """Show each query its own block so far and the last positions of every earlier block.

    The fixed pattern of the Sparse Transformer, causal as in the paper, with its two parts in one
    head: `A1[i] = {j <= i: floor(j / l) = floor(i / l)}` and
    `A2[i] = {j <= i: j mod l in {l - c, ..., l - 1}}`; positions are counted from 0. The last c
    positions of a block are where it is summed up for all later ones.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, as for `causal`.
        stride: l, the length of a block.
        summary: c, at most `stride`.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B 1 T S]`; with `i = t + query_offset[b]`, True where `s <= i` and either
        `s // stride = i // stride` or `s mod stride >= stride - summary`.

    Raises:
        ValueError: a stride or summary below 1, a summary longer than a block, or T differs from S
            and there is no query_offset.

    Child et al. (2019), "Generating long sequences with sparse transformers".
    """
    stride = contract.check_at_least_one("stride", stride)
    summary = contract.check_at_least_one("summary", summary)
    if summary > stride:
        raise ValueError(f"summary {summary} is longer than a block of stride {stride}")
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    own_block = keys // stride == queries // stride
    return (keys <= queries) & (own_block | (keys % stride >= stride - summary))


@contract.primitive()
def global_tokens(
    queries: Bool[Array, "*B T"], keys: Bool[Array, "*B S"] | None = None
) -> Bool[Array, "*B 1 T S"]:
    """Show global positions everything, and show them to everyone.

    Args:
        queries: which queries are global, `[*B T]`; the first g of every sequence in a batch are
            `(jnp.arange(T) < g)[None]`.
        keys: the same for the keys, `[*B S]`; those of the queries if None.

    Returns:
        Mask `[*B 1 T S]`, `mask[b, 0, t, s] = queries[b, t] or keys[b, s]`.

    Raises:
        ValueError: arrays whose batch axes differ.
        TypeError: arrays that are not boolean.

    Beltagy, Peters and Cohan (2020), "Longformer: the long-document transformer".
    """
    queries = jnp.asarray(queries)
    keys = queries if keys is None else jnp.asarray(keys)
    for name, array in (("queries", queries), ("keys", keys)):
        if array.dtype != jnp.bool_:
            raise TypeError(f"{name} {array.shape} must be boolean, True where global, got {array.dtype}")
    if queries.ndim == 0 or queries.shape[:-1] != keys.shape[:-1]:
        raise ValueError(
            f"queries [*B T] and keys [*B S] must have the same batch axes, "
            f"got {queries.shape} and {keys.shape}"
        )
    return queries[..., None, :, None] | keys[..., None, None, :]


@contract.primitive("T", "S", "block_size", "count", "heads", "batch_dims")
def random_blocks(
    key: PRNGKeyArray,
    T: int,
    S: int | None = None,
    *,
    block_size: int,
    count: int,
    heads: int = 1,
    batch_dims: int = 1,
) -> Bool[Array, "*B {heads} T S"]:
    """Show the queries of each block the keys of a few blocks drawn at random.

    The draw is a function of the key alone: one key gives one pattern, in training and evaluation
    alike. It is made block by block, so `random_blocks(key, T // b, S // b, block_size=1, count=r)`
    says which blocks those of `random_blocks(key, T, S, block_size=b, count=r)` are. Each block of
    queries draws uniformly and without replacement from all blocks of keys, its own and those that
    other masks show already among them.

    Args:
        key: a key of `jax.random.key`.
        T: number of queries.
        S: number of keys, T if None.
        block_size: length of a block; the last one may be shorter.
        count: how many blocks of keys each block of queries sees.
        heads: how many patterns to draw, N for one per head, 1 for the same in all.
        batch_dims: number of batch axes.

    Returns:
        Mask `[*B heads T S]`.

    Raises:
        ValueError: sizes below 1, a negative count, or more blocks than there are.

    Zaheer et al. (2020), "Big Bird: transformers for longer sequences".
    """
    T = operator.index(T)
    S = T if S is None else operator.index(S)
    block_size = contract.check_at_least_one("block_size", block_size)
    heads = contract.check_at_least_one("heads", heads)
    rows, columns = -(-T // block_size), -(-S // block_size)
    if not 0 <= operator.index(count) <= columns:
        raise ValueError(
            f"count must be from 0 to the number of blocks of keys, which is {columns} for {S} keys in "
            f"blocks of {block_size}, got {count}"
        )
    lots = jax.random.uniform(key, (heads, rows, columns))
    rank = jnp.argsort(jnp.argsort(lots, axis=-1), axis=-1)
    seen = rank < count
    seen = jnp.repeat(jnp.repeat(seen, block_size, axis=1)[:, :T], block_size, axis=2)[..., :S]
    return seen.reshape((1,) * batch_dims + (heads, T, S))


@contract.primitive()
def segments(
    query_ids: Int[Array, "*B T"], key_ids: Int[Array, "*B S"] | None = None
) -> Bool[Array, "*B 1 T S"]:
    """Show each query the keys of its own segment, for several sequences packed into one.

    Args:
        query_ids: which segment each query belongs to, `[*B T]`.
        key_ids: the same for the keys, `[*B S]`; those of the queries if None.

    Returns:
        Mask `[*B 1 T S]`, `mask[b, 0, t, s] = query_ids[b, t] == key_ids[b, s]`.

    Raises:
        ValueError: ids whose batch axes differ.
        TypeError: ids that are not integers.
    """
    query_ids = jnp.asarray(query_ids)
    key_ids = query_ids if key_ids is None else jnp.asarray(key_ids)
    contract.check_integers("query_ids", query_ids)
    contract.check_integers("key_ids", key_ids)
    if query_ids.ndim == 0 or query_ids.shape[:-1] != key_ids.shape[:-1]:
        raise ValueError(
            f"query_ids [*B T] and key_ids [*B S] must have the same batch axes, "
            f"got {query_ids.shape} and {key_ids.shape}"
        )
    return query_ids[..., None, :, None] == key_ids[..., None, None, :]


def edges(senders: Int[Array, "*B E"], receivers: Int[Array, "*B E"], n: int) -> Bool[Array, "*B 1 {n} {n}"]:
    """Show each node of a graph the nodes that have an edge to it.

    An edge listed twice counts once, so a list can be filled up by repeating one of its edges.

    Args:
        senders: the node each edge starts from, which is a key, `[*B E]`.
        receivers: the node each edge ends at, which is a query, `[*B E]`.
        n: number of nodes.

    Returns:
        Mask `[*B 1 n n]`, True in `mask[b, 0, receivers[b, e], senders[b, e]]`.

    Raises:
        ValueError: shapes that differ, or an index outside [0, n). While JAX traces, when indices
            are not known, an edge with such an index is left out.
        TypeError: indices that are not integers.
    """
    for name, nodes in (("senders", senders), ("receivers", receivers)):
        contract.check_integers(name, nodes)
        outside = contract.first_outside(nodes, n)
        if outside is not None:
            raise ValueError(
                f"{name} {np.shape(nodes)} holds node {outside}; a graph of {n} nodes has nodes 0 to {n - 1}"
            )
    if np.ndim(senders) == 0 or np.shape(senders) != np.shape(receivers):
        raise ValueError(
            f"senders and receivers must both be [*B E], got {np.shape(senders)} and {np.shape(receivers)}"
        )
    return _edges(senders, receivers, n)


@contract.primitive("n")
def _edges(senders: Int[Array, "*B E"], receivers: Int[Array, "*B E"], n: int) -> Bool[Array, "*B 1 {n} {n}"]:
    def one_graph(senders: Int[Array, "E"], receivers: Int[Array, "E"]) -> Bool[Array, "1 n n"]:
        # Indexing from the end, as NumPy reads -1, would turn a wrong index into a wrong edge.
        senders, receivers = senders.astype(jnp.int32), receivers.astype(jnp.int32)
        inside = (senders >= 0) & (receivers >= 0)
        rows = jnp.where(inside, receivers, n)
        return jnp.zeros((1, n, n), bool).at[0, rows, senders].set(True, mode="drop")

    for _ in senders.shape[:-1]:
        one_graph = jax.vmap(one_graph)
    return one_graph(senders, receivers)
