"""Linformer, its projections shared by the heads or one for each."""

import jax.numpy as jnp
import numpy as np

from attention.linformer import linformer_attention
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

R = 3


def shared(key):
    S = key.shape[-3]
    return {"key_projection": parameter("E", S, R)}


def per_head(key):
    S, K = key.shape[-3:-1]
    return {"key_projection": parameter("E", K, S, R), "value_projection": parameter("F", K, S, R)}


def projected(parameters):
    def call(query, key, value, **options):
        made = {name: jnp.asarray(array, query.dtype) for name, array in parameters(key).items()}
        return linformer_attention(query, key, value, **made, **options)

    return call


def oracle_weights(parameters):
    """A key that is hidden is hidden from all queries, so it counts for nothing before the projection."""

    def weights(query, key, visible, bias):
        (B, T, N, H), (_, S, K, _) = query.shape, key.shape
        E, F = (list(parameters(key).values()) * 2)[:2]
        weights = np.zeros((B, N, T, S))
        for b, n, t in np.ndindex(B, N, T):
            m = n // (N // K)
            e, f = (x if x.ndim == 2 else x[m] for x in (E, F))
            shown = visible[b, n, t]
            scores = [
                sum(e[s, r] * (query[b, t, n] @ key[b, s, m]) for s in range(S) if shown[s]) for r in range(R)
            ]
            weights[b, n, t] = f @ oracle.softmax(np.array(scores) / H**0.5) * shown
        return weights

    return weights


MECHANISMS = [
    Mechanism(
        f"linformer-{parameters.__name__}",
        projected(parameters),
        oracle_weights(parameters),
        mask="keys",
        bias=False,
        bag_of_words=False,
        lean=parameters is shared,
    )
    for parameters in (shared, per_head)
]
