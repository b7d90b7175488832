"""Positions: without them, attention sees a bag of words."""

import operator
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Real

from attention.internals import contract

PAIRINGS = ("half_split", "interleaved")


def sinusoidal(
    positions: int | Real[Array, "*P"], dim: int, *, base: float = 10000.0, dtype: Any = jnp.float32
) -> Float[Array, "*P {dim}"]:
    """Sines and cosines of the position, at wavelengths from 2 pi to `2 pi base`.

    `PE[p, 2i] = sin(p base^(-2i/dim))`, `PE[p, 2i+1] = cos(p base^(-2i/dim))`. So `PE[p + k]` is
    `PE[p]` with each pair rotated by a fixed angle, a linear map that depends on k alone. A last
    feature without a partner, in an odd `dim`, could not be part of such a map unless it is
    constant; it is 0.

    Args:
        positions: a length L, for the positions 0 to L - 1; or any array of positions `[*P]`.
        dim: number of features, D, even or odd.
        base: ratio of the longest wavelength to the shortest.
        dtype: of the result. Angles are computed in float32, or float64 for float64.

    Returns:
        Encodings `[L D]` or `[*P D]`.

    Vaswani et al. (2017), "Attention is all you need".
    """
    if isinstance(positions, int | np.integer):
        positions = jnp.arange(int(positions))
    return _sinusoidal(positions, dim, base, dtype)


@contract.primitive("dim", "base", "dtype")
def _sinusoidal(positions: Real[Array, "*P"], dim: int, base: float, dtype: Any) -> Float[Array, "*P {dim}"]:
    angles = _angles(positions, dim, base, contract.working_dtype(dtype))
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    table = pairs.reshape(*positions.shape, dim // 2 * 2)
    return jnp.pad(table, [(0, 0)] * positions.ndim + [(0, dim % 2)]).astype(dtype)


@contract.primitive("height", "width", "dim", "base", "dtype")
def sinusoidal_2d(
    height: int, width: int, dim: int, *, base: float = 10000.0, dtype: Any = jnp.float32
) -> Float[Array, "{height} {width} {dim}"]:
    """Sinusoidal encodings of a grid: half of the features encode the row, half the column.

    Args:
        height: number of rows.
        width: number of columns.
        dim: number of features, D. Both halves are made of whole pairs, so where D is not a
            multiple of 4 the row gets the larger one.
        base: ratio of the longest wavelength to the shortest.
        dtype: of the result.

    Returns:
        Encodings `[height width D]`; `.reshape(-1, D)` is in the order of image patches.

    Beyer, Zhai and Kolesnikov (2022), "Better plain ViT baselines for ImageNet-1k".
    """
    of_row = (dim + 2) // 4 * 2
    rows = sinusoidal(height, of_row, base=base, dtype=dtype)
    columns = sinusoidal(width, dim - of_row, base=base, dtype=dtype)
    return jnp.concatenate(
        [
            jnp.broadcast_to(rows[:, None], (height, width, of_row)),
            jnp.broadcast_to(columns[None], (height, width, dim - of_row)),
        ],
        axis=-1,
    )


def learned(positions: int | Int[Array, "*P"], table: Float[Array, "L D"]) -> Float[Array, "*P D"]:
    """Rows of a table with one learned vector per position, `PE[p] = table[p]`.

    Args:
        positions: a length, for the positions 0 to that length - 1; or any array of positions
            `[*P]`.
        table: `[L D]`, for the positions 0 to L - 1.

    Returns:
        Encodings `[length D]` or `[*P D]`.

    Raises:
        ValueError: a position outside [0, L). While JAX traces, when positions are not known, such
            a position is encoded as NaN: a table has nothing to say beyond its end, and the nearest
            row would be wrong in silence.
        TypeError: positions that are not integers.

    Gehring et al. (2017), "Convolutional sequence to sequence learning".
    """
    contract.check_floating(table=table)
    if isinstance(positions, int | np.integer):
        positions = jnp.arange(int(positions), dtype=jnp.int32)
    contract.check_integers("positions", positions)
    outside = contract.first_outside(positions, table.shape[0])
    if outside is not None:
        raise ValueError(
            f"positions {np.shape(positions)} hold {outside}; a table {table.shape} has the positions 0 to "
            f"{table.shape[0] - 1}"
        )
    return _learned(positions, table)


@contract.primitive()
def _learned(positions: Int[Array, "*P"], table: Float[Array, "L D"]) -> Float[Array, "*P D"]:
    # Indexing from the end, as NumPy reads -1, would give a negative position another one's row.
    rows = jnp.where(positions < 0, table.shape[0], positions)
    return jnp.take(table, rows, axis=0, mode="fill", fill_value=jnp.nan)


@contract.primitive()
def add(x: Float[Array, "*B T D"], encodings: Float[Array, "*#B T D"]) -> Float[Array, "*B T D"]:
    """Add encodings of the positions to the features, `x[t] + PE[t]`.

    Args:
        x: `[*B T D]`.
        encodings: `[T D]`, the same in every batch element, or `[*B T D]`, or 1 in a batch axis.

    Returns:
        `[*B T D]` in the dtype of x.

    Raises:
        ValueError: encodings that do not fit x.

    Vaswani et al. (2017), "Attention is all you need".
    """
    encodings = _fitted(x, encodings)
    if encodings.shape[-1] != x.shape[-1]:
        raise ValueError(f"encodings to be added need as many features as x {x.shape}, got {encodings.shape}")
    dtype = contract.working_dtype(x.dtype)
    return (x.astype(dtype) + encodings.astype(dtype)).astype(x.dtype)


@contract.primitive()
def concatenate(x: Float[Array, "*B T D"], encodings: Float[Array, "*#B T E"]) -> Float[Array, "*B T D+E"]:
    """Put encodings of the positions beside the features, `[x[t]; PE[t]]`.

    Under the first linear layer this is `add` with a projection of the encodings of its own.

    Args:
        x: `[*B T D]`.
        encodings: `[T E]`, the same in every batch element, or `[*B T E]`, or 1 in a batch axis.

    Returns:
        `[*B T D+E]` in the dtype of x, the features first.

    Raises:
        ValueError: encodings that do not fit x.
    """
    encodings = _fitted(x, encodings)
    encodings = jnp.broadcast_to(encodings, (*x.shape[:-1], encodings.shape[-1]))
    return jnp.concatenate([x, encodings.astype(x.dtype)], axis=-1)


def _fitted(x: Float[Array, "*B T D"], encodings: Float[Array, "..."]) -> Float[Array, "*#B T E"]:
    """Encodings with every axis of x."""
    *batch, T, _ = x.shape
    full = encodings.ndim == x.ndim and all(
        size in (1, axis) for size, axis in zip(encodings.shape[:-2], batch, strict=True)
    )
    if encodings.ndim < 2 or encodings.shape[-2] != T or not (encodings.ndim == 2 or full):
        raise ValueError(
            f"encodings must be [T D] or [*B T D] for x [*B T D] {x.shape}, got {encodings.shape}"
        )
    return encodings.reshape((1,) * (x.ndim - encodings.ndim) + encodings.shape)


@contract.primitive("base", "pairing")
def rotary(
    x: Float[Array, "*B T N H"],
    positions: Real[Array, "*#B T"],
    *,
    base: float = 10000.0,
    pairing: Literal["half_split", "interleaved"] = "half_split",
) -> Float[Array, "*B T N H"]:
    """Rotate pairs of features by angles proportional to the position; for queries and keys alike.

    Pair i turns by `p base^(-2i/H)`, so the dot product of a rotated query and a rotated key
    depends on the difference of their positions alone.

    Args:
        x: query or key, `[*B T N H]`, H even.
        positions: `[T]`, the same in every batch element, or `[*B T]`, or 1 in a batch axis.
        base: ratio of the longest wavelength to the shortest.
        pairing: which features make a pair: "half_split" i with i + H/2, as in GPT-NeoX and Llama;
            "interleaved" 2i with 2i + 1, as in RoFormer and GPT-J. Weights trained with one are
            wrong for the other.

    Returns:
        `[*B T N H]` in the dtype of x. Angles are computed in float32, or float64 for float64.

    Raises:
        ValueError: an odd H, positions that do not fit x, or an unknown pairing.

    Su et al. (2021), "RoFormer: enhanced transformer with rotary position embedding".
    """
    contract.check_floating(x=x)
    *batch, T, _, H = x.shape
    if H % 2:
        raise ValueError(f"rotary needs an even head dim, got x {x.shape}")
    if pairing not in PAIRINGS:
        raise ValueError(f"unknown pairing {pairing!r}; allowed: {', '.join(PAIRINGS)}")
    full = positions.ndim == len(batch) + 1 and all(
        size in (1, axis) for size, axis in zip(positions.shape[:-1], batch, strict=True)
    )
    if positions.ndim == 0 or positions.shape[-1] != T or not (positions.ndim == 1 or full):
        raise ValueError(f"positions must be [T] or [*B T] for x [*B T N H] {x.shape}, got {positions.shape}")
    positions = positions.reshape((1,) * (len(batch) + 1 - positions.ndim) + positions.shape)
    dtype = contract.working_dtype(x.dtype)
    angles = _angles(positions, H, base, dtype)[..., None, :]
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    if pairing == "half_split":
        first, second = jnp.split(x.astype(dtype), 2, axis=-1)
    else:
        first, second = x[..., 0::2].astype(dtype), x[..., 1::2].astype(dtype)
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    if pairing == "half_split":
        return jnp.concatenate(turned, axis=-1).astype(x.dtype)
    return jnp.stack(turned, axis=-1).reshape(x.shape).astype(x.dtype)


def _angles(positions: Real[Array, "*P"], dim: int, base: float, dtype: Any) -> Float[Array, "*P pairs"]:
    frequencies = base ** (-2.0 / max(dim, 1) * jnp.arange(dim // 2, dtype=dtype))
    frequencies = frequencies.reshape((1,) * positions.ndim + (dim // 2,))
    return positions[..., None].astype(dtype) * frequencies


def places(
    T: int, S: int | None, query_offset: int | Int[Array, "..."] | None, batch_dims: int
) -> tuple[Int[Array, "*B 1 T 1"], Int[Array, "*#B 1 1 S"]]:
    """Where queries and keys stand, both counted from the first key, with the axes of the scores.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys; one integer, or one for each batch
            element, with `batch_dims` axes. Needed where T differs from S.
        batch_dims: number of batch axes.

    Returns:
        `t + query_offset[b]` of every query, and s of every key.

    Raises:
        ValueError: T differs from S and there is no query_offset, or it has other axes.
        TypeError: a query_offset that is not an integer.
    """
    T = operator.index(T)
    S = T if S is None else operator.index(S)
    if query_offset is None:
        contract.check_lengths(T, S)
        query_offset = 0
    offset = jnp.asarray(query_offset)
    contract.check_integers("query_offset", offset)
    if offset.ndim not in (0, batch_dims):
        raise ValueError(
            f"query_offset must be one integer or have batch_dims={batch_dims} axes, "
            f"got {offset.shape} for {T} queries and {S} keys"
        )
    batch = offset.shape or (1,) * batch_dims
    offset = offset.astype(jnp.int32).reshape(*batch, 1, 1, 1)
    queries = jnp.arange(T, dtype=jnp.int32).reshape((1,) * len(batch) + (1, T, 1))
    keys = jnp.arange(S, dtype=jnp.int32).reshape((1,) * len(batch) + (1, 1, S))
    return queries + offset, keys
