"""Attention along the edges of a graph: each node attends to the nodes that have an edge to it.

Scores exist for the listed edges only. Softmax is taken over the edges that end at the same node, by sums
over segments of the edge list, which is sorted by receiver first; then an edge listed twice stands beside
its copy and counts once.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention.internals import contract, dropout, grouped, unseen
from attention.internals.softmax_parts import finite_maximum


class Edges(NamedTuple):
    """A list of edges, `[E]` or `[*B E]`."""

    senders: Int[Array, "..."]
    receivers: Int[Array, "..."]
    exist: Bool[Array, "..."] | None


def graph_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    senders: Int[Array, "..."],
    receivers: Int[Array, "..."],
    edge_mask: Bool[Array, "..."] | None = None,
    mask: Bool[Array, "*#B 1 1 #S"] | None = None,
    edge_bias: Float[Array, "*B N E"] | None = None,
    scale: float | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N E"]]:
    """Softmax over incoming edges, `out[t] = sum_{s -> t} softmax(scale * q[t] . k[s]) v[s]`.

    Equal to `attend` with `masks.edges`. Queries are of receiving nodes, keys and values of sending ones;
    in a graph on one set of nodes T equals S. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        senders: the node each edge starts from, which is a key; `[E]` for one graph throughout, `[*B E]`
            for a graph per batch element.
        receivers: the node each edge ends at, which is a query, of the same shape. An edge listed twice
            counts once.
        edge_mask: boolean, True for the edges that exist, of the same shape: lists of different lengths
            are filled up with edges that do not.
        mask: boolean, True for the sending nodes that exist, `[*B 1 1 S]`.
        edge_bias: added to the score of each edge, `[*B N E]`; -inf hides the edge. Of an edge listed
            twice the first listing counts.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.
        dropout_rate: probability of dropping a weight, in [0, 1), after normalisation. A Python number.
        dropout_key: random key, needed where dropout_rate is above 0.
        return_weights: return the weight of each edge as well, as it is before dropout.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for a node without edges; with `return_weights` a
        pair of it and the weights `[*B N E]` in float32 or wider, 0 for what is not an edge and for the
        second listing of one.

    Raises:
        ValueError: shapes that do not fit, a dropout_rate outside [0, 1) or without its key, or an edge
            that exists with a node that does not. While JAX traces, when indices are not known, such an
            edge is left out.
        TypeError: dtypes that differ, indices that are not integers, an edge_mask that is not boolean.

    Cost: O(E + T + S) time and memory, and sorting the E edges.

    Velickovic et al. (2018), "Graph attention networks", with the score of Vaswani et al. (2017),
    "Attention is all you need".
    """
    shape = contract.check_attention(
        query, key, value, mask=mask, dropout_rate=dropout_rate, dropout_key=dropout_key
    )
    contract.check_key_mask("graph_attention", mask, shape)
    edges = _checked(senders, receivers, edge_mask, shape)
    bias = _checked_bias(edge_bias, edges, query)
    out, weights = _by_dot(query, key, value, edges, mask, bias, scale, dropout_rate, dropout_key)
    return (out, weights) if return_weights else out


def gat_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    *,
    query_vector: Float[Array, "N H"],
    key_vector: Float[Array, "N Hk"],
    senders: Int[Array, "..."],
    receivers: Int[Array, "..."],
    edge_mask: Bool[Array, "..."] | None = None,
    mask: Bool[Array, "*#B 1 1 #S"] | None = None,
    edge_bias: Float[Array, "*B N E"] | None = None,
    negative_slope: float = 0.2,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N E"]]:
    """GAT's additive score over incoming edges, `score[s -> t] = leaky_relu(a . [q[t]; k[s]])`.

    The vector a is given in its two halves. In the paper query, key and value are one and the same
    projection `W h` of the nodes. The score is a sum of a term for each node, so that no edge needs more
    than an addition. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K Hk]`, K divides N; its head dim may differ from the query's.
        value: `[*B S K V]`.
        query_vector: the half of a for the receiving node, one per query head, `[N H]`.
        key_vector: the half of a for the sending node, one per query head, `[N Hk]`.
        senders: as for `graph_attention`.
        receivers: as for `graph_attention`.
        edge_mask: as for `graph_attention`.
        mask: as for `graph_attention`.
        edge_bias: as for `graph_attention`.
        negative_slope: slope of the leaky ReLU below 0. A Python number.
        dropout_rate: as for `graph_attention`.
        dropout_key: as for `graph_attention`.
        return_weights: return the weight of each edge as well, as it is before dropout.

    Returns:
        As `graph_attention`.

    Raises:
        ValueError: as `graph_attention`.
        TypeError: as `graph_attention`.

    Cost: O(E + T + S) time and memory, and sorting the E edges.

    Velickovic et al. (2018), "Graph attention networks".
    """
    shape = contract.check_attention(
        query,
        key,
        value,
        same_width=False,
        mask=mask,
        dropout_rate=dropout_rate,
        dropout_key=dropout_key,
    )
    contract.check_key_mask("gat_attention", mask, shape)
    contract.check_floating(query=query, query_vector=query_vector, key_vector=key_vector)
    N = query.shape[-2]
    contract.check_parameter("query_vector [N H]", query_vector, (N, query.shape[-1]))
    contract.check_parameter("key_vector [N Hk]", key_vector, (N, key.shape[-1]))
    edges = _checked(senders, receivers, edge_mask, shape)
    bias = _checked_bias(edge_bias, edges, query)
    vectors = query_vector, key_vector
    out, weights = _by_sum(
        query, key, value, vectors, edges, mask, bias, negative_slope, dropout_rate, dropout_key
    )
    return (out, weights) if return_weights else out


def _checked(
    senders: Int[Array, "..."],
    receivers: Int[Array, "..."],
    edge_mask: Bool[Array, "..."] | None,
    scores: contract.Shape,
) -> Edges:
    """The edges, or an error where they are not edges of a graph of this size."""
    *batch, _, T, S = scores
    for name, nodes in (("senders", senders), ("receivers", receivers)):
        contract.check_integers(name, nodes)
    shape = np.shape(senders)
    if not shape or np.shape(receivers) != shape or shape[:-1] not in ((), tuple(batch)):
        raise ValueError(
            f"senders and receivers must both be [E] or [*B E] with batch axes {tuple(batch)}, got "
            f"{shape} and {np.shape(receivers)}"
        )
    if edge_mask is not None and edge_mask.dtype != jnp.bool_:
        raise TypeError(f"edge_mask {edge_mask.shape} must be boolean, got {edge_mask.dtype}")
    if edge_mask is not None and edge_mask.shape != shape:
        raise ValueError(f"edge_mask must have the shape of senders {shape}, got {edge_mask.shape}")
    for name, nodes, size in (("senders", senders, S), ("receivers", receivers, T)):
        outside = contract.first_outside(nodes, size, True if edge_mask is None else edge_mask)
        if outside is not None:
            raise ValueError(
                f"{name} {shape} holds node {outside}, but there are only the nodes 0 to "
                f"{size - 1} for scores {scores}"
            )
    return Edges(jnp.asarray(senders), jnp.asarray(receivers), edge_mask)


def _checked_bias(
    edge_bias: Float[Array, "..."] | None, edges: Edges, query: Float[Array, "*B T N H"]
) -> Float[Array, "*B N E"] | None:
    """The bias, or an error where it is not one of these edges for these heads."""
    if edge_bias is None:
        return None
    *batch, _, N, _ = query.shape
    contract.check_floating(query=query, edge_bias=edge_bias)
    contract.check_parameter("edge_bias [*B N E]", edge_bias, (*batch, N, edges.senders.shape[-1]))
    return edge_bias


@contract.primitive("scale", "dropout_rate")
def _by_dot(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    edges: Edges,
    mask: Bool[Array, "*#B 1 1 #S"] | None,
    bias: Float[Array, "*B N E"] | None,
    scale: float | None,
    dropout_rate: float,
    dropout_key: PRNGKeyArray | None,
) -> tuple[Float[Array, "*B T N V"], Float[Array, "*B N E"]]:
    dtype = contract.working_dtype(query.dtype)
    factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale

    def score(
        query: Float[Array, "T N H"],
        key: Float[Array, "S K H"],
        receivers: Int[Array, "E"],
        senders: Int[Array, "E"],
    ) -> Float[Array, "E N"]:
        (_, N, H), (_, K, _) = query.shape, key.shape
        ends = query[receivers].reshape(-1, K, N // K, H).astype(dtype)
        starts = key[senders][:, :, None].astype(dtype)
        return factor * jnp.sum(ends * starts, axis=-1).reshape(-1, N)

    return _attend(score, query, key, value, edges, mask, bias, dropout_rate, dropout_key)


@contract.primitive("negative_slope", "dropout_rate")
def _by_sum(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    vectors: tuple[Float[Array, "N H"], Float[Array, "N Hk"]],
    edges: Edges,
    mask: Bool[Array, "*#B 1 1 #S"] | None,
    bias: Float[Array, "*B N E"] | None,
    negative_slope: float,
    dropout_rate: float,
    dropout_key: PRNGKeyArray | None,
) -> tuple[Float[Array, "*B T N V"], Float[Array, "*B N E"]]:
    dtype = contract.working_dtype(query.dtype)
    N = query.shape[-2]
    query_vector, key_vector = vectors

    def score(
        query: Float[Array, "T N H"],
        key: Float[Array, "S K Hk"],
        receivers: Int[Array, "E"],
        senders: Int[Array, "E"],
    ) -> Float[Array, "E N"]:
        of_query = jnp.einsum("tnh,nh->tn", query, query_vector, preferred_element_type=dtype)
        of_key = jnp.einsum("snh,nh->sn", grouped.repeat(key, N), key_vector, preferred_element_type=dtype)
        return jax.nn.leaky_relu(of_query[receivers] + of_key[senders], negative_slope)

    return _attend(score, query, key, value, edges, mask, bias, dropout_rate, dropout_key)


def _attend(
    score: Callable[..., Array],
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    edges: Edges,
    mask: Bool[Array, "*#B 1 1 #S"] | None,
    bias: Float[Array, "*B N E"] | None,
    dropout_rate: float,
    dropout_key: PRNGKeyArray | None,
) -> tuple[Float[Array, "*B T N V"], Float[Array, "*B N E"]]:
    """Every graph of the batch by itself, `score(query, key, receivers, senders) -> [E N]`."""
    *batch, T, N, _ = query.shape
    S, E = key.shape[-3], edges.senders.shape[-1]
    shown = unseen.existing(mask, batch, S)
    exist = jnp.asarray(True) if edges.exist is None else edges.exist
    senders, receivers, exist = (
        jnp.broadcast_to(x, (*batch, E)) for x in (edges.senders, edges.receivers, exist)
    )
    if 0 in (*batch, T, S, E):
        nothing = jnp.zeros((*batch, N, E), contract.working_dtype(query.dtype))
        return jnp.zeros((*batch, T, N, value.shape[-1]), query.dtype), nothing
    dtype = contract.working_dtype(query.dtype)
    # Drawn for the whole batch at once, so that no two graphs share a draw.
    added = None if bias is None else jnp.swapaxes(bias, -1, -2).astype(dtype)
    kept = dropout.drop(jnp.ones((*batch, E, N), dtype), dropout_rate, dropout_key) if dropout_rate else None
    one_graph = partial(_one_graph, score)
    for _ in batch:
        one_graph = jax.vmap(one_graph)
    return one_graph(query, key, value, senders, receivers, exist, shown, added, kept)


def _one_graph(
    score: Callable[..., Array],
    query: Float[Array, "T N H"],
    key: Float[Array, "S K Hk"],
    value: Float[Array, "S K V"],
    senders: Int[Array, "E"],
    receivers: Int[Array, "E"],
    exist: Bool[Array, "E"],
    shown: Bool[Array, "S"],
    added: Float[Array, "E N"] | None,
    kept: Float[Array, "E N"] | None,
) -> tuple[Float[Array, "T N V"], Float[Array, "N E"]]:
    (T, N, _), (_, K, V) = query.shape, value.shape
    dtype = contract.working_dtype(query.dtype)
    receivers, senders, first, order = _sorted(senders, receivers, exist, shown, T)
    seen = jnp.broadcast_to(first[:, None], (len(first), N))
    if added is not None:
        added = added[order]
        seen = seen & (added > -jnp.inf)

    def add(x: Array) -> Array:
        """Sum over the edges that end at each node."""
        return jax.ops.segment_sum(x, receivers, T, indices_are_sorted=True)

    def any_seen(bad: Bool[Array, "S K"]) -> Bool[Array, "T N"]:
        return add((jnp.repeat(bad[senders], N // K, axis=1) & seen).astype(jnp.int32)) > 0

    bad_query, bad_key, bad_value = (~jnp.all(jnp.isfinite(x), axis=-1) for x in (query, key, value))
    own = bad_query & (add(seen.astype(jnp.int32)) > 0)
    nan_scores, nan_sums = (
        jnp.where(own | any_seen(bad), jnp.nan, 0.0).astype(dtype) for bad in (bad_key, bad_key | bad_value)
    )
    query, key, value = (jnp.where(jnp.isfinite(x), x, 0.0) for x in (query, key, value))

    # A gather needs some node even for what is no edge; `add` drops it by its receiver, T.
    ends = jnp.minimum(receivers, T - 1)
    scores = score(query, key, ends, senders)
    scores = jnp.where(seen, scores if added is None else scores + added, -jnp.inf)
    highest = jax.ops.segment_max(jax.lax.stop_gradient(scores), receivers, T, indices_are_sorted=True)
    powers = jnp.exp(scores - finite_maximum(highest)[ends])
    total = add(powers)
    total = jnp.where(total > 0, total, 1.0)
    used = powers if kept is None else powers * kept
    sums = add(used.reshape(-1, K, N // K, 1) * value[senders][:, :, None].astype(dtype))
    out = sums.reshape(T, N, V) / total[..., None] + nan_sums[..., None]
    weights = powers / total[ends] + jnp.where(seen, nan_scores[ends], 0.0)
    return out.astype(query.dtype), jnp.zeros_like(weights).at[order].set(weights).T


def _sorted(
    senders: Int[Array, "E"],
    receivers: Int[Array, "E"],
    exist: Bool[Array, "E"],
    shown: Bool[Array, "S"],
    T: int,
) -> tuple[Int[Array, "E"], Int[Array, "E"], Bool[Array, "E"], Int[Array, "E"]]:
    """Edges by receiver, then sender, with receiver T last for those that do not exist.

    Returns:
        Receivers, senders, which edges are seen (each once), and where each one stood in the list.
    """
    S = len(shown)
    senders, receivers = senders.astype(jnp.int32), receivers.astype(jnp.int32)
    exist = exist & (senders >= 0) & (senders < S) & (receivers >= 0) & (receivers < T)
    senders = jnp.where(exist, senders, 0)
    exist = exist & shown[senders]
    receivers = jnp.where(exist, receivers, T)
    order = jnp.arange(len(senders), dtype=jnp.int32)
    receivers, senders, order = jax.lax.sort((receivers, senders, order), num_keys=2)
    again = (receivers[1:] == receivers[:-1]) & (senders[1:] == senders[:-1])
    seen = (receivers < T) & jnp.pad(~again, (1, 0), constant_values=True)
    return receivers, senders, seen, order
