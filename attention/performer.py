"""Performer: softmax attention estimated from positive random features (FAVOR+)."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attention import kernel
from attention.internals import contract


@contract.primitive("features", "width", "dtype")
def orthogonal_projection(
    key: PRNGKeyArray, features: int, width: int, dtype: jnp.dtype | type = jnp.float32
) -> Float[Array, "{features} {width}"]:
    """Rows for `performer_attention`: standard normal vectors, orthogonal to those of their block.

    Rows come in blocks of `width` that are orthogonal to each other, which lowers the variance of the
    estimate; their lengths are those of normal vectors, which keeps it unbiased.

    Args:
        key: a key of `jax.random.key`.
        features: M, number of rows.
        width: H, head dim of queries and keys.
        dtype: of the result.

    Returns:
        The projection `[M H]`.

    Choromanski et al. (2021), "Rethinking attention with performers".
    """
    for_directions, for_lengths = jax.random.split(key)
    blocks = -(-features // max(width, 1))
    directions = jax.random.orthogonal(for_directions, width, (blocks,), dtype).reshape(-1, width)[:features]
    normal = jax.random.normal(for_lengths, (features, width), dtype)
    return directions * jnp.linalg.norm(normal, axis=-1, keepdims=True)


@contract.primitive()
def log_positive_features(x: Float[Array, "*B H"], projection: Float[Array, "M H"]) -> Float[Array, "*B M"]:
    """The logarithm of the features `phi(x) = exp(w x - |x|^2 / 2) / sqrt(M)` of each row w of a projection.

    Over random w, `phi(x) . phi(y)` is an unbiased estimate of `exp(x . y)`.

    Args:
        x: `[*B H]`.
        projection: M rows w, `[M H]`.

    Returns:
        `log phi(x)`, `[*B M]`, in float32 or wider.

    Raises:
        ValueError: a projection of another width.
        TypeError: dtypes that differ.

    Choromanski et al. (2021), "Rethinking attention with performers", lemma 1.
    """
    contract.check_floating(x=x, projection=projection)
    if projection.ndim != 2 or projection.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"projection must be [M H] with H {x.shape[-1]}, got {projection.shape} for {x.shape}"
        )
    dtype = contract.working_dtype(x.dtype)
    x, projection = x.astype(dtype), projection.astype(dtype)
    products = jnp.einsum("...h,mh->...m", x, projection)
    return products - (jnp.sum(x * x, axis=-1, keepdims=True) + math.log(max(len(projection), 1))) / 2


@contract.primitive("is_causal", "block_size")
def performer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    projection: Float[Array, "M H"],
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
    is_causal: bool = False,
    block_size: int = 128,
) -> Float[Array, "*B T N V"]:
    """Attention with weights `phi(q') . phi(k')` over their sum, an estimate of `softmax(q . k / sqrt(H))`.

    Here `x' = x / H^(1/4)` and phi are the M positive random features of `log_positive_features`. The
    estimate of each `exp(q . k / sqrt(H))` is unbiased, and the error falls as `1 / sqrt(M)`; it grows
    exponentially with the lengths of q' and k'. Time `O((T + S) M V)`, memory `O((T + S) M)`. Head n of
    the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        projection: the rows w of the features, `[M H]`, such as of `orthogonal_projection`; the same for
            all heads, and in training and evaluation, until it is drawn anew.
        mask: boolean, True where a key exists; `[*B 1 1 S]`, as `masks.padding` makes it.
        is_causal: show each query only the keys up to its own position; T equals S.
        block_size: how many positions the causal form takes at once; changes nothing but speed.

    Returns:
        The output `[*B T N V]` in the query's dtype; 0 for a query that sees no key, or whose products of
        features are all too small for the dtype.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries or heads, is_causal
            where T differs from S.
        TypeError: dtypes that differ, a mask that is not boolean.

    Choromanski et al. (2021), "Rethinking attention with performers".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask("performer", mask, shape)
    contract.check_floating(query=query, projection=projection)
    contract.check_at_least_one("block_size", block_size)
    if is_causal:
        contract.check_self_attention("causal performer", shape)
    shrink = max(query.shape[-1], 1) ** -0.25
    rows = projection.astype(contract.working_dtype(projection.dtype))

    def scaled_features(x: Float[Array, "*B L N H"]) -> tuple[Array, Array]:
        """Features of which the largest is 1, and the logarithm they have been divided by."""
        log_features = log_positive_features(x * shrink, rows)
        scale = jnp.max(log_features, axis=-1, keepdims=True, initial=-jnp.inf)
        scale = jax.lax.stop_gradient(scale)
        return jnp.exp(log_features - scale), scale

    # A query's own scale is in its weights and in their sum, and cancels.
    return kernel.attention(
        query,
        key,
        value,
        lambda query: scaled_features(query)[0],
        scaled_features,
        mask=mask,
        is_causal=is_causal,
        block_size=block_size,
    )
