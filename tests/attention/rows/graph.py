"""Attention along the edges of a graph, with both scores."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attention.graph import gat_attention, graph_attention
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter


def edges(T, S):
    """Node 2 receives nothing, and one edge is listed twice."""
    every = [(s, t) for t in range(T) for s in range(S) if t != 2 and (t * t + 2 * s) % 3]
    listed = [*every[::-1], *every[:1]]
    return np.array(listed, np.int32).reshape(-1, 2).T


def pattern(T, S):
    seen = np.zeros((T, S), bool)
    for s, t in edges(T, S).T:
        seen[t, s] = True
    return seen


def along_edges(attend):
    def call(query, key, value, **options):
        senders, receivers = map(jnp.asarray, edges(query.shape[-3], key.shape[-3]))
        return attend(query, key, value, senders=senders, receivers=receivers, **options)

    return call


def vectors(query, key):
    N = query.shape[-2]
    return parameter("query", N, query.shape[-1]), parameter("key", N, key.shape[-1])


def gat(query, key, value, **options):
    of_query, of_key = (jnp.asarray(x, query.dtype) for x in vectors(query, key))
    return gat_attention(query, key, value, query_vector=of_query, key_vector=of_key, **options)


def gat_weights(query, key, visible, bias):
    a = np.concatenate(vectors(query, key), axis=-1)

    def score(q, k, n, m):
        x = a[n] @ np.concatenate([q, k])
        return x if x > 0 else 0.2 * x

    return oracle.weights(query, key, visible, bias, score)


row = partial(Mechanism, mask="keys", bias=False, bag_of_words=False, pattern=pattern)
MECHANISMS = [
    row("graph", along_edges(graph_attention)),
    row("graph-gat", along_edges(gat), gat_weights),
]
