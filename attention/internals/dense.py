"""Softmax attention the plain way, all scores at once: what every cheaper form must equal."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attention.internals import dropout, grouped, softmax_parts, unseen


class Dense(NamedTuple):
    """Everything dense attention can tell; what the caller leaves unused is never computed."""

    out: Float[Array, "*B T N V"]
    weights: Float[Array, "*B N T S"]
    logsumexp: Float[Array, "*B N T"]


def dense(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    mask: Bool[Array, "*#B #N #T #S"] | None,
    bias: Float[Array, "*#B #N #T #S"] | None,
    *,
    scale: float,
    dropout_rate: float,
    dropout_key: PRNGKeyArray | None,
) -> Dense:
    """Attention from checked arguments, with the one division of a softmax put off to the end.

    `exp(a - m) V / sum(exp(a - m))` divides `[T V]` numbers where normalised weights would divide
    `[T S]`; its gradient, too, stores and passes over the exponentials only.
    """
    visible, bias = unseen.split_bias(mask, bias)
    finite = unseen.take_out(query, key, value, visible)
    scores = grouped.products(finite.query, finite.key, scale)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    exponentials, total, shift = softmax_parts.undivided(scores, visible)
    kept = dropout.drop(exponentials, dropout_rate, dropout_key)
    out = finite.restore_sums(grouped.sums(kept, finite.value) / total)
    return Dense(
        jnp.swapaxes(out, -2, -3).astype(query.dtype),
        finite.restore_weights(exponentials / total),
        finite.restore_rows(shift + jnp.log(total))[..., 0],
    )
