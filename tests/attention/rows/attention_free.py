"""Attention-free transformers, against their explicit sums, and their causal forms."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attention.attention_free import attention_free_full, attention_free_local
from tests.attention.mechanism import Mechanism, parameter

WINDOW = (2, 1)


def with_bias(function, **bound):
    def call(query, key, value, **options):
        shape = query.shape[-3], key.shape[-3]
        position_bias = jnp.asarray(parameter("aft", *shape), query.dtype)
        return function(query, key, value, position_bias=position_bias, **bound, **options)

    return call


def weights(query, key, visible, bias, window=None):
    """Of each channel, `[B N T S V]`, with the gate of the query in them."""
    (B, T, N, V), (_, S, K, _) = query.shape, key.shape
    position_bias = parameter("aft", T, S)
    weights = np.zeros((B, N, T, S, V))
    for b, n, t, s in np.ndindex(B, N, T, S):
        near = window is None or -window[0] <= s - t <= window[1]
        w = position_bias[t, s] if near else 0
        weights[b, n, t, s] = visible[b, n, t, s] * np.exp(w + key[b, s, n // (N // K)])
    total = weights.sum(axis=3, keepdims=True)
    gate = 1 / (1 + np.exp(-np.swapaxes(query, 1, 2)))
    return gate[:, :, :, None] * weights / np.where(total == 0, 1, total)


def row(name, function, window=None, causal=False, **more):
    bound = {} if window is None else {"window": window}
    bound |= {"is_causal": True} if causal else {}
    return Mechanism(
        name,
        with_bias(function, block_size=2, **bound),
        partial(weights, window=window),
        mask="keys",
        bias=False,
        one_width=True,
        square=causal or window is not None,
        bag_of_words=False,
        pattern=(lambda T, S: np.tri(T, S, dtype=bool)) if causal else None,
        causal=causal,
        with_block_size=lambda size: with_bias(function, block_size=size, **bound),
        **more,
    )


MECHANISMS = [
    row("attention_free_full", attention_free_full),
    row("attention_free_full-causal", attention_free_full, causal=True),
    row(
        "attention_free_local",
        attention_free_local,
        WINDOW,
        with_window=lambda window: with_bias(attention_free_local, window=window),
    ),
    row("attention_free_local-causal", attention_free_local, WINDOW, causal=True),
]
