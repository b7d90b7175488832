"""Softmax over keys met in several parts, such as those of a window and those at global positions.

The parts of one query must not share a key. Each keeps its own maximum, so that nothing overflows, and
they are brought to a common one when they are put together:

    out = sum_p exp(m_p - m) sums_p / sum_p exp(m_p - m) total_p,    m = max_p m_p

Scores stand with the keys before the queries, `[... S G T]`: sums and maxima over the keys then run along
whole vectors of queries, and matrix products find their factors as they lie in memory. On CPU that makes
narrow attention a quarter faster than `[... G T S]`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention.internals import contract


class Part(NamedTuple):
    """What the keys of one part add to the queries of G heads: -inf, 0 and 0 where none is visible."""

    maximum: Float[Array, "*L G T"]
    total: Float[Array, "*L G T"]
    sums: Float[Array, "*L G T V"]


def part(
    query: Float[Array, "*L G T H"],
    key: Float[Array, "*L S H"],
    value: Float[Array, "*L S V"],
    visible: Bool[Array, "*#L S 1 #T"],
    scale: float,
) -> Part:
    """Exponentials of scaled dot products over one part of the keys, in the working dtype."""
    *batch, G, T, H = query.shape
    S, V = value.shape[-2:]
    dtype = contract.working_dtype(query.dtype)
    if query.dtype == dtype:
        # Cheaper on the smaller array; in half precision it would cost one more rounding.
        query, scale = query * scale, 1.0
    # The queries of all heads end to end, so that each product is a plain matrix product.
    rows = query.reshape(*batch, G * T, H)
    scores = jnp.einsum("...sh,...qh->...sq", key, rows, preferred_element_type=dtype)
    scores = scores if scale == 1.0 else scores * scale
    scores = jnp.where(visible, scores.reshape(*batch, S, G, T), -jnp.inf)
    # The result does not depend on the maximum, so it is a constant to the gradient.
    maximum = jax.lax.stop_gradient(jnp.max(scores, axis=-3, initial=-jnp.inf))
    powers = jnp.exp(scores - finite_maximum(maximum)[..., None, :, :])
    rounded = powers.astype(value.dtype).reshape(*batch, S, G * T)
    sums = jnp.einsum("...sq,...sv->...qv", rounded, value, preferred_element_type=dtype)
    return Part(maximum, jnp.sum(powers, axis=-3), sums.reshape(*batch, G, T, V))


def softmax(*parts: Part) -> Float[Array, "*L G T V"]:
    """The weighted mean of the values of all parts together, 0 where no key is visible."""
    if len(parts) > 1:
        highest = jnp.max(jnp.stack([part.maximum for part in parts]), axis=0)
        shares = [jnp.exp(part.maximum - finite_maximum(highest)) for part in parts]
        total = sum(share * part.total for share, part in zip(shares, parts, strict=True))
        sums = sum(share[..., None] * part.sums for share, part in zip(shares, parts, strict=True))
    else:
        _, total, sums = parts[0]
    return sums / jnp.where(total > 0, total, 1.0)[..., None]


def undivided(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None
) -> tuple[Float[Array, "*B N T S"], Float[Array, "*B N T 1"], Float[Array, "*B N T 1"]]:
    """A softmax left in parts, for callers who divide later or want its logarithm.

    Returns:
        The exponentials `exp(a - m)`, 0 where masked; the divisor `sum exp(a - m)`, 1 where nothing
        is visible; and the shift `m`, -inf where nothing is visible, so that
        `m + log(divisor)` is the log-sum-exp of every row.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    # The result does not depend on the shift, so the shift is a constant to the gradient.
    shift = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf))
    if mask is None and scores.shape[-1] > 0:
        exponentials = jnp.exp(scores - shift)
        return exponentials, jnp.sum(exponentials, axis=-1, keepdims=True), shift
    exponentials = jnp.exp(scores - finite_maximum(shift))
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials, jnp.where(total == 0, 1.0, total), shift


def finite_maximum(maximum: Float[Array, "..."]) -> Float[Array, "..."]:
    """Something to subtract where no key is visible: -inf from -inf would be NaN."""
    return jnp.where(maximum == -jnp.inf, 0.0, maximum)
