"""Localness: a Gaussian bias that favours the keys around a centre.

`bias[s] = -(s - P)^2 / (2 sigma^2)` with `sigma = D / 2`, for a centre P and a window D of each
query. Given to `attend` or `dot_product_attention` as their `bias`, it multiplies the weights,
before they are normalised, by a Gaussian. Keys stand at the positions 0 to S - 1; centre and window
are measured in positions. Both may be given or be predicted, by `S sigmoid(v . tanh(W x))`, where S
is the true length of the row:

- `centred`: centre at the query's own position, window given, by hand or as a learned parameter;
- `fixed_window`: centre predicted per query, window given;
- `layer_window`: centre predicted per query, one window for all of them from the mean of the keys;
- `query_window`: centre and window predicted per query.

A bias hides nothing: padding still needs its mask.

Yang et al. (2018), "Modeling localness for self-attention networks".
"""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention import masks, positions
from attention.internals import contract, grouped, unseen

# The narrowest window. All weight is on the nearest key long before a window is as narrow as this;
# a saturated sigmoid would otherwise make it 0, and the bias and its gradient 0 / 0.
NARROWEST = 0.01


@contract.primitive("S")
def gaussian(
    centre: Float[Array, "*B N T"], window: Float[Array, "*#B #N #T"], S: int
) -> Float[Array, "*B N T {S}"]:
    """The logarithm of a Gaussian over the keys, `bias[s] = -(s - P)^2 / (2 (D / 2)^2)`.

    Args:
        centre: P, `[*B N T]`.
        window: D, two standard deviations, `[*B N T]`, or 1 in any axis. Below 0.01 it counts as
            0.01.
        S: number of keys.

    Returns:
        Bias `[*B N T S]`, at most 0.

    Raises:
        ValueError: a window that does not fit the centre.

    Cost: O(T S) per head.

    Yang et al. (2018), "Modeling localness for self-attention networks".
    """
    contract.check_floating(centre=centre, window=window)
    if window.ndim != centre.ndim or any(
        size not in (1, full) for size, full in zip(window.shape, centre.shape, strict=True)
    ):
        raise ValueError(f"window {window.shape} does not broadcast to centre [*B N T] {centre.shape}")
    keys = jnp.arange(S, dtype=centre.dtype).reshape((1,) * centre.ndim + (S,))
    deviations = (keys - centre[..., None]) / jnp.maximum(window, NARROWEST)[..., None]
    return -2.0 * deviations * deviations


def centred(
    T: int,
    S: int | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    *,
    window: float | int | Float[Array, "*#B N #T"],
    batch_dims: int = 1,
) -> Float[Array, "*B N T S"]:
    """A Gaussian around each query's own position, `bias[t, s] = -(s - t)^2 / (2 (D / 2)^2)`.

    Args:
        T: number of queries.
        S: number of keys, T if None.
        query_offset: position of the first query among the keys, one integer or one per batch
            element, with `batch_dims` axes; needed where T differs from S.
        window: D, two standard deviations, one number; or an array `[*B N T]`, or 1 in any axis,
            such as a learned one per head, `[1 N 1]`.
        batch_dims: number of batch axes.

    Returns:
        Bias `[*B N T S]`, 1 in the axes in which it does not vary; float32, or the dtype of an
        array.

    Raises:
        ValueError: a number that is not positive, an array of another rank, or T differs from S and
            there is no query_offset.

    Cost: O(T S).

    Yang et al. (2018), "Modeling localness for self-attention networks".
    """
    window = _given(window, batch_dims, jnp.float32)
    return _centred(T, S, query_offset, window, batch_dims)


@contract.primitive("T", "S", "batch_dims")
def _centred(
    T: int,
    S: int | None,
    query_offset: int | Int[Array, "..."] | None,
    window: Float[Array, "*#B N #T"],
    batch_dims: int,
) -> Float[Array, "*B N T S"]:
    queries, keys = positions.places(T, S, query_offset, batch_dims)
    centre = queries[..., 0].astype(window.dtype)
    shape = jnp.broadcast_shapes(centre.shape, window.shape)
    return gaussian(jnp.broadcast_to(centre, shape), window, keys.shape[-1])


def fixed_window(
    query: Float[Array, "*B T N H"],
    S: int,
    *,
    kernel: Float[Array, "N H A"],
    centre_vector: Float[Array, "N A"],
    window: float | int | Float[Array, "*#B #N #T"],
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B N T {S}"]:
    """A Gaussian of one window around a predicted centre, `P = S sigmoid(u . tanh(W q))`.

    Args:
        query: `[*B T N H]`.
        S: number of keys.
        kernel: W, `[N H A]`.
        centre_vector: u, `[N A]`.
        window: D, two standard deviations, one number; or an array `[*B N T]`, or 1 in any axis.
        lengths: the true number of keys of each sequence, `[*B]`; S if None.

    Returns:
        Bias `[*B N T S]`, in float32 or wider.

    Raises:
        ValueError: shapes that do not fit, or a number that is not positive.
        TypeError: dtypes that differ, or lengths that are not integers.

    Cost: O(T (S + H A)) per head.

    Yang et al. (2018), "Modeling localness for self-attention networks".
    """
    contract.check_floating(query=query)
    window = _given(window, query.ndim - 3, contract.working_dtype(query.dtype))
    centre = predict(query, kernel, centre_vector, S, lengths)
    return gaussian(centre, window.astype(centre.dtype), S)


@contract.primitive()
def layer_window(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K Hk"],
    *,
    kernel: Float[Array, "N H A"],
    centre_vector: Float[Array, "N A"],
    window_kernel: Float[Array, "N Hk A"],
    window_vector: Float[Array, "N A"],
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B N T S"]:
    """A Gaussian around a predicted centre, its window predicted once for all queries.

    `P = S sigmoid(u . tanh(W q))`, `D = S sigmoid(v . tanh(M mean(k)))`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K Hk]`, K divides N; keys from `lengths` on are unseen.
        kernel: W, `[N H A]`.
        centre_vector: u, `[N A]`.
        window_kernel: M, `[N Hk A]`.
        window_vector: v, `[N A]`.
        lengths: the true number of keys of each sequence, `[*B]`; S if None.

    Returns:
        Bias `[*B N T S]`, in float32 or wider.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, or lengths that are not integers.

    Cost: O(T (S + H A) + S H) per head.

    Yang et al. (2018), "Modeling localness for self-attention networks".
    """
    contract.check_query_key(query, key, same_width=False)
    S, dtype = key.shape[-3], contract.working_dtype(key.dtype)
    count = jnp.asarray(S)
    if lengths is not None:
        check_lengths(lengths, key.shape[:-3])
        key = unseen.hide(key, masks.padding(lengths, S))
        count = lengths[..., None, None, None]
    total = jnp.sum(key, axis=-3, keepdims=True, dtype=dtype)
    mean = grouped.repeat(total / jnp.maximum(count, 1).astype(dtype), query.shape[-2])
    centre = predict(query, kernel, centre_vector, S, lengths)
    window = predict(mean, window_kernel.astype(dtype), window_vector.astype(dtype), S, lengths)
    return gaussian(centre, window, S)


@contract.primitive("S")
def query_window(
    query: Float[Array, "*B T N H"],
    S: int,
    *,
    kernel: Float[Array, "N H A"],
    centre_vector: Float[Array, "N A"],
    window_vector: Float[Array, "N A"],
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B N T {S}"]:
    """A Gaussian whose centre and window each query predicts for itself.

    `P = S sigmoid(u . tanh(W q))`, `D = S sigmoid(v . tanh(W q))`, with one W for both.

    Args:
        query: `[*B T N H]`.
        S: number of keys.
        kernel: W, `[N H A]`.
        centre_vector: u, `[N A]`.
        window_vector: v, `[N A]`.
        lengths: the true number of keys of each sequence, `[*B]`; S if None.

    Returns:
        Bias `[*B N T S]`, in float32 or wider.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, or lengths that are not integers.

    Cost: O(T (S + H A)) per head.

    Yang et al. (2018), "Modeling localness for self-attention networks".
    """
    centre = predict(query, kernel, centre_vector, S, lengths)
    window = predict(query, kernel, window_vector, S, lengths)
    return gaussian(centre, window, S)


@contract.primitive("S")
def predict(
    x: Float[Array, "*B T N H"],
    kernel: Float[Array, "N H A"],
    vector: Float[Array, "N A"],
    S: int,
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B N T"]:
    """A position, or a number of positions, between 0 and S: `S sigmoid(v . tanh(W x))`.

    Args:
        x: what it is predicted from, `[*B T N H]`. Features that are not finite count as 0:
            attention itself turns what sees such a query into NaN, and a masked one must not.
        kernel: W, `[N H A]`.
        vector: v, `[N A]`.
        S: number of keys.
        lengths: the true number of keys of each sequence, `[*B]`, in place of S.

    Returns:
        `[*B N T]`, in float32 or wider.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, or lengths that are not integers.

    Cost: O(T H A) per head.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    contract.check_floating(x=x, kernel=kernel, vector=vector)
    *batch, _, N, H = x.shape
    A = vector.shape[-1]
    contract.check_parameter("kernel [N H A]", kernel, (N, H, A))
    contract.check_parameter("vector [N A]", vector, (N, A))
    dtype = contract.working_dtype(x.dtype)
    x, kernel = jnp.where(jnp.isfinite(x), x, 0.0).astype(dtype), kernel.astype(dtype)
    hidden = jnp.tanh(jnp.einsum("...tnh,nha->...nta", x, kernel))
    share = jax.nn.sigmoid(jnp.einsum("...nta,na->...nt", hidden, vector.astype(dtype)))
    if lengths is None:
        return S * share
    check_lengths(lengths, tuple(batch))
    return jnp.asarray(lengths, dtype)[..., None, None] * share


def check_lengths(lengths: Int[Array, "*B"], batch: contract.Shape) -> None:
    """Raise unless there is one integer, the true number of keys, for each batch element."""
    contract.check_integers("lengths", lengths)
    if jnp.shape(lengths) != batch:
        raise ValueError(f"lengths must be one per batch element {batch}, got {jnp.shape(lengths)}")


def _given(window: float | int | Array, batch_dims: int, dtype: Any) -> Float[Array, "*#B #N #T"]:
    """A window that is not predicted, with every axis."""
    if isinstance(window, numbers.Real):
        if not window > 0:
            raise ValueError(f"window must be positive, got {window}")
        return jnp.full((1,) * (batch_dims + 2), float(window), dtype)
    window = jnp.asarray(window)
    contract.check_floating(window=window)
    if window.ndim != batch_dims + 2:
        raise ValueError(
            f"window must be one number or have every axis of [*B N T], 1 where it does not vary; "
            f"got {window.shape} for {batch_dims} batch axes"
        )
    return window
