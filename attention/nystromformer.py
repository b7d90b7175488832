"""Nyströmformer: the attention matrix rebuilt from its rows and columns at a few landmarks."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention import normalizers
from attention.internals import contract, grouped, unseen


@contract.primitive("landmarks", "iterations")
def nystromformer_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    landmarks: int,
    iterations: int = 6,
    mask: Bool[Array, "*#B 1 1 T"] | None = None,
) -> Float[Array, "*B T N V"]:
    """Self-attention by the Nyström method, `out = softmax(Q K~^T) softmax(Q~ K~^T)^+ softmax(Q~ K^T) V`.

    All products are divided by `sqrt(H)`. The landmarks Q~ and K~ are the means of queries and keys over
    segments of the existing positions, as equal in length as can be; a sequence shorter than the number
    of landmarks has one for each position. So the output for a sequence depends neither on how far it is
    padded nor on what it is batched with. With a landmark at every position, and an exact
    pseudo-inverse, it equals dense attention.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        landmarks: M, number of segments, 1 or more.
        iterations: steps towards the pseudo-inverse, 0 or more.
        mask: boolean `[*B 1 1 T]`, True where a position exists, as a key and as a query.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 at positions that do not exist.

    Raises:
        ValueError: shapes that do not fit, numbers of queries and keys that differ, counts out of range,
            or a mask that differs between queries, as a causal one.
        TypeError: dtypes that differ, a mask that is not boolean.

    Costs O(T M + M^3) time and O(T M + M^2) memory.

    Xiong et al. (2021), "Nyströmformer: a Nyström-based algorithm for approximating self-attention".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("nystromformer_attention", shape)
    contract.check_key_mask("nystromformer_attention", mask, shape)
    if landmarks < 1 or iterations < 0:
        raise ValueError(
            f"landmarks must be 1 or more and iterations 0 or more, got {landmarks} and {iterations}"
        )
    # The inverse magnifies what is rounded before it.
    dtype = contract.working_dtype(query.dtype)
    q, k, v = (unseen.hide(x, mask).astype(dtype) for x in (query, key, value))
    *batch, _, T, _ = shape
    exists = unseen.existing(mask, batch, T)

    averages, used = _segments(exists, landmarks, dtype)
    q_marks, k_marks = (jnp.einsum("...tm,...tnh->...mnh", averages, x) for x in (q, k))
    scale = max(query.shape[-1], 1) ** -0.5
    columns = used[..., None, None, :]
    to_marks = normalizers.softmax(grouped.products(q, k_marks, scale), columns)
    among_marks = grouped.products(q_marks, k_marks, scale)
    among_marks = normalizers.softmax(among_marks, columns & used[..., None, :, None])
    from_marks = normalizers.softmax(grouped.products(q_marks, k, scale), exists[..., None, None, :])

    gathered = _pseudo_inverse(among_marks, iterations) @ grouped.sums(from_marks, v)
    out = jnp.swapaxes(to_marks @ gathered, -2, -3)
    return unseen.hide(out, mask).astype(query.dtype)


def _segments(
    exists: Bool[Array, "*B T"], landmarks: int, dtype: Any
) -> tuple[Float[Array, "*B T M"], Bool[Array, "*B M"]]:
    """The share of each position in the mean of each segment, and which segments there are."""
    count = jnp.sum(exists, axis=-1, keepdims=True, dtype=jnp.int32)
    used = jnp.minimum(count, landmarks)
    rank = jnp.cumsum(exists, axis=-1, dtype=jnp.int32) - 1
    segment = rank * used // jnp.maximum(count, 1)
    marks = jnp.arange(landmarks, dtype=jnp.int32).reshape((1,) * count.ndim + (landmarks,))
    member = exists[..., None] & (segment[..., None] == marks)
    size = jnp.sum(member, axis=-2, keepdims=True, dtype=dtype)
    return member.astype(dtype) / jnp.maximum(size, 1.0), marks[..., 0, :] < used


def _pseudo_inverse(matrix: Float[Array, "*B N M M"], iterations: int) -> Float[Array, "*B N M M"]:
    """The Moore-Penrose inverse by the iteration of Razavi et al. (2014), of third order.

    It starts from `A^T / (|A|_1 |A|_inf)`, with norms of each matrix by itself: a norm over the batch would
    let the other sequences in. Rows and columns of zeros, of segments that are not used, stay zeros.
    """
    size = jnp.max(jnp.sum(matrix, axis=-2), axis=-1) * jnp.max(jnp.sum(matrix, axis=-1), axis=-1)
    start = jnp.swapaxes(matrix, -1, -2) / jnp.where(size > 0, size, 1.0)[..., None, None]
    unit = jnp.eye(matrix.shape[-1], dtype=matrix.dtype).reshape((1,) * (matrix.ndim - 2) + matrix.shape[-2:])

    def step(_: int | Int[Array, ""], inverse: Float[Array, "*B N M M"]) -> Float[Array, "*B N M M"]:
        product = matrix @ inverse
        return inverse @ (13 * unit - product @ (15 * unit - product @ (7 * unit - product))) / 4

    # Accelerators multiply float32 in fewer bits unless told not to, and then this does not converge.
    with jax.default_matmul_precision("highest"):
        return jax.lax.fori_loop(0, iterations, step, start)
