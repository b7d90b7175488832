"""Local attention: each query looks at a window of the keys around a position p of the source.

"Local-m" takes p as given, by default the query's own position; "local-p" predicts it, and favours
the keys near it by a Gaussian on the weights. Both are `attend` with a mask that depends on p, and
take its scores. All scores are computed; what is saved is attention, not arithmetic.

Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
translation".
"""

import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Real

from attention import localness, masks, normalizers, positions, scores, stages
from attention.internals import contract


def local_m(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    *,
    radius: int,
    centre: Real[Array, "*#B #N #T"] | None = None,
    query_offset: int | Int[Array, "..."] | None = None,
    score: stages.Score = scores.scaled_dot,
    lengths: Int[Array, "*B"] | None = None,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N T S"]]:
    """Softmax attention over the keys in the window `[p - D, p + D]` around a given position p.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N.
        value: `[*B S K V]`.
        radius: D, a whole number.
        centre: p, `[*B N T]`, or 1 in any axis; not differentiable. None is the monotonic alignment
            of the paper, `p = t + query_offset`. A query whose window lies outside the source sees
            nothing.
        query_offset: step of the first query, 0 if None; one integer or one per batch element
            `[*B]`. Only without `centre`.
        score: a function `(query, key) -> scores [*B N T S]`, as for `attend`.
        lengths: the true number of keys of each sequence, `[*B]`; those after them are hidden.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis.
        dropout_rate: share of the weights set to 0, in [0, 1).
        dropout_key: a key of `jax.random.key`, needed where the rate is above 0.
        return_weights: return the weights, before dropout, as well.

    Returns:
        The output `[*B T N V]` in the query's dtype; with `return_weights` a pair of it and the
        weights `[*B N T S]`, in float32 or wider. A row that sees no key has output 0 and weights
        0.

    Raises:
        ValueError: shapes that do not fit, a negative radius, both a centre and a query_offset, a
            rate outside [0, 1), or a missing dropout key.
        TypeError: dtypes that differ, or an argument of the wrong kind.

    Cost: O(T S) scores, as dense attention.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    shape = contract.check_attention(query, key, value, same_width=False, mask=mask, bias=bias)
    radius = operator.index(radius)
    if radius < 0:
        raise ValueError(f"radius must not be negative, got {radius}")
    if centre is None:
        centre = _steps(shape, query_offset)
    elif query_offset is not None:
        raise ValueError("query_offset places the centres of the windows, and so does centre; give one")
    return stages.attend(
        query,
        key,
        value,
        score=score,
        mask=_visible(centre, lengths, mask, radius=radius, shape=shape),
        bias=bias,
        dropout_rate=dropout_rate,
        dropout_key=dropout_key,
        return_weights=return_weights,
    )


def local_p(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    *,
    radius: int,
    kernel: Float[Array, "N Hq A"],
    vector: Float[Array, "N A"],
    renormalize: bool = False,
    score: stages.Score = scores.scaled_dot,
    lengths: Int[Array, "*B"] | None = None,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N T S"]]:
    """Softmax attention in a window around a predicted position, times a Gaussian on the weights.

    `p = S sigmoid(v . tanh(W q))`; `w[s] = softmax(scores)[s] exp(-(s - p)^2 / (2 (D / 2)^2))` over
    the keys s in `[p - D, p + D]`, which are counted from 0. The Gaussian is what p learns by. As
    in the paper it comes after the softmax and the weights sum to less than 1.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N.
        value: `[*B S K V]`.
        radius: D, a whole number.
        kernel: W, `[N Hq A]`.
        vector: v, `[N A]`.
        renormalize: divide the weights by their sum.
        score: a function `(query, key) -> scores [*B N T S]`, as for `attend`.
        lengths: the true number of keys of each sequence, `[*B]`, which is the S of p; those after
            them are hidden. All S if None.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis. It does not
            change p.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis.
        dropout_rate: share of the weights set to 0, in [0, 1).
        dropout_key: a key of `jax.random.key`, needed where the rate is above 0.
        return_weights: return the weights, before dropout, as well.

    Returns:
        The output `[*B T N V]` in the query's dtype; with `return_weights` a pair of it and the
        weights `[*B N T S]`, in float32 or wider. A row that sees no key has output 0 and weights
        0.

    Raises:
        ValueError: shapes that do not fit, a radius below 1, a rate outside [0, 1), or a missing
            dropout key.
        TypeError: dtypes that differ, or an argument of the wrong kind.

    Cost: O(T S) scores, as dense attention.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    shape = contract.check_attention(query, key, value, same_width=False, mask=mask, bias=bias)
    radius = operator.index(radius)
    if radius < 1:
        raise ValueError(f"radius must be at least 1, since D / 2 is a standard deviation, got {radius}")
    S = shape[-1]
    centre = localness.predict(query, kernel, vector, S, lengths)
    window = jnp.full((1,) * centre.ndim, radius, centre.dtype)
    favour = localness.gaussian(centre, window, S)
    return stages.attend(
        query,
        key,
        value,
        score=score,
        normalize=jax.tree_util.Partial(_favouring_softmax, favour=favour, renormalize=renormalize),
        mask=_visible(centre, lengths, mask, radius=radius, shape=shape),
        bias=bias,
        dropout_rate=dropout_rate,
        dropout_key=dropout_key,
        return_weights=return_weights,
    )


def _favouring_softmax(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None,
    *,
    favour: Float[Array, "*B N T S"],
    renormalize: bool,
) -> Float[Array, "*B N T S"]:
    """Weights of a softmax times `exp(favour)`."""
    if renormalize:  # the same, divided by the sum
        return normalizers.softmax(scores + favour.astype(scores.dtype), mask)
    return normalizers.softmax(scores, mask) * jnp.exp(favour).astype(scores.dtype)


def _steps(shape: contract.Shape, query_offset: int | Array | None) -> Int[Array, "*#B 1 T"]:
    """The position of each query, the source read in step with the target."""
    *batch, _, T, S = shape
    offset = 0 if query_offset is None else query_offset
    contract.check_query_offset(offset, shape)
    queries, _ = positions.places(T, S, offset, len(batch))
    return queries[..., 0]


@contract.primitive("radius", "shape")
def _visible(
    centre: Real[Array, "*#B #N #T"],
    lengths: Int[Array, "*B"] | None,
    mask: Bool[Array, "*#B #N #T #S"] | None,
    *,
    radius: int,
    shape: contract.Shape,
) -> Bool[Array, "*#B #N #T S"]:
    """The keys within the radius of the centre, and before the end of the row."""
    *batch, _, _, S = shape
    if centre.ndim != len(shape) - 1 or any(
        size not in (1, full) for size, full in zip(centre.shape, shape[:-1], strict=True)
    ):
        raise ValueError(f"centre {centre.shape} does not broadcast to [*B N T] {shape[:-1]}")
    keys = jnp.arange(S, dtype=centre.dtype).reshape((1,) * centre.ndim + (S,))
    visible = jnp.abs(keys - centre[..., None]) <= radius
    if lengths is not None:
        localness.check_lengths(lengths, tuple(batch))
        visible = visible & masks.padding(lengths, S)
    return visible if mask is None else visible & mask
