"""Attention whose weights are a kernel with known features, `weight = phi(q) . phi(k)`, in linear time.

    out_t = phi(q_t) . sum_s phi(k_s) v_s^T  /  phi(q_t) . sum_s phi(k_s)

The sums over the keys do not depend on the query, so they come first and no query ever meets a key:
`O((T + S) M V)` for M features. All that the keys amount to is a `State` of fixed size. The causal form
reads them block by block, the weights inside a block and the state before it, which is the parallel form
for one large block and the recurrent form for blocks of one.

Features may come with a logarithmic scale per key, `phi(k) = e^scale * features`, for kernels that grow
like an exponential. Every query then works at the largest scale of the keys *it* sees: the largest of all
would let the future show, in the last bits, and where it is far larger than the past, in all of them.

What is common to these mechanisms is here; each gives its features.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention.internals import contract, grouped, unseen
from attention.internals.softmax_parts import finite_maximum

QueryFeatures = Callable[[Array], Array]
KeyFeatures = Callable[[Array], tuple[Array, Array | None]]


class State(NamedTuple):
    """All that a query needs to know of the keys before it; its size does not grow with their number.

    Attributes:
        sums: the sum of `phi(k) (v, 1)^T`, `[*B K M V+1]`, divided by `e^scale`.
        scale: the largest scale of a key read so far, `[*B K 1]`; None where features have no scale.
    """

    sums: Float[Array, "*B K M W"]
    scale: Float[Array, "*B K 1"] | None


class _Keys(NamedTuple):
    features: Float[Array, "*B S K M"]
    values: Float[Array, "*B S K W"]  # with a 1 at the end, whose sum is the normaliser
    scale: Float[Array, "*B S K 1"] | None


def attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    query_features: QueryFeatures,
    key_features: KeyFeatures,
    *,
    mask: Bool[Array, "*#B 1 1 S"] | None,
    is_causal: bool,
    block_size: int,
) -> Float[Array, "*B T N V"]:
    """Kernel attention from checked arguments.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        query_features: from queries in the working dtype to features `[*B T N M]`.
        key_features: from keys in the working dtype to features `[*B S K M]` and their scale
            `[*B S K 1]` or None.
        mask: `[*B 1 1 S]`, which keys exist.
        is_causal: show each query only the keys up to its own position; T equals S.
        block_size: how many positions the causal form reads at once.
    """
    query = unseen.hide_blind(query, mask, is_causal)
    key, value = unseen.hide(key, mask), unseen.hide(value, mask)
    finite = unseen.take_out_causal(query, key, value) if is_causal else unseen.Finite(query, key, value)
    features = query_features(_working(finite.query))
    keys = _keys(finite.key, finite.value, key_features, mask)
    if is_causal:
        sums = _read_in_blocks(_nothing(keys), features, keys, block_size)[1]
    else:
        sums = _query(features, _add(_nothing(keys), keys).sums)
    out = finite.restore_sums(divide(sums[..., :-1], sums[..., -1:]))
    return jnp.swapaxes(out, -2, -3).astype(query.dtype)


def start(
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    key_features: KeyFeatures,
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
) -> State:
    """The state after some keys, which may be none."""
    keys = _keys(unseen.hide(key, mask), unseen.hide(value, mask), key_features, mask)
    return _add(_nothing(keys), keys)


def step(
    state: State,
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    query_features: QueryFeatures,
    key_features: KeyFeatures,
    mask: Bool[Array, "*#B 1 1 T"] | None,
    block_size: int,
) -> tuple[Float[Array, "*B T N V"], State]:
    """Causal attention to the keys of a state and to the next T ones; the state after those."""
    key, value = unseen.hide(key, mask), unseen.hide(value, mask)
    finite = unseen.take_out_causal(query, key, value)
    features = query_features(_working(finite.query))
    if features.shape[-1] != state.sums.shape[-2]:
        raise ValueError(
            f"state {state.sums.shape} holds sums of {state.sums.shape[-2]} features, got {features.shape}"
        )
    keys = _keys(finite.key, finite.value, key_features, mask)
    state, sums = _read_in_blocks(state, features, keys, block_size)
    # What was taken out is owed to every later query as well.
    spoilt = jnp.sum(_working(key) * 0, axis=(-3, -1)) + jnp.sum(_working(value) * 0, axis=(-3, -1))
    state = state._replace(sums=state.sums + jax.lax.stop_gradient(spoilt)[..., None, None])
    out = finite.restore_sums(divide(sums[..., :-1], sums[..., -1:]))
    return jnp.swapaxes(out, -2, -3).astype(query.dtype), state


def divide(sums: Float[Array, "..."], totals: Float[Array, "..."]) -> Float[Array, "..."]:
    """Weighted sums over the sum of their weights; 0 where that is 0."""
    nonzero = totals != 0
    return jnp.where(nonzero, sums / jnp.where(nonzero, totals, 1.0), 0.0)


def _read_in_blocks(
    state: State, query: Float[Array, "*B T N M"], keys: _Keys, block_size: int
) -> tuple[State, Float[Array, "*B N T W"]]:
    """The sums of causal queries, and the state after their keys."""
    T = query.shape[-3]
    size = min(block_size, max(T, 1))
    scales = None if keys.scale is None else _blocks(keys.scale, size, fill=-jnp.inf)
    blocks = _Keys(_blocks(keys.features, size), _blocks(keys.values, size), scales)
    # Recomputing a block's weights for its gradient is cheaper than keeping those of all blocks.
    read = jax.checkpoint(_read, prevent_cse=False)
    state, sums = jax.lax.scan(read, state, (_blocks(query, size), blocks))
    sums = jnp.moveaxis(sums, 0, -3)  # [*B N blocks size W]
    return state, sums.reshape(*sums.shape[:-3], -1, sums.shape[-1])[..., :T, :]


def _read(state: State, block: tuple[Array, _Keys]) -> tuple[State, Float[Array, "*B N C W"]]:
    """One block of the causal form: its queries see the state, and of its keys those before them."""
    query, keys = block
    *batch, C, N, _ = query.shape
    K = keys.features.shape[-2]
    before = jnp.tri(C, dtype=bool).reshape((1,) * (len(batch) + 2) + (C, C))
    weights = grouped.products(query, keys.features).reshape(*batch, K, N // K, C, C)
    sums = _query(query, state.sums)
    if keys.scale is None or state.scale is None:
        weights = jnp.where(before, weights, 0.0)
    else:
        scale = jnp.swapaxes(keys.scale, -3, -2)  # [*B K C 1]
        largest = jnp.maximum(jax.lax.cummax(scale, axis=scale.ndim - 2), state.scale[..., None])
        largest = finite_maximum(largest)
        # Masked before the exponential, which would overflow where the future is larger.
        ahead = jnp.where(before[..., 0, :, :], jnp.swapaxes(scale, -2, -1) - largest, -jnp.inf)
        weights = weights * jnp.exp(ahead)[..., None, :, :]
        shrink = jnp.exp(state.scale[..., None] - largest)[..., None, :, :]
        sums = (sums.reshape(*batch, K, N // K, C, -1) * shrink).reshape(sums.shape)
    sums = sums + grouped.sums(weights.reshape(*batch, N, C, C), keys.values)
    return _add(state, keys), sums


def _nothing(keys: _Keys) -> State:
    """The state before the first of these keys."""
    *batch, _, K, M = keys.features.shape
    sums = jnp.zeros((*batch, K, M, keys.values.shape[-1]), keys.features.dtype)
    return State(sums, None if keys.scale is None else jnp.full((*batch, K, 1), -jnp.inf, sums.dtype))


def _add(state: State, keys: _Keys) -> State:
    """The state after more keys."""
    features, kept, scale = keys.features, state.sums, None
    if keys.scale is not None and state.scale is not None:
        scale = jnp.maximum(jnp.max(keys.scale, axis=-3, initial=-jnp.inf), state.scale)
        features = features * jnp.exp(keys.scale - finite_maximum(scale)[..., None, :, :])
        kept = kept * jnp.exp(state.scale - finite_maximum(scale))[..., None]
    return State(kept + jnp.einsum("...skm,...skw->...kmw", features, keys.values), scale)


def _query(features: Float[Array, "*B T N M"], sums: Float[Array, "*B K M W"]) -> Float[Array, "*B N T W"]:
    """The sums that each query reads out of a state."""
    *batch, T, N, M = features.shape
    *_, K, _, W = sums.shape
    grouped_features = features.reshape(*batch, T, K, N // K, M)
    read = jnp.einsum("...tkgm,...kmw->...kgtw", grouped_features, sums)
    return read.reshape(*batch, N, T, W)


def _keys(
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    key_features: KeyFeatures,
    mask: Bool[Array, "*#B 1 1 S"] | None,
) -> _Keys:
    features, scale = key_features(_working(key))
    features = unseen.hide(features, mask)
    if scale is not None:
        scale = jax.lax.stop_gradient(scale)
        if mask is not None:
            scale = jnp.where(mask[..., 0, 0, :, None, None], scale, -jnp.inf)
    value = _working(value)
    return _Keys(features, jnp.concatenate([value, jnp.ones_like(value[..., :1])], axis=-1), scale)


def _working(x: Array) -> Array:
    return x.astype(contract.working_dtype(x.dtype))


def _blocks(x: Float[Array, "*B T N H"], size: int, fill: float = 0.0) -> Float[Array, "n *B {size} N H"]:
    *batch, T, N, H = x.shape
    n = -(-T // size)
    filled = jnp.pad(x, [(0, 0)] * len(batch) + [(0, n * size - T), (0, 0), (0, 0)], constant_values=fill)
    return jnp.moveaxis(filled.reshape(*batch, n, size, N, H), -4, 0)
