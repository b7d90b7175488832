"""`attend` with the scores of Synthesizers."""

from functools import partial

import numpy as np

import attention
from attention import synthesizer
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter
from tests.attention.rows.three_stages import learned

A = 9


def dense(query, key):
    (N, H), S = query.shape[-2:], key.shape[-3]
    return {
        "hidden_kernel": parameter("W1", N, H, A),
        "hidden_bias": parameter("b1", N, A),
        "kernel": parameter("W2", N, A, S) / 4,
        "bias": parameter("b2", N, S),
    }


def random(query, key):
    (T, N), S = query.shape[-3:-1], key.shape[-3]
    return {"matrix": parameter("R", N, T, S)}


def factorized_random(query, key):
    (T, N), S = query.shape[-3:-1], key.shape[-3]
    return {"query_factor": parameter("R1", N, T, 2), "key_factor": parameter("R2", N, S, 2)}


def dense_table(query, hidden_kernel, hidden_bias, kernel, bias):
    def row(q, n):
        return np.maximum(q @ hidden_kernel[n] + hidden_bias[n], 0) @ kernel[n] + bias[n]

    return lambda b, n, t: row(query[b, t, n], n)


def random_table(query, matrix):
    return lambda b, n, t: matrix[n, t]


def factorized_random_table(query, query_factor, key_factor):
    return lambda b, n, t: key_factor[n] @ query_factor[n, t]


def oracle_weights(parameters, table):
    def weights(query, key, visible, bias):
        scores = table(query, **parameters(query, key))
        weights = np.zeros(visible.shape)
        for b, n, t in np.ndindex(visible.shape[:3]):
            seen = visible[b, n, t] & (bias[b, n, t] > -np.inf)
            if seen.any():
                weights[b, n, t, seen] = oracle.softmax((scores(b, n, t) + bias[b, n, t])[seen])
        return weights

    return weights


MECHANISMS = [
    Mechanism(
        f"synthesizer-{name}",
        partial(attention.attend, score=learned(getattr(synthesizer, name), parameters)),
        oracle_weights(parameters, table),
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    )
    for name, parameters, table in (
        ("dense", dense, dense_table),
        ("random", random, random_table),
        ("factorized_random", factorized_random, factorized_random_table),
    )
]
