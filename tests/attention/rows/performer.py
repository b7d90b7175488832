"""Performer, against the explicit weights of the same random features, and its causal form."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attention.performer import performer_attention
from tests.attention.mechanism import Mechanism, parameter
from tests.attention.rows.linear import kernel_weights

M = 16


def call(query, key, value, **options):
    projection = jnp.asarray(parameter("performer", M, query.shape[-1]), query.dtype)
    return performer_attention(query, key, value, projection=projection, **options)


def features(x, projection):
    x = x / len(x) ** 0.25
    return np.array([np.exp(w @ x - x @ x / 2) for w in projection]) / len(projection) ** 0.5


def weights(query, key, visible, bias):
    projection = parameter("performer", M, query.shape[-1])
    return kernel_weights(partial(features, projection=projection))(query, key, visible, bias)


def causal(size):
    return partial(call, is_causal=True, block_size=size)


MECHANISMS = [
    Mechanism("performer", call, weights, mask="keys", bias=False),
    Mechanism(
        "performer-causal",
        causal(2),
        weights,
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=lambda T, S: np.tri(T, S, dtype=bool),
        causal=True,
        with_block_size=causal,
    ),
]
