"""The contract every mechanism keeps: what is checked at trace time, and in which precision to work.

Nothing here costs anything at run time: shapes and dtypes are known while JAX traces, so a call
that compiles once is checked once. Messages name the shapes on both sides of a disagreement.
"""

import numbers
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Function = TypeVar("Function", bound=Callable[..., Any])
Shape = tuple[int, ...]


def primitive(*static: str) -> Callable[[Function], Function]:
    """Compile a public function, so that a call from a notebook compiles once per shape.

    Args:
        *static: names of the arguments that are Python values, fixed when the function compiles.

    Returns:
        A decorator. Under an outer `jax.jit` the function's operations are inlined: nothing is
        added to the caller's program.
    """

    def decorate(function: Function) -> Function:
        return cast(Function, jax.jit(function, static_argnames=static, inline=True))

    return decorate


def working_dtype(dtype: Any) -> Any:
    """The precision of scores and normalisers: at least float32, and float64 for float64."""
    # Not jnp.promote_types, which refuses to mix them under strict dtype promotion.
    return jnp.dtype(dtype) if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def check_floating(**arrays: Array) -> None:
    """Raise TypeError unless the named arrays have one common floating-point dtype."""
    dtypes = {name: array.dtype for name, array in arrays.items()}
    if len(set(dtypes.values())) > 1 or not all(
        jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes.values()
    ):
        found = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise TypeError(f"one floating-point dtype is needed throughout, got {found}")


def check_query_key(query: Array, key: Array, *, same_width: bool) -> None:
    """Raise unless a score of these two is defined.

    Args:
        query: meant as `[*B T N H]`.
        key: meant as `[*B S K H]`.
        same_width: whether the head dims must be equal, as in every score made of `q . k`.
    """
    check_floating(query=query, key=key)
    if query.ndim < 3 or query.ndim != key.ndim:
        raise ValueError(
            f"query [*B T N H] and key [*B S K H] need the same rank, 3 or more, "
            f"got query {query.shape} and key {key.shape}"
        )
    if query.shape[:-3] != key.shape[:-3]:
        raise ValueError(f"batch axes of query and key differ: query {query.shape}, key {key.shape}")
    if key.shape[-2] == 0 or query.shape[-2] % key.shape[-2]:
        raise ValueError(
            f"the {query.shape[-2]} query heads cannot be shared out over {key.shape[-2]} key "
            f"heads: query {query.shape}, key {key.shape}; N must be a multiple of K"
        )
    if same_width and query.shape[-1] != key.shape[-1]:
        raise ValueError(f"head dims of query and key differ: query {query.shape}, key {key.shape}")


def check_value(key: Array, value: Array) -> None:
    """Raise unless every key `[*B S K H]` has its value `[*B S K V]`."""
    check_floating(key=key, value=value)
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"key and value must agree in all axes but the last, got key {key.shape} and value {value.shape}"
        )


def check_attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    same_width: bool = True,
    mask: Array | None = None,
    bias: Array | None = None,
    dropout_rate: float = 0.0,
    dropout_key: Array | None = None,
) -> Shape:
    """Raise unless these arguments make sense together; everything a mechanism takes alike.

    Args:
        query: meant as `[*B T N H]`.
        key: meant as `[*B S K H]`.
        value: meant as `[*B S K V]`.
        same_width: whether the head dims of query and key must be equal.
        mask: boolean, of the rank of the scores.
        bias: floating, of the rank of the scores.
        dropout_rate: in [0, 1).
        dropout_key: needed where the rate is above 0.

    Returns:
        The shape of the scores, `[*B N T S]`.
    """
    check_query_key(query, key, same_width=same_width)
    check_value(key, value)
    shape = scores_shape(query, key)
    check_mask(mask, shape)
    check_bias(bias, shape, working_dtype(query.dtype))
    check_dropout(dropout_rate, dropout_key)
    return shape


def check_self_attention(mechanism: str, scores: Shape) -> None:
    """Raise ValueError unless queries and keys are the same positions, so that T equals S."""
    *_, T, S = scores
    if T != S:
        raise ValueError(
            f"{mechanism} is self-attention: it needs as many queries as keys, got scores {scores}"
        )


def check_key_mask(mechanism: str, mask: Array | None, scores: Shape) -> None:
    """Raise unless a mask says of each key alone whether it exists: `[*B 1 1 S]`, as of `masks.padding`.

    For mechanisms that never form the score of one query with one key, and so cannot hide a key from some
    queries and show it to others.
    """
    check_mask(mask, scores)
    if mask is not None and mask.shape[-3:-1] != (1, 1):
        raise ValueError(
            f"{mechanism} cannot honour a mask that differs between queries or heads (a causal one does), "
            f"got mask {mask.shape} for scores {scores}; it takes [*B 1 1 S], as masks.padding makes it"
        )


def scores_shape(query: Array, key: Array) -> Shape:
    """The shape `[*B N T S]` of the scores of `query` and `key`."""
    *batch, T, N, _ = query.shape
    return (*batch, N, T, key.shape[-3])


def check_parameter(name: str, parameter: Array, expected: Shape) -> None:
    """Raise ValueError unless a learned parameter of a score has the shape its heads ask for."""
    if parameter.shape != expected:
        raise ValueError(f"{name} must be {expected} for these heads, got {parameter.shape}")


def check_scores(name: str, scores: Array, expected: Shape) -> None:
    """Raise unless what a score or normaliser returned is a floating array `[*B N T S]`."""
    if scores.shape != expected:
        raise ValueError(f"{name} returned {scores.shape}, but [*B N T S] is {expected} here")
    check_floating(**{name: scores})


def _check_broadcast(name: str, array: Array, scores: Shape) -> None:
    if array.ndim != len(scores):
        builders = f" (masks.causal and masks.band: batch_dims={len(scores) - 3})"
        raise ValueError(
            f"{name} {array.shape} has rank {array.ndim} but scores {scores} have rank "
            f"{len(scores)}: give {name} every axis of [*B N T S], of size 1 where it does not vary"
            + builders
            * (name == "mask")
        )
    if any(size not in (1, full) for size, full in zip(array.shape, scores, strict=True)):
        raise ValueError(f"{name} {array.shape} does not broadcast to scores [*B N T S] {scores}")


def check_mask(mask: Array | None, scores: Shape) -> None:
    """Raise unless the mask is boolean, of the rank of the scores, and broadcasts to them."""
    if mask is None:
        return
    if mask.dtype != jnp.bool_:
        raise TypeError(
            f"mask must be boolean, True where a query may attend, got {mask.dtype} {mask.shape} "
            f"for scores {scores}; additive terms go into bias"
        )
    _check_broadcast("mask", mask, scores)


def check_bias(bias: Array | None, scores: Shape, dtype: Any) -> None:
    """Raise unless the bias is floating, no wider than the scores, and broadcasts to them."""
    if bias is None:
        return
    floating = jnp.issubdtype(bias.dtype, jnp.floating)
    if not floating or jnp.finfo(bias.dtype).bits > jnp.finfo(dtype).bits:
        raise TypeError(
            f"bias {bias.shape} must be floating and no wider than the scores' {dtype}, "
            f"got {bias.dtype} for scores {scores}; yes-or-no terms go into mask"
        )
    _check_broadcast("bias", bias, scores)


def check_dropout(rate: float, key: Array | None) -> None:
    """Raise unless `rate` is a number in [0, 1) and comes with a key where it needs one."""
    if not isinstance(rate, numbers.Real):
        raise TypeError(f"dropout_rate must be a Python number, got {type(rate).__name__}")
    if not 0 <= rate < 1:
        raise ValueError(f"dropout_rate must be in [0, 1), got {rate}")
    if rate > 0 and key is None:
        raise ValueError(f"dropout_rate {rate} needs a dropout_key, as made by jax.random.key")


def check_window(window: Any) -> tuple[int, int]:
    """The window `(left, right)`, or an error where it is anything but two counts of keys."""
    if not isinstance(window, tuple) or len(window) != 2:
        raise TypeError(
            f"window must be a pair (left, right) of how many keys are seen on each side of the "
            f"query's own, got {window!r}; (3, 0) shows four keys"
        )
    left, right = map(operator.index, window)
    if left < 0 or right < 0:
        raise ValueError(f"window sides must not be negative, got {window}")
    return left, right


def check_lengths(T: int, S: int) -> None:
    """Raise ValueError unless positions are unambiguous without a query_offset: T equals S."""
    if T != S:
        raise ValueError(
            f"with {T} queries and {S} keys the position of the queries is ambiguous: give "
            f"query_offset=0 if they stand at the first keys, or query_offset={S - T} (S - T) if "
            f"they are the last {T} of {S}"
        )


def check_integers(name: str, array: Any) -> None:
    """Raise TypeError unless positions, lengths or indices are integers."""
    dtype = jnp.result_type(array)
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"{name} {jnp.shape(array)} must be integers, got {dtype}")


def check_query_offset(query_offset: Any, scores: Shape) -> None:
    """Raise unless it is known where the queries stand among the keys: by an offset, or as T equals S."""
    *batch, _, T, S = scores
    if query_offset is None:
        check_lengths(T, S)
        return
    if not jnp.issubdtype(jnp.result_type(query_offset), jnp.integer):
        raise TypeError(f"query_offset must be integers, got {jnp.result_type(query_offset)}")
    if jnp.shape(query_offset) not in ((), tuple(batch)):
        raise ValueError(
            f"query_offset must be one integer or one per batch element {tuple(batch)}, "
            f"got {jnp.shape(query_offset)} for scores {scores}"
        )


def check_band(
    scores: Shape,
    is_causal: bool,
    query_offset: int | Array | None,
    window: tuple[int, int] | None,
) -> tuple[int | None, int | None] | None:
    """How many keys before and after its own position a query sees; None for no limit.

    Raises:
        ValueError: an offset that is ambiguous, of the wrong shape, or for nothing.
        TypeError: a window that is not a pair.
    """
    if not is_causal and window is None:
        if query_offset is not None:
            raise ValueError("query_offset places the queries for is_causal or window; neither was given")
        return None
    left, right = (None, None) if window is None else check_window(window)
    check_query_offset(query_offset, scores)
    return left, 0 if is_causal else right


def check_at_least_one(name: str, size: Any) -> int:
    """The size as a Python integer, or an error where it is none or not at least 1."""
    size = operator.index(size)
    if size < 1:
        raise ValueError(f"{name} must be at least 1, got {size}")
    return size


def first_outside(indices: Any, size: int, exist: Any = True) -> Any | None:
    """The first of the indices outside [0, size); None if there is none, or while JAX traces them.

    Args:
        indices: integers.
        size: how many things there are to point at.
        exist: which of the indices count, of their shape.
    """
    if isinstance(indices, jax.core.Tracer) or isinstance(exist, jax.core.Tracer):
        return None
    known = np.asarray(indices)
    outside = known[((known < 0) | (known >= size)) & np.asarray(exist)]
    return outside[0] if outside.size else None
