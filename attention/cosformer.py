"""cosFormer: a linear kernel that prefers near keys, by a cosine of the distance."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention import kernel
from attention.internals import contract


@contract.primitive("max_length", "is_causal", "block_size")
def cosformer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    max_length: int,
    query_offset: int | Int[Array, "..."] | None = None,
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
    is_causal: bool = False,
    block_size: int = 128,
) -> Float[Array, "*B T N V"]:
    """Attention with weights `relu(q) . relu(k) cos(pi/2 (t - s) / L)`, divided by their sum.

    `cos(a - b) = cos a cos b + sin a sin b` makes it a kernel of 2 H features, so time is
    `O((T + S) H V)` and memory `O((T + S) H)`. Head n of the query reads key and value head
    `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        max_length: L, at which distance the weight of a key is 0. A property of the model, not of the
            batch, or padding would change the result; at least T and S.
        query_offset: position t of the first query among the keys, one integer or one per batch element
            `[*B]`; needed where T differs from S, and refused with `is_causal`.
        mask: boolean, True where a key exists; `[*B 1 1 S]`, as `masks.padding` makes it.
        is_causal: show each query only the keys up to its own position; T equals S.
        block_size: how many positions the causal form takes at once; changes nothing but speed.

    Returns:
        The output `[*B T N V]` in the query's dtype; 0 for a query that sees no key, or whose weights
        are all 0.

    Raises:
        ValueError: shapes that do not fit, positions beyond max_length, a mask that differs between
            queries or heads, is_causal where T differs from S.
        TypeError: dtypes that differ, a mask that is not boolean.

    Qin et al. (2022), "cosFormer: rethinking softmax in attention".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask("cosformer", mask, shape)
    contract.check_at_least_one("block_size", block_size)
    *batch, _, T, S = shape
    if is_causal:
        contract.check_self_attention("causal cosformer", shape)
        if query_offset is not None:
            raise ValueError(f"causal cosformer has no query_offset: its {T} queries stand at its {S} keys")
    offset = _check_offset(query_offset, shape, max_length)
    ones = (1,) * len(batch)
    queries = jnp.arange(T, dtype=jnp.int32).reshape(*ones, T, 1, 1) + offset
    keys = jnp.arange(S, dtype=jnp.int32).reshape(*ones, S, 1, 1)

    def features(x: Float[Array, "*B L N H"], positions: Int[Array, "*#B L 1 1"]) -> Array:
        angle = positions.astype(x.dtype) * (jnp.pi / 2 / max_length)
        x = jax.nn.relu(x)
        return jnp.concatenate([x * jnp.cos(angle), x * jnp.sin(angle)], axis=-1)

    return kernel.attention(
        query,
        key,
        value,
        lambda query: features(query, queries),
        lambda key: (features(key, keys), None),
        mask=mask,
        is_causal=is_causal,
        block_size=block_size,
    )


def _check_offset(
    query_offset: int | Array | None, scores: contract.Shape, max_length: int
) -> Int[Array, "*#B 1 1 1"]:
    *batch, _, T, S = scores
    if query_offset is None:
        contract.check_lengths(T, S)
        query_offset = 0
    offset = jnp.asarray(query_offset)
    if not jnp.issubdtype(offset.dtype, jnp.integer) or offset.shape not in ((), tuple(batch)):
        raise ValueError(
            f"query_offset must be one integer or one per batch element {tuple(batch)}, "
            f"got {offset.dtype} {offset.shape} for scores {scores}"
        )
    if max(T, S) > max_length:
        raise ValueError(
            f"max_length must be at least the number of positions, got {max_length} for scores {scores}"
        )
    return offset.astype(jnp.int32).reshape(*(offset.shape or (1,) * len(batch)), 1, 1, 1)
