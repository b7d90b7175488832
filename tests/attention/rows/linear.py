"""Linear attention, with its own feature map and another one, and its causal form."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from attention.linear import linear_attention
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter


def elu_plus_one(x):
    return np.array([a + 1 if a > 0 else np.exp(a) for a in x])


def softplus(x, kernel):
    return np.log1p(np.exp(x @ kernel))


def kernel_weights(query_features, key_features=None):
    """Weights `phi(q) . phi(k)` over their sum."""
    key_features = key_features or query_features

    def weights(query, key, visible, bias):
        return oracle.weights(
            query,
            key,
            visible,
            bias,
            score=lambda q, k, n, m: query_features(q) @ key_features(k),
            normalize=lambda products: products / products.sum() if products.sum() else products,
        )

    return weights


def learned(query, key, value, **options):
    kernel = jnp.asarray(parameter("features", query.shape[-1], 5), query.dtype)
    return linear_attention(query, key, value, feature_map=Partial(projected, kernel=kernel), **options)


def projected(x, kernel):
    return jnp.logaddexp(x @ kernel.astype(x.dtype), jnp.zeros((), x.dtype))


def causal(size):
    return partial(linear_attention, is_causal=True, block_size=size)


def learned_weights(query, key, visible, bias):
    kernel = parameter("features", query.shape[-1], 5)
    return kernel_weights(partial(softplus, kernel=kernel))(query, key, visible, bias)


MECHANISMS = [
    Mechanism(
        "linear_attention",
        linear_attention,
        kernel_weights(elu_plus_one),
        mask="keys",
        bias=False,
    ),
    Mechanism(
        "linear_attention-learned_features", learned, learned_weights, mask="keys", bias=False, lean=True
    ),
    Mechanism(
        "linear_attention-causal",
        causal(2),
        kernel_weights(elu_plus_one),
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=lambda T, S: np.tri(T, S, dtype=bool),
        causal=True,
        with_block_size=causal,
    ),
]
