"""Attention-free transformer: every channel has weights of its own, and no query ever meets a key.

    out_t = sigmoid(q_t) * sum_s exp(w_ts + k_s) * v_s / sum_s exp(w_ts + k_s)

What relates two positions is a learned bias w `[T S]`, whatever they hold; the query is only a gate on the
result. All products are element by element, so query, key and value have one width. The weights would be
an array `[T S D]`, but `exp(w_ts + k_s) = exp(w_ts) exp(k_s)` makes both sums matrix products. Queries are
taken in blocks, since `exp(w)` as a whole would be one more array as large as w.

Exponentials need a shift that keeps them in range, and a shift that cancels: the largest w of a query's row
times the largest k of a channel. In the causal form that is the largest k of the blocks before the query's
own, for the future must not show, not even in the last bits; inside its own block each query and channel
has a shift of its own, which takes the `[block block D]` weights one by one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention import kernel
from attention.internals import contract, grouped, unseen
from attention.internals.softmax_parts import finite_maximum


@contract.primitive("is_causal", "block_size")
def attention_free_full(
    query: Float[Array, "*B T N V"],
    key: Float[Array, "*B S K V"],
    value: Float[Array, "*B S K V"],
    *,
    position_bias: Float[Array, "T S"],
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
    is_causal: bool = False,
    block_size: int = 32,
) -> Float[Array, "*B T N V"]:
    """AFT-full, `out_t = sigmoid(q_t) * sum_s exp(w_ts + k_s) v_s / sum_s exp(w_ts + k_s)`.

    Products are element by element. Time `O(T S K V)`, nearly all of it in matrix products; memory
    `O((T + S) K V)` beside w. Head n of the query gates key and value head `n // (N / K)`.

    Args:
        query: `[*B T N V]`.
        key: `[*B S K V]`, K divides N.
        value: `[*B S K V]`.
        position_bias: w, `[T S]`, the same for all heads. -inf gives a weight of 0; for a causal form
            say `is_causal`, which keeps the future out to the last bit.
        mask: boolean, True where a key exists; `[*B 1 1 S]`, as `masks.padding` makes it.
        is_causal: show each query only the keys up to its own position; T equals S.
        block_size: how many queries are taken at once; changes nothing but speed and memory.

    Returns:
        The output `[*B T N V]` in the query's dtype; 0 for a query that sees no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries or heads, is_causal
            where T differs from S.
        TypeError: dtypes that differ, a mask that is not boolean.

    Zhai et al. (2021), "An attention free transformer".
    """
    shape = _check("attention_free_full", query, key, value, position_bias, mask, block_size)
    if is_causal:
        contract.check_self_attention("causal attention_free_full", shape)
    return _attention_free(query, key, value, position_bias, None, mask, is_causal, block_size)


@contract.primitive("window", "is_causal", "block_size")
def attention_free_local(
    query: Float[Array, "*B T N V"],
    key: Float[Array, "*B T K V"],
    value: Float[Array, "*B T K V"],
    *,
    position_bias: Float[Array, "T T"],
    window: tuple[int, int],
    mask: Bool[Array, "*#B 1 1 T"] | None = None,
    is_causal: bool = False,
    block_size: int = 32,
) -> Float[Array, "*B T N V"]:
    """AFT-local: AFT-full whose bias w counts near the query only, and is 0 elsewhere.

    Keys beyond the window are seen all the same, with weights `exp(k_s)`. Time and memory as of
    `attention_free_full`.

    Args:
        query: `[*B T N V]`.
        key: `[*B T K V]`, K divides N.
        value: `[*B T K V]`.
        position_bias: w, `[T T]`, of which the entries outside the window are not read.
        window: `(left, right)`, on how many keys before and after its own a query's bias counts; the
            paper's s is `(s - 1, s - 1)`.
        mask: boolean, True where a key exists; `[*B 1 1 T]`, as `masks.padding` makes it.
        is_causal: show each query only the keys up to its own position.
        block_size: how many queries are taken at once; changes nothing but speed and memory.

    Returns:
        The output `[*B T N V]` in the query's dtype; 0 for a query that sees no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries or heads, a negative
            side of the window.
        TypeError: dtypes that differ, a mask that is not boolean, a window that is not a pair.

    Zhai et al. (2021), "An attention free transformer".
    """
    shape = _check("attention_free_local", query, key, value, position_bias, mask, block_size)
    contract.check_self_attention("attention_free_local", shape)
    window = contract.check_window(window)
    return _attention_free(query, key, value, position_bias, window, mask, is_causal, block_size)


def _check(
    mechanism: str,
    query: Array,
    key: Array,
    value: Array,
    position_bias: Array,
    mask: Array | None,
    block_size: int,
) -> contract.Shape:
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask(mechanism, mask, shape)
    contract.check_floating(query=query, position_bias=position_bias)
    contract.check_parameter("position_bias [T S]", position_bias, shape[-2:])
    contract.check_at_least_one("block_size", block_size)
    if query.shape[-1] != value.shape[-1]:
        raise ValueError(
            f"{mechanism} works channel by channel: query {query.shape} and value {value.shape} need the "
            f"same last axis"
        )
    return shape


def _attention_free(
    query: Float[Array, "*B T N V"],
    key: Float[Array, "*B S K V"],
    value: Float[Array, "*B S K V"],
    position_bias: Float[Array, "T S"],
    window: tuple[int, int] | None,
    mask: Bool[Array, "*#B 1 1 S"] | None,
    is_causal: bool,
    block_size: int,
) -> Float[Array, "*B T N V"]:
    *batch, T, N, V = query.shape
    S, K = key.shape[-3:-1]
    dtype = contract.working_dtype(query.dtype)
    query = unseen.hide_blind(query, mask, is_causal)
    key, value = unseen.hide(key, mask), unseen.hide(value, mask)
    finite = unseen.take_out_causal(query, key, value) if is_causal else unseen.Finite(query, key, value)
    key = finite.key.astype(dtype)
    if mask is not None:
        key = jnp.where(mask[..., 0, 0, :, None, None], key, -jnp.inf)

    size = min(block_size, max(T, 1))
    blocks = max(-(-T // size), 1)
    rest = blocks * size - T
    more_keys = rest if is_causal else 0  # so that a block of queries has its block of keys
    columns = [(0, 0)] * len(batch) + [(0, more_keys), (0, 0)]
    k = jnp.pad(key.reshape(*batch, S, K * V), columns, constant_values=-jnp.inf)
    v = jnp.pad(finite.value.astype(dtype).reshape(*batch, S, K * V), columns)
    biases = jnp.pad(position_bias, ((0, rest), (0, more_keys))).reshape(blocks, size, S + more_keys)

    def block(inputs: tuple[Array, Array]) -> Float[Array, "*B C X"]:
        bias, first = inputs
        w = _within(window, bias.astype(dtype), first)
        if not is_causal:
            products = _products(w, k, v, S)
            return kernel.divide(products.sums, products.totals)
        products = _products(w, k, v, first)
        own_w = jax.lax.dynamic_slice_in_dim(w, first, size, axis=1)
        own_k, own_v = (jax.lax.dynamic_slice_in_dim(x, first, size, axis=x.ndim - 2) for x in (k, v))
        return kernel.divide(*_add_own(products, own_w, own_k, own_v))

    # Recomputing a block's exponentials for its gradient is cheaper than keeping those of all blocks.
    firsts = jnp.arange(blocks, dtype=jnp.int32) * size
    means = jax.lax.map(jax.checkpoint(block, prevent_cse=False), (biases, firsts))
    means = jnp.moveaxis(means, 0, -3).reshape(*batch, blocks * size, K, V)[..., :T, :, :]

    gated = jax.nn.sigmoid(finite.query.astype(dtype)) * grouped.repeat(means, N)
    out = finite.restore_sums(jnp.swapaxes(gated, -2, -3))
    return jnp.swapaxes(out, -2, -3).astype(query.dtype)


def _within(
    window: tuple[int, int] | None, bias: Float[Array, "C S"], first: Int[Array, ""]
) -> Float[Array, "C S"]:
    """The bias of a block of queries, 0 outside the window."""
    if window is None:
        return bias
    C, S = bias.shape
    ahead = jnp.arange(S, dtype=jnp.int32)[None, :] - jnp.arange(C, dtype=jnp.int32)[:, None] - first
    return jnp.where((ahead >= -window[0]) & (ahead <= window[1]), bias, 0.0)


class _Sums(NamedTuple):
    """The two sums of each query and channel `[*B C X]`, divided by `exp(shift)`."""

    sums: Float[Array, "*B C X"]
    totals: Float[Array, "*B C X"]
    shift: Float[Array, "*B C X"]


def _products(
    w: Float[Array, "C S"], k: Float[Array, "*B S X"], v: Float[Array, "*B S X"], end: int | Int[Array, ""]
) -> _Sums:
    """Both sums over the keys before `end`, as matrix products."""
    seen = jnp.arange(w.shape[1], dtype=jnp.int32) < end
    w = jnp.where(seen[None, :], w, -jnp.inf)
    k = jnp.where(seen.reshape((1,) * (k.ndim - 2) + (-1, 1)), k, -jnp.inf)
    largest_w, largest_k = _largest(w, axis=1), _largest(k, axis=-2)
    by_position, by_content = (jnp.exp(x - finite_maximum(y)) for x, y in ((w, largest_w), (k, largest_k)))
    sums, totals = (jnp.einsum("cs,...sx->...cx", by_position, x) for x in (by_content * v, by_content))
    return _Sums(sums, totals, largest_w.reshape((1,) * (k.ndim - 2) + (-1, 1)) + largest_k)


def _add_own(
    past: _Sums, w: Float[Array, "C C"], k: Float[Array, "*B C X"], v: Float[Array, "*B C X"]
) -> tuple[Float[Array, "*B C X"], Float[Array, "*B C X"]]:
    """Both sums with the keys of the block itself up to each query, weight by weight."""
    w = jnp.where(jnp.tri(len(w), dtype=bool), w, -jnp.inf)
    exponents = w.reshape((1,) * (k.ndim - 2) + (*w.shape, 1)) + k[..., None, :, :]
    shift = finite_maximum(jnp.maximum(_largest(exponents, axis=-2)[..., 0, :], past.shift))
    weights, kept = jnp.exp(exponents - shift[..., None, :]), jnp.exp(past.shift - shift)
    own_sums = jnp.sum(weights * v[..., None, :, :], axis=-2)
    return past.sums * kept + own_sums, past.totals * kept + jnp.sum(weights, axis=-2)


def _largest(x: Array, axis: int) -> Array:
    """The largest along an axis, which cancels wherever it is used: a constant to the gradient."""
    return jnp.max(jax.lax.stop_gradient(x), axis=axis, keepdims=True, initial=-jnp.inf)
