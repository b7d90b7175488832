"""Attention with relative positions: Shaw's keys and values, T5's buckets, ALiBi's slopes."""

from functools import partial

import jax.numpy as jnp
import numpy as np

import attention
from attention import relative_positions
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

AHEAD = 1  # of the keys where the first query stands, when lengths differ


def first_query(T, S):
    return 0 if T == S else AHEAD


def clipped(T, S, k):
    """Which of 2k+1 vectors each query sees each key with."""
    return [[min(max(s - t - first_query(T, S), -k), k) + k for s in range(S)] for t in range(T)]


def shaw(query, key, value, *, with_values, **options):
    tables = {"key_table": jnp.asarray(parameter("keys", 5, query.shape[-1]), query.dtype)}
    if with_values:
        tables["value_table"] = jnp.asarray(parameter("values", 7, value.shape[-1]), query.dtype)
    at = first_query(query.shape[-3], key.shape[-3])
    return relative_positions.shaw_attention(query, key, value, query_offset=at, **tables, **options)


def shaw_weights(query, key, visible, bias):
    (_, T, _, H), S = query.shape, key.shape[1]
    vectors = parameter("keys", 5, H)[np.array(clipped(T, S, 2), int).reshape(T, S)]  # [T S H]
    relative = np.einsum("btnh,tsh->bnts", query, vectors) / H**0.5
    return oracle.weights(query, key, visible, bias + relative)


def relative_values(weights, V):
    T, S = weights.shape[-2:]
    vectors = parameter("values", 7, V)[np.array(clipped(T, S, 3), int).reshape(T, S)]  # [T S V]
    return np.einsum("bnts,tsv->btnv", weights, vectors)


def biased(make):
    """Attention with a bias of positions beside the given one."""

    def call(query, key, value, *, mask=None, bias=None):
        (*batch, T, N, _), S = query.shape, key.shape[-3]
        made = make(query.dtype, N, T, S, query_offset=first_query(T, S), batch_dims=len(batch))
        return attention.attend(query, key, value, mask=mask, bias=made if bias is None else made + bias)

    return call


def biased_weights(make):
    def weights(query, key, visible, bias):
        (_, T, N, _), S = query.shape, key.shape[1]
        made = [
            [[make(n, N, s - t - first_query(T, S)) for s in range(S)] for t in range(T)] for n in range(N)
        ]
        return oracle.weights(query, key, visible, bias + np.array(made).reshape(N, T, S))

    return weights


def t5(dtype, N, T, S, **options):
    table = jnp.asarray(parameter("t5", 8, N), dtype)
    return relative_positions.t5_bias(table, T, S, max_distance=6, **options)


def t5_oracle(n, N, distance):
    # Of the four buckets for one direction the last is for distances above 2 (6 / 2)^(1 / 2) = 3.46.
    bucket = [0, 1, 2, 2, 3][min(abs(distance), 4)] + (4 if distance > 0 else 0)
    return parameter("t5", 8, N)[bucket, n]


def alibi(dtype, N, T, S, **options):
    return relative_positions.alibi(N, T, S, dtype=dtype, **options)


def alibi_oracle(n, N, distance):
    return -abs(distance) * {1: [2**-8], 2: [2**-4, 2**-8], 4: [2**-2, 2**-4, 2**-6, 2**-8]}[N][n]


MECHANISMS = [
    Mechanism(
        "relative-shaw",
        partial(shaw, with_values=True),
        shaw_weights,
        relative_values,
        bag_of_words=False,
        shift_invariant=True,
    ),
    Mechanism(
        "relative-shaw_keys",
        partial(shaw, with_values=False),
        shaw_weights,
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
    Mechanism(
        "relative-t5",
        biased(t5),
        biased_weights(t5_oracle),
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
    Mechanism(
        "relative-alibi",
        biased(alibi),
        biased_weights(alibi_oracle),
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
]
