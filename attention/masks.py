"""Masks: boolean arrays, `True` where a query may attend to a key. Combine them with `&` and `|`.

The rule of rank, which holds wherever this package takes a mask: **a mask has every axis of the
scores `[*B N T S]`**, of size 1 where it does not vary. Nothing else is accepted, since a mask
whose axes had to be guessed would be read wrongly in silence whenever two sizes agree, `[B S]` as
`[T S]` for one. So the builders return masks that can be used and combined as they are:

- those made from data (`padding`, `segments`, `edges`) have the batch axes of that data;
- those made from sizes alone (`causal`, `band`) have `batch_dims` axes of size 1, by default one,
  for queries `[B T N H]`; for unbatched queries `[T N H]` say `batch_dims=0`.
"""

import operator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from attention import contract


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
    _check_integers("lengths", lengths)
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
    return _ahead(T, S, query_offset, batch_dims) <= 0


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
    ahead = _ahead(T, S, query_offset, batch_dims)
    return (ahead >= -left) & (ahead <= right)


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
    _check_integers("query_ids", query_ids)
    _check_integers("key_ids", key_ids)
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
        _check_integers(name, nodes)
        known = np.zeros(0) if isinstance(nodes, jax.core.Tracer) else np.asarray(nodes)
        outside = known[(known < 0) | (known >= n)]
        if outside.size:
            raise ValueError(
                f"{name} {known.shape} holds node {outside[0]}; a graph of {n} nodes has nodes 0 to {n - 1}"
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


def _ahead(
    T: int, S: int | None, query_offset: int | Array | None, batch_dims: int
) -> Int[Array, "*B 1 T S"]:
    """How far each key stands ahead of each query."""
    T = operator.index(T)
    S = T if S is None else operator.index(S)
    if query_offset is None:
        contract.check_lengths(T, S)
        query_offset = 0
    offset = jnp.asarray(query_offset)
    _check_integers("query_offset", offset)
    if offset.ndim not in (0, batch_dims):
        raise ValueError(
            f"query_offset must be one integer or have batch_dims={batch_dims} axes, "
            f"got {offset.shape} for a mask {(T, S)}"
        )
    batch = offset.shape or (1,) * batch_dims
    offset = offset.astype(jnp.int32).reshape(*batch, 1, 1, 1)
    queries = jnp.arange(T, dtype=jnp.int32).reshape((1,) * len(batch) + (1, T, 1))
    keys = jnp.arange(S, dtype=jnp.int32).reshape((1,) * len(batch) + (1, 1, S))
    return keys - (queries + offset)


def _check_integers(name: str, array: Array) -> None:
    dtype = jnp.result_type(array)
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name} {jnp.shape(array)} must be integers, got {dtype}")
