"""Normalisers: how scores become weights, `(scores, mask) -> weights`, both `[*B N T S]`.

Any function of this form can be given to `attention.attend`. The mask is boolean, `True` where a
query may attend, or None where every query may attend to every key. A weight is exactly 0 where
masked, whatever the score there, and so is every weight of a fully masked row.
"""

import numbers
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attention.entmax import entmax_weights
from attention.internals import contract
from attention.internals.softmax_parts import finite_maximum, undivided


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
    exponentials, total, _ = undivided(scores, mask)
    return exponentials / total


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


@contract.primitive()
def sigmoid(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None = None
) -> Float[Array, "*B N T S"]:
    """Each weight by its own score alone, `w[s] = 1 / (1 + exp(-a[s]))`.

    A bias of `-log(S)` on the scores keeps the size of the output independent of the number of keys
    at the start of training, as the paper advises.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.

    Returns:
        Weights `[*B N T S]` between 0 and 1, which need not sum to 1.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Ramapuram et al. (2025), "Theory, analysis, and best practices for sigmoid self-attention".
    """
    return jax.nn.sigmoid(_hidden(_checked(scores, mask), mask))


@contract.primitive()
def sparsemax(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None = None
) -> Float[Array, "*B N T S"]:
    """The point of the simplex nearest to the scores, `w[s] = max(a[s] - t, 0)`, t such that they sum to 1.

    Keys whose score falls short of the largest by 1 or more get no weight at all. Exact, in O(S) time
    for each of the few rounds in which keys drop out.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.

    Returns:
        Weights `[*B N T S]`, many of them exactly 0.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Martins and Astudillo (2016), "From softmax to sparsemax: a sparse model of attention and
    multi-label classification"; the rounds are Michelot (1986), "A finite algorithm for finding the
    projection of a point onto the canonical simplex of R^n".
    """
    scores = _hidden(_checked(scores, mask), mask)
    largest = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf))
    scores = scores - finite_maximum(largest)

    def threshold(
        scores: Float[Array, "*B N T S"], kept: Bool[Array, "*B N T S"]
    ) -> Float[Array, "*B N T 1"]:
        """What to take from the scores that are kept, so that they sum to 1."""
        count = jnp.sum(kept, axis=-1, keepdims=True, dtype=scores.dtype)
        total = jnp.sum(jnp.where(kept, scores, 0.0), axis=-1, keepdims=True)
        return (total - 1) / jnp.maximum(count, 1.0)

    def drop(state: tuple[Float[Array, "*B N T 1"], Array]) -> tuple[Float[Array, "*B N T 1"], Array]:
        # Keys that are out only raise the threshold for the others: it goes up, and never too far.
        t, _ = state
        higher = threshold(known, known > t)
        return jnp.maximum(t, higher), jnp.any(higher > t)

    # A sort would give the threshold at once, but costs far more than these rounds. Which keys are
    # kept is a constant to the gradient; the threshold, a mean over them, is not.
    known = jax.lax.stop_gradient(scores)
    start = jnp.full_like(largest, -1), jnp.array(True)
    t, _ = jax.lax.while_loop(lambda state: state[1], drop, start)
    kept = ~(known <= t)  # and not `known > t`, so that NaN stays NaN
    return jax.nn.relu(jnp.where(kept, scores - threshold(scores, kept), 0.0))


def entmax(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    *,
    alpha: float | int | Float[Array, "..."] = 1.5,
) -> Float[Array, "*B N T S"]:
    """Between softmax and sparsemax, `w[s] = max((alpha - 1) a[s] - t, 0)^(1 / (alpha - 1))`.

    The weights sum to 1, which fixes t. At alpha = 1 they are those of softmax, at 2 those of sparsemax;
    the larger alpha, the more of them are 0. Exact to rounding, with exact derivatives of any
    order in the scores and in alpha, so that alpha can be learned. O(S) time per step of Newton's
    method, about 5 of them.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.
        alpha: in [1, 2], a number or `[*B N T 1]`, or 1 in any axis: `[1 N 1 1]` for one of each head.
            One out of this range makes the weights NaN where it is not known before the program runs.

    Returns:
        Weights `[*B N T S]`.

    Raises:
        ValueError: the mask or alpha does not fit the scores, or alpha is out of its range.
        TypeError: the mask is not boolean, or the scores are not floating.

    Peters, Niculae and Martins (2019), "Sparse sequence-to-sequence models"; for alpha per head, and its
    gradient, Correia, Niculae and Martins (2019), "Adaptively sparse transformers".
    """
    _check_number("alpha", alpha, "in [1, 2]", _is_alpha)
    return _entmax(scores, mask, alpha)


@contract.primitive()
def _entmax(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None,
    alpha: Any,
) -> Float[Array, "*B N T S"]:
    scores = _hidden(_checked(scores, mask), mask)
    alpha = jnp.asarray(alpha, scores.dtype)
    alpha = alpha.reshape(alpha.shape or (1,) * scores.ndim)
    *rows, _ = scores.shape
    fits = (size in (1, full) for size, full in zip(alpha.shape, (*rows, 1), strict=False))
    if alpha.ndim != scores.ndim or not all(fits):
        raise ValueError(f"alpha {alpha.shape} must be a number or fit [*B N T 1] {(*rows, 1)}")
    return entmax_weights(scores, jnp.where(_is_alpha(alpha), alpha, jnp.nan))


def _is_alpha(alpha: Any) -> Any:
    return (alpha >= 1) & (alpha <= 2)


@contract.primitive("k")
def top_k(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    *,
    k: int,
) -> Float[Array, "*B N T S"]:
    """Softmax over the k largest scores of each row, 0 for the others.

    Of equal scores the first ones are taken. A row with fewer than k visible keys takes them all.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.
        k: how many keys a query attends to at most, 1 or more.

    Returns:
        Weights `[*B N T S]`.

    Raises:
        ValueError: the mask does not fit the scores, or k is less than 1.
        TypeError: the mask is not boolean, the scores are not floating, or k is not an integer.

    Zhao et al. (2019), "Explicit sparse transformer: concentrated attention through explicit selection".
    """
    scores = _checked(scores, mask)
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(f"k must be an integer, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    S = scores.shape[-1]
    known = jax.lax.stop_gradient(_hidden(scores, mask))
    _, largest = jax.lax.top_k(known, min(k, S))
    kept = jnp.put_along_axis(jnp.zeros_like(known, bool), largest, True, axis=-1, inplace=False)
    return softmax(scores, kept if mask is None else kept & mask)


@contract.primitive()
def hardmax(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None = None
) -> Float[Array, "*B N T S"]:
    """All weight on the largest score, on the first one of equals.

    The limit of `softmax(a / temperature)` as the temperature goes to 0, but for ties. Its gradient is 0
    everywhere: nothing before it learns.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.

    Returns:
        Weights `[*B N T S]`, one 1 in each row.

    Raises:
        ValueError: the mask does not fit the scores.
        TypeError: the mask is not boolean, or the scores are not floating.

    Hahn (2020), "Theoretical limitations of self-attention in neural sequence models".
    """
    scores = jax.lax.stop_gradient(_hidden(_checked(scores, mask), mask))
    *rows, S = scores.shape
    if S == 0:
        return scores
    first = jnp.argmax(scores, axis=-1, keepdims=True)
    largest = jnp.max(scores, axis=-1, keepdims=True)
    # Where nothing is visible, nothing is chosen; and NaN stays NaN.
    share = jnp.where(largest == -jnp.inf, 0.0, jnp.where(jnp.isnan(largest), jnp.nan, 1.0))
    return jnp.where(jnp.arange(S).reshape((1,) * len(rows) + (S,)) == first, share, 0.0)


def gumbel_softmax(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    *,
    key: PRNGKeyArray,
    temperature: float | int | Float[Array, ""] = 1.0,
    hard: bool = False,
) -> Float[Array, "*B N T S"]:
    """A random choice of a key that can be differentiated, `w = softmax((a + g) / temperature)`.

    The noise g is independent for every weight and Gumbel distributed, so that the largest weight of a
    row is at key s with probability `softmax(a)[s]`. As the temperature goes to 0, so does every other.

    Args:
        scores: `[*B N T S]`.
        mask: `[*B N T S]`, or 1 in any axis.
        key: a key of `jax.random.key`; the same key gives the same noise.
        temperature: above 0. One that is not makes the weights NaN where it is not known before the
            program runs.
        hard: give 1 to the largest weight and 0 to the others, with the gradient of what they were before
            (straight-through).

    Returns:
        Weights `[*B N T S]`, which sum to 1.

    Raises:
        ValueError: the mask does not fit the scores, or the temperature is not above 0.
        TypeError: the mask is not boolean, or the scores are not floating.

    Jang, Gu and Poole (2017), "Categorical reparameterization with Gumbel-softmax"; Maddison, Mnih and Teh
    (2017), "The concrete distribution: a continuous relaxation of discrete random variables".
    """
    _check_number("temperature", temperature, "above 0", _is_positive)
    return _gumbel_softmax(scores, mask, key, temperature, hard)


@contract.primitive("hard")
def _gumbel_softmax(
    scores: Float[Array, "*B N T S"],
    mask: Bool[Array, "*#B #N #T #S"] | None,
    key: PRNGKeyArray,
    temperature: Any,
    hard: bool,
) -> Float[Array, "*B N T S"]:
    scores = _checked(scores, mask)
    temperature = jnp.asarray(temperature, scores.dtype)
    temperature = jnp.where(_is_positive(temperature), temperature, jnp.nan)
    if mask is not None:
        # Softmax hides them too, but the gradient in the temperature meets every score.
        scores = jnp.where(mask, scores, 0.0)
    scores = (scores + jax.random.gumbel(key, scores.shape, scores.dtype)) / temperature
    weights = softmax(scores, mask)
    # The difference is 0 to the last bit, and its derivative that of the weights.
    return hardmax(scores, mask) + (weights - jax.lax.stop_gradient(weights)) if hard else weights


def _is_positive(temperature: Any) -> Any:
    return temperature > 0


def _check_number(name: str, number: Any, allowed: str, is_allowed: Callable[[Any], Any]) -> None:
    if not isinstance(number, jax.core.Tracer) and not np.all(is_allowed(np.asarray(number))):
        raise ValueError(f"{name} must be {allowed}, got {number}")


def _hidden(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None
) -> Float[Array, "*B N T S"]:
    """The scores, -inf where masked."""
    return scores if mask is None else jnp.where(mask, scores, -jnp.inf)


def _checked(
    scores: Float[Array, "*B N T S"], mask: Bool[Array, "*#B #N #T #S"] | None
) -> Float[Array, "*B N T S"]:
    contract.check_floating(scores=scores)
    contract.check_mask(mask, scores.shape)
    return scores.astype(contract.working_dtype(scores.dtype))
