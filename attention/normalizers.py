"""Normalisers: how scores become weights, `(scores, mask) -> weights`, both `[*B N T S]`.

Any function of this form can be given to `attention.attend`. The mask is boolean, `True` where a
query may attend, or None where every query may attend to every key. A weight is exactly 0 where
masked, whatever the score there, and so is every weight of a fully masked row.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention import contract


@contract.primitive()
def softmax(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None = None
) -> Float[Array, "*B N T S"]:
    """Weights that are positive and sum to 1, `w[s] = exp(a[s]) / sum_r exp(a[r])`.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.

    Returns:
        Weights `[*B N T S]`.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Bridle (1990), "Training stochastic model recognition algorithms as networks can lead to maximum
    mutual information estimation of parameters".
    """
    scores = _checked(scores, mask)
    exponentials, total, _ = softmax_parts(scores, mask)
    return exponentials / total


def softmax_parts(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None
) -> tuple[Float[Array, "*B N T S"], Float[Array, "*B N T 1"], Float[Array, "*B N T 1"]]:
    """A softmax left in parts, for callers who divide later or want its logarithm.

    Returns:
        The exponentials `exp(a - m)`, 0 where masked; the divisor `sum exp(a - m)`, 1 where nothing
        is visible; and the shift `m`, -inf where nothing is visible, so that
        `m + log(divisor)` is the log-sum-exp of every row.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    # The result does not depend on the shift, so the shift is a constant to the gradient.
    shift = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf))
    if mask is None and scores.shape[-1] > 0:
        exponentials = jnp.exp(scores - shift)
        return exponentials, jnp.sum(exponentials, axis=-1, keepdims=True), shift
    exponentials = jnp.exp(scores - jnp.where(shift == -jnp.inf, 0.0, shift))
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials, jnp.where(total == 0, 1.0, total), shift


@contract.primitive("divide")
def relu(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    *,
    divide: bool = False,
) -> Float[Array, "*B N T S"]:
    """Weights that are 0 for negative scores, `w[s] = max(a[s], 0)`.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.
        divide: divide by the number of keys the query may attend to, which keeps the size of the
            output independent of that number.

    Returns:
        Weights `[*B N T S]`, which need not sum to 1.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Wortsman et al. (2023), "Replacing softmax with ReLU in vision transformers".
    """
    scores = _checked(scores, mask)
    S = scores.shape[-1]
    weights = jax.nn.relu(scores)
    if mask is not None:
        weights = jnp.where(mask, weights, 0.0)
    if not divide:
        return weights
    if mask is None:
        return weights / max(S, 1)
    visible = jnp.broadcast_to(mask, (*mask.shape[:-1], S))
    count = jnp.sum(visible, axis=-1, keepdims=True, dtype=scores.dtype)
    return weights / jnp.maximum(count, 1.0)


@contract.primitive()
def identity(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None = None
) -> Float[Array, "*B N T S"]:
    """The scores themselves as weights, `w[s] = a[s]`: attention without a normaliser.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.

    Returns:
        Weights `[*B N T S]`, of any sign and sum.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Schlag, Irie and Schmidhuber (2021), "Linear transformers are secretly fast weight programmers".
    """
    scores = _checked(scores, mask)
    return scores if mask is None else jnp.where(mask, scores, 0.0)


def _checked(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None
) -> Float[Array, "*B N T S"]:
    contract.check_floating(scores=scores)
    contract.check_mask(mask, scores.shape)
    return scores.astype(contract.working_dtype(scores.dtype))
