"""Sparse Transformer attention: the recent past in full, the rest at a stride; and dilated windows.

Laid out in rows of `stride` positions, the far keys of a query are those above it in its own column. So
columns are attended to by themselves, windows by themselves, and one softmax is taken over both.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attention.banded import banded_attention, window_part, window_reach
from attention.internals import contract, headwise, softmax_parts, unseen
from attention.internals.softmax_parts import Part


@contract.primitive("stride", "scale")
def strided_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    stride: int,
    mask: Bool[Array, "*#B 1 1 #T"] | None = None,
    scale: float | None = None,
) -> Float[Array, "*B T N V"]:
    """Causal strided attention, `out[t] = sum_s softmax(scale * q[t] . k[s]) v[s]` over seen s <= t.

    With l the stride, query t sees the keys s with `t - s <= l`, and those with `(t - s) mod l = 0`: equal
    to `attend` with `masks.strided`, the union of both patterns of the paper in every head. Head n of the
    query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        stride: l, best near `sqrt(T)`.
        mask: boolean, True for the keys that exist, `[*B 1 1 T]`.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for queries that see no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries, or a stride below 1.
        TypeError: dtypes that differ.

    Cost: O(T (l + T / l)) time and memory, which is O(T sqrt(T)) at `l = sqrt(T)`.

    Child et al. (2019), "Generating long sequences with sparse transformers".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("strided_attention", shape)
    contract.check_key_mask("strided_attention", mask, shape)
    T = shape[-1]
    # With a stride of T or more the past is seen in full.
    l = min(contract.check_at_least_one("stride", stride), max(T, 1))  # noqa: E741 (the paper's name)
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    rows = -(-T // l)

    def in_rows(x: Array) -> Array:
        return jnp.pad(x, [(0, rows * l - T)] + [(0, 0)] * (x.ndim - 1)).reshape(rows, l, *x.shape[1:])

    def form(
        query: Float[Array, "G T H"],
        key: Float[Array, "T H"],
        value: Float[Array, "T V"],
        shown: Bool[Array, "T"],
    ) -> Float[Array, "G T V"]:
        near = window_part(query, key, value, shown, (l, 0), scale)
        columns = jnp.transpose(in_rows(jnp.swapaxes(query, 0, 1)), (1, 2, 0, 3))  # [l G rows H]
        keys, values, exists = (jnp.swapaxes(in_rows(x), 0, 1) for x in (key, value, shown))
        # One row up is at distance l, which is in the window.
        above = np.arange(rows)[:, None] <= np.arange(rows) - 2
        visible = exists[:, :, None, None] & jnp.asarray(above)[None, :, None, :]
        far = softmax_parts.part(columns, keys, values, visible, scale)
        far = Part(*(jnp.moveaxis(x, 0, 2).reshape(len(query), rows * l, *x.shape[3:])[:, :T] for x in far))
        return softmax_parts.softmax(near, far)

    def reach(marked: Bool[Array, "T"]) -> Bool[Array, "T"]:
        above = jnp.cumsum(in_rows(marked), axis=0, dtype=jnp.int32) > 0
        far = jnp.pad(above, ((2, 0), (0, 0)))[:rows].reshape(-1)[:T]
        return window_reach(marked, (l, 0), T) | far

    return headwise.attend(form, reach, query, key, value, mask)


@contract.primitive("window", "dilation", "scale")
def dilated_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    window: tuple[int, int],
    dilation: int,
    mask: Bool[Array, "*#B 1 1 #T"] | None = None,
    scale: float | None = None,
) -> Float[Array, "*B T N V"]:
    """A window with gaps, `out[t] = sum_s softmax(scale * q[t] . k[s]) v[s]` over s = t + i d.

    Here d is the dilation and `-left <= i <= right`: equal to `attend` with `masks.dilated`, and to
    `banded_attention` where d is 1. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        window: `(left, right)`, how many keys before and after its own position a query sees.
        dilation: d, the distance of two neighbouring visible keys.
        mask: boolean, True for the keys that exist, `[*B 1 1 T]`.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 for queries that see no key.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries, a negative side, or a
            dilation below 1.
        TypeError: dtypes that differ, or a window that is not a pair of integers.

    Cost: O(T w) time and memory, w = left + right.

    Beltagy, Peters and Cohan (2020), "Longformer: the long-document transformer".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("dilated_attention", shape)
    contract.check_key_mask("dilated_attention", mask, shape)
    *batch, _, T, _ = shape
    d = min(contract.check_at_least_one("dilation", dilation), max(T, 1))
    rows = -(-T // d)

    def by_remainder(x: Array) -> Array:
        """Every d-th position a sequence of its own, `[*B T ...]` to `[*B d rows ...]`."""
        B = len(batch)
        x = jnp.pad(x, [(0, 0)] * B + [(0, rows * d - T)] + [(0, 0)] * (x.ndim - B - 1))
        return jnp.swapaxes(x.reshape(*batch, rows, d, *x.shape[B + 1 :]), B, B + 1)

    shown = by_remainder(unseen.existing(mask, batch, T))
    query, key, value = map(by_remainder, (query, key, value))
    out = banded_attention(query, key, value, window=window, mask=shown[..., None, None, :], scale=scale)
    return jnp.swapaxes(out, -3, -4).reshape(*batch, rows * d, *out.shape[-2:])[..., :T, :, :]
