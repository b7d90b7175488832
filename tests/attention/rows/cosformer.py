"""cosFormer, against its explicit reweighted kernel, and its causal form."""

from functools import partial

import numpy as np

from attention.cosformer import cosformer_attention
from tests.attention.mechanism import Mechanism

OFFSET, LENGTH = 2, 12


def call(query, key, value, **options):
    return cosformer_attention(query, key, value, query_offset=OFFSET, max_length=LENGTH, **options)


def weights(query, key, visible, bias, offset=OFFSET):
    (B, T, N, _), (_, S, K, _) = query.shape, key.shape
    weights = np.zeros((B, N, T, S))
    for b, n, t, s in np.ndindex(weights.shape):
        products = np.maximum(query[b, t, n], 0) * np.maximum(key[b, s, n // (N // K)], 0)
        angle = np.pi / 2 * (t + offset - s) / LENGTH
        weights[b, n, t, s] = visible[b, n, t, s] * products.sum() * np.cos(angle)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def causal(size):
    return partial(cosformer_attention, max_length=LENGTH, is_causal=True, block_size=size)


MECHANISMS = [
    Mechanism("cosformer", call, weights, mask="keys", bias=False, bag_of_words=False),
    Mechanism(
        "cosformer-causal",
        causal(2),
        partial(weights, offset=0),
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=lambda T, S: np.tri(T, S, dtype=bool),
        causal=True,
        with_block_size=causal,
    ),
]
