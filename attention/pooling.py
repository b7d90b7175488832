"""Pooling: a sequence `[*B S D]` as one vector, or as a few.

Which steps exist is said by `lengths`, one integer for each sequence, or by `mask`, boolean, True
where a step exists, or by both. A sequence without steps gives 0. What a step that does not exist
holds, NaN included, changes nothing.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention import scores, stages
from attention.internals import contract


@contract.primitive()
def last(
    x: Float[Array, "*B S D"],
    *,
    mask: Bool[Array, "*B S"] | None = None,
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B D"]:
    """The last step that exists, `out = x[max s]`, as a recurrent encoder is read.

    Args:
        x: `[*B S D]`.
        mask: which steps exist, `[*B S]`.
        lengths: how many of the first steps exist, `[*B]`.

    Returns:
        `[*B D]`.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: a mask that is not boolean, lengths that are not integers.

    O(S). Sutskever, Vinyals and Le (2014), "Sequence to sequence learning with neural networks".
    """
    exists = _exists(x, mask, lengths)
    index = jnp.max(jnp.where(exists, _steps(x), -1), axis=-1, initial=-1)
    # From the end, as NumPy reads -1, would turn no step into the last one.
    index = jnp.where(index < 0, x.shape[-2], index)[..., None, None]
    return jnp.take_along_axis(x, index, axis=-2, mode="fill", fill_value=0)[..., 0, :]


@contract.primitive()
def mean(
    x: Float[Array, "*B S D"],
    *,
    mask: Bool[Array, "*B S"] | None = None,
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B D"]:
    """The mean over the steps that exist, `out = sum_s x[s] / n`.

    Args:
        x: `[*B S D]`.
        mask: which steps exist, `[*B S]`.
        lengths: how many of the first steps exist, `[*B]`.

    Returns:
        `[*B D]`.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: a mask that is not boolean, lengths that are not integers.

    O(S D). Lin, Chen and Yan (2014), "Network in network".
    """
    exists, dtype = _exists(x, mask, lengths), contract.working_dtype(x.dtype)
    total = jnp.sum(jnp.where(exists[..., None], x, 0).astype(dtype), axis=-2)
    count = jnp.maximum(jnp.sum(exists, axis=-1, dtype=jnp.int32), 1).astype(dtype)
    return (total / count[..., None]).astype(x.dtype)


@contract.primitive()
def maximum(
    x: Float[Array, "*B S D"],
    *,
    mask: Bool[Array, "*B S"] | None = None,
    lengths: Int[Array, "*B"] | None = None,
) -> Float[Array, "*B D"]:
    """The largest of each feature over the steps that exist, `out[d] = max_s x[s, d]`.

    Args:
        x: `[*B S D]`.
        mask: which steps exist, `[*B S]`.
        lengths: how many of the first steps exist, `[*B]`.

    Returns:
        `[*B D]`. The gradient is shared evenly by steps that tie.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: a mask that is not boolean, lengths that are not integers.

    O(S D). Collobert et al. (2011), "Natural language processing (almost) from scratch".
    """
    exists = _exists(x, mask, lengths)
    largest = jnp.max(jnp.where(exists[..., None], x, -jnp.inf), axis=-2, initial=-jnp.inf)
    return jnp.where(jnp.any(exists, axis=-1)[..., None], largest, 0)


@contract.primitive("return_weights")
def self_attentive(
    x: Float[Array, "*B S D"],
    hidden_kernel: Float[Array, "D A"],
    hop_kernel: Float[Array, "A R"],
    *,
    mask: Bool[Array, "*B S"] | None = None,
    lengths: Int[Array, "*B"] | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B R D"] | tuple[Float[Array, "*B R D"], Float[Array, "*B R S"]]:
    """Structured self-attentive pooling, `M = A x` with `A = softmax(W2 tanh(W1 x))`, in R hops.

    Each hop is a learned query that reads the sequence once.

    Args:
        x: `[*B S D]`.
        hidden_kernel: W1, `[D A]`.
        hop_kernel: W2, `[A R]`.
        mask: which steps exist, `[*B S]`.
        lengths: how many of the first steps exist, `[*B]`.
        return_weights: return A as well.

    Returns:
        M, `[*B R D]` in the dtype of x; with `return_weights` a pair of it and A, `[*B R S]`.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, a mask that is not boolean, lengths that are not integers.

    O(S (D A + A R + R D)). Lin et al. (2017), "A structured self-attentive sentence embedding".
    """
    contract.check_floating(x=x, hidden_kernel=hidden_kernel, hop_kernel=hop_kernel)
    exists, dtype = _exists(x, mask, lengths), contract.working_dtype(x.dtype)
    if hidden_kernel.ndim != 2 or hop_kernel.ndim != 2 or hidden_kernel.shape[0] != x.shape[-1]:
        raise ValueError(
            f"hidden_kernel [D A] and hop_kernel [A R] do not fit x {x.shape}, "
            f"got {hidden_kernel.shape} and {hop_kernel.shape}"
        )
    contract.check_parameter("hop_kernel [A R]", hop_kernel, (hidden_kernel.shape[1], hop_kernel.shape[1]))
    shown = jnp.where(exists[..., None], x, 0)
    hidden = jnp.einsum("...sd,da->...sa", shown, hidden_kernel, preferred_element_type=dtype)
    queries = hop_kernel.T.astype(dtype)
    pooled, weights = stages.attend(
        jnp.broadcast_to(queries, (*x.shape[:-2], 1, *queries.shape)),
        jnp.tanh(hidden)[..., None, :],
        shown.astype(dtype)[..., None, :],
        score=scores.dot,
        mask=exists[..., None, None, :],
        return_weights=True,
    )
    pooled, weights = pooled[..., 0, :, :].astype(x.dtype), weights[..., 0, :]
    return (pooled, weights) if return_weights else pooled


@contract.primitive()
def penalty(weights: Float[Array, "*B R S"]) -> Float[Array, "*B"]:
    """How far the hops are from looking at one step each, at different ones, `|A A^T - I|_F^2`.

    Args:
        weights: A of `self_attentive`, `[*B R S]`.

    Returns:
        The squared Frobenius norm, `[*B]`; 0 for one-hot rows that do not overlap. An empty sequence
        has the constant R, with gradient 0.

    O(R^2 S). Lin et al. (2017), "A structured self-attentive sentence embedding".
    """
    contract.check_floating(weights=weights)
    if weights.ndim < 2:
        raise ValueError(f"weights must be [*B R S], got {weights.shape}")
    dtype = contract.working_dtype(weights.dtype)
    overlap = jnp.einsum("...rs,...qs->...rq", weights, weights, preferred_element_type=dtype)
    identity = jnp.broadcast_to(jnp.eye(weights.shape[-2], dtype=dtype), overlap.shape)
    return jnp.sum((overlap - identity) ** 2, axis=(-2, -1))


def _exists(x: Array, mask: Array | None, lengths: Array | None) -> Bool[Array, "*B S"]:
    """Which steps exist, `[*B S]`, whatever says so."""
    contract.check_floating(x=x)
    if x.ndim < 2:
        raise ValueError(f"x must be [*B S D], got {x.shape}")
    *batch, S, _ = x.shape
    exists = jnp.ones((*batch, S), bool)
    if mask is not None:
        if mask.dtype != jnp.bool_:
            raise TypeError(f"mask must be boolean, True where a step exists, got {mask.dtype} {mask.shape}")
        if mask.shape != exists.shape:
            raise ValueError(f"mask must be [*B S] {exists.shape} for x {x.shape}, got {mask.shape}")
        exists = mask
    if lengths is not None:
        if not jnp.issubdtype(lengths.dtype, jnp.integer):
            raise TypeError(f"lengths must be integers, got {lengths.dtype} {lengths.shape}")
        if lengths.shape != tuple(batch):
            raise ValueError(f"lengths must be [*B] {tuple(batch)} for x {x.shape}, got {lengths.shape}")
        exists = exists & (_steps(x) < lengths[..., None].astype(jnp.int32))
    return exists


def _steps(x: Array) -> Int[Array, "*#B S"]:
    """The number of each step, `[*B S]` with 1 in all axes but the last."""
    S = x.shape[-2]
    return jnp.arange(S, dtype=jnp.int32).reshape((1,) * (x.ndim - 2) + (S,))
