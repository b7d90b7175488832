"""Positions: without them, attention sees a bag of words."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Real

from attention import contract

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
