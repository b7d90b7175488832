"""Linformer: attention over R mixtures of the keys instead of over the S keys."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention import normalizers
from attention.internals import contract, grouped, unseen


@contract.primitive()
def linformer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    key_projection: Float[Array, "... S R"],
    value_projection: Float[Array, "... S R"] | None = None,
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
) -> Float[Array, "*B T N V"]:
    """Attention to keys and values projected along the length, `out = softmax(Q (E^T K)^T / sqrt(H)) F^T V`.

    The rows of the softmax are over the R projected keys, each a mixture of all positions; so no mask
    can hide a single key from a single query. With the identity for E and F this is dense attention.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        key_projection: E, `[S R]`, or one per key head `[K S R]`.
        value_projection: F, in the same forms; E if None.
        mask: boolean `[*B 1 1 S]`, True where a key exists. A masked key and its value count as zero
            vectors in the mixtures.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 where no key exists.

    Raises:
        ValueError: shapes that do not fit, or a mask that differs between queries, as a causal one.
        TypeError: dtypes that differ, a mask that is not boolean.

    Costs O(S R + T R) time and memory.

    Wang, Li, Khabsa, Fang and Ma (2020), "Linformer: self-attention with linear complexity".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask("linformer_attention", mask, shape)
    if value_projection is None:
        value_projection = key_projection
    if key_projection.shape[-1] != value_projection.shape[-1]:
        raise ValueError(
            f"key_projection and value_projection must have one width R, "
            f"got {key_projection.shape} and {value_projection.shape}"
        )
    query = unseen.hide_blind(query, mask, is_causal=False)
    keys = _project("key_projection", key_projection, unseen.hide(key, mask))
    values = _project("value_projection", value_projection, unseen.hide(value, mask))

    scale = max(query.shape[-1], 1) ** -0.5
    weights = normalizers.softmax(grouped.products(query.astype(keys.dtype), keys, scale))
    return jnp.swapaxes(grouped.sums(weights, values), -2, -3).astype(query.dtype)


def _project(
    name: str, projection: Float[Array, "... S R"], x: Float[Array, "*B S K H"]
) -> Float[Array, "*B R K H"]:
    """Mix the positions, in the working dtype."""
    contract.check_floating(query=x, **{name: projection})
    *_, S, K, _ = x.shape
    if projection.shape[:-1] not in ((S,), (K, S)):
        raise ValueError(
            f"{name} must be [S R] or [K S R] with S={S} and K={K}, got {projection.shape} for {x.shape}"
        )
    axes = "sr" if projection.ndim == 2 else "ksr"
    dtype = contract.working_dtype(x.dtype)
    return jnp.einsum(f"...skh,{axes}->...rkh", x.astype(dtype), projection.astype(dtype))
