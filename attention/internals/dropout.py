"""Dropout of attention weights."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def drop(
    weights: Float[Array, "*B N T S"], rate: float, key: PRNGKeyArray | None
) -> Float[Array, "*B N T S"]:
    """Each weight set to 0 with probability `rate`, and the others divided by `1 - rate`.

    The draws are independent for every batch element, head, query and key. At rate 0 nothing can
    be dropped, so a key given all the same is used for no draw.

    Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from overfitting".
    """
    if rate == 0 or key is None:
        return weights
    keep = jax.random.bernoulli(key, 1 - rate, weights.shape)
    return jnp.where(keep, weights / (1 - rate), 0.0)
