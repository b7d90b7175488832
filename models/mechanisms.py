"""The attention mechanisms a config can name: `attention={"kind": "dot_product"}`.

A mechanism is a module called like `attention.attend`: `(query, key, value, *, mask, dropout_rate,
dropout_key, return_weights)`. It holds the parameters of its score, if any, and calls `attention`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

import attention
from errors import UserError, unknown


class DotProduct(nnx.Module):
    """Scaled dot product and softmax, by the fastest implementation (Vaswani et al. 2017)."""

    def __init__(self, num_heads: int, head_dim: int, *, implementation: Any = "auto", rngs: nnx.Rngs):
        self.implementation = implementation

    def __call__(self, query, key, value, **arguments):
        """Attend."""
        return attention.dot_product_attention(
            query, key, value, implementation=self.implementation, **arguments
        )


class Cosine(nnx.Module):
    """Cosine of query and key, times a learned sharpness per head (Graves et al. 2014)."""

    def __init__(self, num_heads: int, head_dim: int, *, rngs: nnx.Rngs):
        self.log_sharpness = nnx.Param(jnp.full((num_heads,), jnp.log(10.0)))

    def __call__(self, query, key, value, **arguments):
        """Attend."""
        score = jax.tree_util.Partial(_sharpened_cosine, log_sharpness=self.log_sharpness[...])
        return attention.attend(query, key, value, score=score, **arguments)


def _sharpened_cosine(query, key, *, log_sharpness):
    scores = attention.scores.cosine(query, key)
    heads = (1,) * (scores.ndim - 3) + (-1, 1, 1)
    return scores * jnp.exp(log_sharpness).reshape(heads)


MECHANISMS: dict[str, Callable[..., nnx.Module]] = {"dot_product": DotProduct, "cosine": Cosine}


def build(attention: Mapping | None, *, num_heads: int, head_dim: int, rngs: nnx.Rngs) -> nnx.Module:
    """The module for `{"kind": word, **arguments}`; None means `{"kind": "dot_product"}`."""
    arguments = dict(attention or {"kind": "dot_product"})
    kind = arguments.pop("kind", "dot_product")
    if kind not in MECHANISMS:
        raise unknown("attention kind", kind, MECHANISMS)
    try:
        return MECHANISMS[kind](num_heads, head_dim, **arguments, rngs=rngs)
    except TypeError as error:
        raise UserError(f"attention kind {kind!r}: {error}") from None
