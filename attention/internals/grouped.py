"""Batched products with grouped heads: query head n meets key/value head `n // (N / K)`.

The queries of all heads that share a key head are laid end to end, `[*B K (N/K)*T H]`, so that one
batched matrix product serves them all and no key or value is ever repeated in memory. Products
accumulate in float32 or wider whatever the dtype of their factors.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.internals import contract


def products(
    query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"], scale: float = 1.0
) -> Float[Array, "*B N T S"]:
    """`scale * q . k` of every query with every key of its group, in the working dtype."""
    *batch, T, N, H = query.shape
    *_, S, K, _ = key.shape
    dtype = contract.working_dtype(query.dtype)
    if query.dtype == dtype:
        # Cheaper on the smaller array; in half precision it would cost one more rounding.
        query, scale = query * scale, 1.0
    rows = jnp.swapaxes(query, -3, -2).reshape(*batch, K, N // K * T, H)
    columns = jnp.swapaxes(key, -3, -2)
    scores = jnp.einsum("...qh,...sh->...qs", rows, columns, preferred_element_type=dtype)
    if scale != 1.0:
        scores = scores * scale
    return scores.reshape(*batch, N, T, S)


def sums(weights: Float[Array, "*B N T S"], value: Float[Array, "*B S K V"]) -> Float[Array, "*B N T V"]:
    """The sum of the values of each query's group under its weights, in the working dtype."""
    *batch, N, T, S = weights.shape
    *_, K, V = value.shape
    rows = weights.astype(value.dtype).reshape(*batch, K, N // K * T, S)
    columns = jnp.swapaxes(value, -3, -2)
    dtype = contract.working_dtype(value.dtype)
    out = jnp.einsum("...qs,...sv->...qv", rows, columns, preferred_element_type=dtype)
    return out.reshape(*batch, N, T, V)


def repeat(x: Float[Array, "*B S K H"], N: int) -> Float[Array, "*B S N H"]:
    """Keys or values written out once for every query head, for mechanisms that work head by head."""
    *batch, S, K, H = x.shape
    copies = jnp.broadcast_to(x[..., None, :], (*batch, S, K, N // K, H))
    return copies.reshape(*batch, S, N, H)
