"""Convolution as attention: multi-head self-attention over positions that equals any convolution.

One head for each offset of the kernel. The head of offset d lets output t look at the one input
position `c = stride * t - margin + dilation * d`, and its projection of the values is the kernel's
matrix at d; the sum of the heads is the convolution. Zero padding is a key that is not there: where
c lies outside, the head sees nothing and adds 0.

The heads find c by their scores alone. The quadratic encoding of the paper scores a key at p by
`-alpha |p - c|^2`, whose softmax falls on c up to `exp(-alpha)` on each neighbour. Up to a constant of
the row, which softmax drops, that is the dot product of `2 alpha [c; -1/2]` and `[p; |p|^2]`: the
query and key made here. With `alpha=inf` everything but c is masked, and the weight is exactly 1.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attention import scores, stages
from attention.internals import contract

Padding = str | tuple[tuple[int, int], ...]
Steps = int | tuple[int, ...]


class Heads(NamedTuple):
    """Arguments of `attend`, with `score=scores.dot`, by which it equals a convolution.

    N is the number of offsets of the kernel, T and S the number of output and input positions, row by
    row, and H the number of spatial axes and one.

    Attributes:
        query: where each head of each output looks, `[T N H]`.
        key: where each input is, `[S N H]`.
        mask: `[N T S]` where exact, `[N T 1]` else; a row of False is the padding.
        value_kernel: the projection of each head, `[N D F]`: the values are `x value_kernel[n]`.
    """

    query: Float[Array, "T N H"]
    key: Float[Array, "S N H"]
    mask: Bool[Array, "N T #S"]
    value_kernel: Float[Array, "N D F"]


@contract.primitive("input_size", "strides", "padding", "dilation", "alpha")
def heads(
    kernel: Float[Array, "*size D F"],
    input_size: tuple[int, ...],
    *,
    strides: Steps = 1,
    padding: Padding = "SAME",
    dilation: Steps = 1,
    alpha: float = math.inf,
) -> Heads:
    """The heads that are a convolution, `softmax(-alpha |p - c|^2) (x W[n])` summed over n.

    Args:
        kernel: `[*size D F]`, as `jax.lax.conv_general_dilated` takes it with channels last; one, two
            or more spatial axes.
        input_size: positions of the input along each spatial axis.
        strides: steps between outputs; one for all spatial axes, or one for each.
        padding: "SAME", "VALID", or a tuple of (before, after) for each spatial axis.
        dilation: steps between the taps of the kernel, likewise.
        alpha: sharpness of the scores; infinite for exact equality, by a mask. Finite, each neighbour
            of the position meant gets about `exp(-alpha)`.

    Returns:
        `Heads`, in the working dtype of the kernel.

    Raises:
        ValueError: sizes that do not fit, an unknown padding, an alpha that is not positive.

    Memory O(N T S) where exact. Cordonnier, Loukas and Jaggi (2020), "On the relationship between
    self-attention and convolutional layers".
    """
    contract.check_floating(kernel=kernel)
    *size, D, F = kernel.shape
    if not alpha > 0:
        raise ValueError(f"alpha must be positive, got {alpha}")
    taps = _taps(tuple(size), input_size, strides, padding, dilation)
    outputs, offsets, places = _grid(len(along) for along in taps), _grid(size), _grid(input_size)
    columns = [along[outputs[:, axis, None], offsets[:, axis]] for axis, along in enumerate(taps)]
    centres = np.stack(columns, axis=-1)  # [T N axes]
    dtype = contract.working_dtype(kernel.dtype)
    N, (S, axes) = centres.shape[1], places.shape
    sharpness = 1.0 if math.isinf(alpha) else alpha
    query = 2 * sharpness * np.concatenate([centres, np.full((*centres.shape[:2], 1), -0.5)], axis=-1)
    key = np.concatenate([places, (places**2).sum(-1, keepdims=True)], axis=-1)
    is_centre = (centres.swapaxes(0, 1)[:, :, None] == places).all(-1)  # [N T S]
    mask = is_centre if math.isinf(alpha) else is_centre.any(-1, keepdims=True)
    return Heads(
        jnp.asarray(query, dtype),
        jnp.asarray(np.broadcast_to(key[:, None], (S, N, axes + 1)), dtype),
        jnp.asarray(mask),
        kernel.reshape(N, D, F).astype(dtype),
    )


@contract.primitive()
def apply(x: Float[Array, "*B S D"], heads: Heads) -> Float[Array, "*B T F"]:
    """Multi-head attention over positions by given heads, `out = sum_n softmax(q . k) (x W[n])`.

    Args:
        x: the input's positions in a row, `[*B S D]`.
        heads: of `heads`.

    Returns:
        `[*B T F]` in the dtype of x.

    Raises:
        ValueError: shapes that do not fit.

    O(N T S F). Cordonnier, Loukas and Jaggi (2020), "On the relationship between self-attention and
    convolutional layers".
    """
    contract.check_floating(x=x)
    S, (N, D, F) = heads.key.shape[0], heads.value_kernel.shape
    if x.shape[-2:] != (S, D):
        raise ValueError(f"x must be [*B S D] with S {S} and D {D} for these heads, got {x.shape}")
    dtype = heads.value_kernel.dtype
    value = jnp.einsum("...sd,ndf->...snf", x.astype(dtype), heads.value_kernel)

    def attend(value: Float[Array, "S N F"]) -> Float[Array, "T N F"]:
        out = stages.attend(heads.query, heads.key, value, score=scores.dot, mask=heads.mask)
        return cast(Array, out)

    # The weights depend on positions alone, so one set of them serves the whole batch.
    out = jax.vmap(attend)(value.reshape(math.prod(x.shape[:-2]), S, N, F)).sum(axis=-2)
    return out.reshape(*x.shape[:-2], *out.shape[-2:]).astype(x.dtype)


@contract.primitive("strides", "padding", "dilation", "alpha")
def convolve(
    x: Float[Array, "*positions D"],
    kernel: Float[Array, "*size D F"],
    *,
    strides: Steps = 1,
    padding: Padding = "SAME",
    dilation: Steps = 1,
    alpha: float = math.inf,
) -> Float[Array, "*outputs F"]:
    """A convolution made by attention alone, `out = apply(x, heads(kernel, ...))`.

    Args:
        x: `[*B *input D]`, with as many spatial axes as the kernel.
        kernel: `[*size D F]`.
        strides: steps between outputs; one for all spatial axes, or one for each.
        padding: "SAME", "VALID", or a tuple of (before, after) for each spatial axis.
        dilation: steps between the taps of the kernel, likewise.
        alpha: sharpness of the scores; infinite for exact equality.

    Returns:
        `[*B *output F]` in the dtype of x.

    Raises:
        ValueError: shapes that do not fit, an unknown padding, an alpha that is not positive.
        TypeError: dtypes that differ.

    O(N T S F) time, O(N T S) memory: a demonstration, not a quick convolution. Cordonnier, Loukas and
    Jaggi (2020), "On the relationship between self-attention and convolutional layers".
    """
    contract.check_floating(x=x, kernel=kernel)
    axes = kernel.ndim - 2
    if axes < 1 or x.ndim <= axes or x.shape[-1] != kernel.shape[-2]:
        raise ValueError(
            f"x [*B *input D] and kernel [*size D F] do not fit, got x {x.shape} and kernel {kernel.shape}"
        )
    batch, input_size = x.shape[: -axes - 1], x.shape[-axes - 1 : -1]
    made = heads(kernel, input_size, strides=strides, padding=padding, dilation=dilation, alpha=alpha)
    out = apply(x.reshape(*batch, math.prod(input_size), x.shape[-1]), made)
    taps = _taps(kernel.shape[:-2], input_size, strides, padding, dilation)
    return out.reshape(*batch, *(len(along) for along in taps), out.shape[-1])


def receptive_field(window: tuple[int, int], layers: int = 1) -> tuple[int, int]:
    """How far a stack of banded heads sees, `(layers * left, layers * right)` keys besides its own.

    A convolution of odd size K is such a band of `(K // 2, K // 2)`: both grow alike, by K - 1 keys a
    layer.

    Args:
        window: `(left, right)` of one layer, as `masks.band` takes it.
        layers: number of layers.

    Returns:
        The window of the whole stack.

    Raises:
        ValueError: a negative side or number of layers.
        TypeError: a window that is not a pair of integers.

    Cordonnier, Loukas and Jaggi (2020), "On the relationship between self-attention and convolutional
    layers".
    """
    left, right = contract.check_window(window)
    layers = operator.index(layers)
    if layers < 0:
        raise ValueError(f"layers must not be negative, got {layers}")
    return layers * left, layers * right


def _taps(
    size: tuple[int, ...], input_size: tuple[int, ...], strides: Steps, padding: Padding, dilation: Steps
) -> list[np.ndarray]:
    """For each spatial axis, the input position at which each tap of each output falls, `[outputs, taps]`."""
    if not size or len(size) != len(input_size):
        raise ValueError(f"kernel {size} and input {input_size} need the same spatial axes, at least one")
    strides, dilation = _per_axis("strides", strides, size), _per_axis("dilation", dilation, size)
    reach = tuple((k - 1) * step + 1 for k, step in zip(size, dilation, strict=True))
    margins = _margins(padding, input_size, reach, strides)
    taps = []
    for axis, (before, after) in enumerate(margins):
        outputs = (input_size[axis] + before + after - reach[axis]) // strides[axis] + 1
        starts = np.arange(max(outputs, 0)) * strides[axis] - before
        taps.append(starts[:, None] + np.arange(size[axis]) * dilation[axis])
    return taps


def _grid(size: Iterable[int]) -> np.ndarray:
    """The coordinates of all positions of a grid, row by row, `[positions, axes]`."""
    size = tuple(size)
    return np.indices(size).reshape(len(size), -1).T


def _per_axis(name: str, steps: Steps, size: tuple[int, ...]) -> tuple[int, ...]:
    steps = (steps,) * len(size) if isinstance(steps, int) else tuple(steps)
    if len(steps) != len(size) or min(steps) < 1:
        raise ValueError(f"{name} must be one positive integer for each axis of kernel {size}, got {steps}")
    return steps


def _margins(
    padding: Padding, input_size: tuple[int, ...], reach: tuple[int, ...], strides: tuple[int, ...]
) -> Sequence[tuple[int, int]]:
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or pairs (before, after), got {padding!r}")
        return jax.lax.padtype_to_pads(input_size, reach, strides, padding)
    if len(padding) != len(input_size) or any(len(pair) != 2 for pair in padding):
        raise ValueError(f"padding must be a pair for each axis of input {input_size}, got {padding}")
    return padding
