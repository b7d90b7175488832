"""Hard attention: look at one position, drawn from the weights, instead of at their weighted sum.

The weights are those of any mechanism whose rows sum to 1:

    _, weights = attend(q, k, v, mask=mask, return_weights=True)
    glimpse = hard.sample(weights, v, sample_key=jax.random.key(0))

The expectation of the context is soft attention, `attend` itself. A draw has no gradient, so the
weights learn through the log-probability of what was drawn, by `variational_loss`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention.internals import contract


class Glimpse(NamedTuple):
    """What one look at one position of each row gives.

    Attributes:
        context: the value there, `[*B T N V]`.
        log_probability: of having looked there, `[*B N T]`.
        entropy: of the row's weights, `[*B N T]`, in nats.
        position: which one it was, `[*B N T]`, -1 where a row sees nothing.
    """

    context: Float[Array, "*B T N V"]
    log_probability: Float[Array, "*B N T"]
    entropy: Float[Array, "*B N T"]
    position: Int[Array, "*B N T"]


@contract.primitive()
def sample(
    weights: Float[Array, "*B N T S"], value: Float[Array, "*B S K V"], *, sample_key: PRNGKeyArray
) -> Glimpse:
    """The value at one position drawn from the weights, `out = v[s], s ~ Categorical(w)`.

    Args:
        weights: `[*B N T S]`, rows that sum to 1, or of zeros where nothing is visible.
        value: `[*B S K V]`, K divides N.
        sample_key: a key of `jax.random.key`; draws are independent for every row.

    Returns:
        A `Glimpse`. A row of zeros has context 0, log-probability 0, entropy 0 and position -1. A
        position of weight 0 is never drawn, and what its value holds changes nothing.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the arrays are not floating.

    O(T S + T V) for each head. Xu et al. (2015), "Show, attend and tell: neural image caption
    generation with visual attention".
    """
    _check(weights, value)
    if weights.shape[-1] == 0:
        return choose(weights, value, jnp.full(weights.shape[:-1], -1))
    logits = jax.lax.stop_gradient(jnp.where(weights == 0, -jnp.inf, jnp.log(_positive(weights))))
    position = jax.random.categorical(sample_key, logits)
    return choose(weights, value, jnp.where(jnp.any(weights != 0, axis=-1), position, -1))


@contract.primitive()
def choose(
    weights: Float[Array, "*B N T S"], value: Float[Array, "*B S K V"], position: Int[Array, "*B N T"]
) -> Glimpse:
    """The value at a given position of each row, `out = v[s]`, as `sample` returns it.

    Args:
        weights: `[*B N T S]`, rows that sum to 1, or of zeros where nothing is visible.
        value: `[*B S K V]`, K divides N.
        position: s of each row, `[*B N T]`. One that is no position, or has weight 0, sees nothing.

    Returns:
        A `Glimpse`, with context 0, log-probability 0 and position -1 where nothing is seen.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the arrays are not floating, or the positions not integers.

    O(T S + T V) for each head. Xu et al. (2015), "Show, attend and tell".
    """
    _check(weights, value)
    *batch, N, T, S = weights.shape
    *_, K, V = value.shape
    if position.shape != (*batch, N, T) or not jnp.issubdtype(position.dtype, jnp.integer):
        raise ValueError(
            f"position must be integers {(*batch, N, T)}, one for each row of weights {weights.shape}, "
            f"got {position.dtype} {position.shape}"
        )
    # From the end, as NumPy reads -1, would turn no position into the last one.
    index = jnp.where(position < 0, S, position)
    weight = jnp.take_along_axis(weights, index[..., None], axis=-1, mode="fill", fill_value=0)[..., 0]
    weight = weight.astype(contract.working_dtype(weight.dtype))
    seen = weight != 0
    # Gathered, not multiplied by a one-hot row: 0 times a NaN that was not chosen would be NaN.
    rows = jnp.where(seen, index, S).reshape(*batch, K, N // K * T, 1)
    context = jnp.take_along_axis(jnp.swapaxes(value, -3, -2), rows, axis=-2, mode="fill", fill_value=0)
    nan = jnp.where(jnp.isnan(weight), jnp.nan, 0.0)[..., None].astype(value.dtype)
    context = jnp.swapaxes(context.reshape(*batch, N, T, V) + nan, -2, -3)
    position = jnp.where(seen, position, -1)
    return Glimpse(context, jnp.log(_positive(weight)), entropy(weights), position)


@contract.primitive()
def entropy(weights: Float[Array, "*B N T S"]) -> Float[Array, "*B N T"]:
    """The entropy of each row, `- sum_s w[s] log w[s]`, in nats.

    Args:
        weights: `[*B N T S]`; a weight of 0 adds nothing.

    Returns:
        `[*B N T]`, between 0 and `log S`.

    Shannon (1948), "A mathematical theory of communication".
    """
    weights = _positive(weights.astype(contract.working_dtype(weights.dtype)))
    return -jnp.sum(weights * jnp.log(weights), axis=-1)


@contract.primitive()
def variational_loss(
    log_likelihood: Float[Array, "*B"],
    log_probability: Float[Array, "*B"],
    entropy: Float[Array, "*B"],
    baseline: Float[Array, ""],
    *,
    reward_weight: float | Float[Array, ""] = 1.0,
    entropy_weight: float | Float[Array, ""] = 0.0,
) -> Float[Array, "*B"]:
    """What to minimise so that sampled positions raise the variational lower bound, by REINFORCE.

    The bound is `sum_s p(s) log p(y | s) <= log p(y)`. For a sampled s the gradient of the loss is

        - d log p(y|s) - reward_weight (log p(y|s) - baseline) d log p(s) - entropy_weight d H

    whose mean over s, at `reward_weight=1`, is the exact gradient of the bound and of the entropy,
    whatever the baseline: that only makes it vary less. The value is `-(log p(y|s) + entropy_weight
    H)`, an unbiased estimate of what is minimised.

    Args:
        log_likelihood: `log p(y | s)` of each example, given the sampled positions, `[*B]`.
        log_probability: `log p(s)` of each example, the sum over its rows, `[*B]`.
        entropy: H of each example, the sum over its rows, `[*B]`.
        baseline: what log-likelihood to expect, a scalar; see `moving_baseline`.
        reward_weight: lambda_r of the paper.
        entropy_weight: lambda_e of the paper.

    Returns:
        The loss of each example, `[*B]`.

    Raises:
        ValueError: shapes that differ.
        TypeError: dtypes that differ or are not floating.

    Xu et al. (2015), "Show, attend and tell"; Williams (1992), "Simple statistical gradient-following
    algorithms for connectionist reinforcement learning".
    """
    arrays = {"log_likelihood": log_likelihood, "log_probability": log_probability, "entropy": entropy}
    contract.check_floating(**arrays, baseline=baseline)
    if len({x.shape for x in arrays.values()}) > 1 or baseline.shape:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(
            f"{shapes} must have one shape [*B] and baseline be a scalar, got baseline {baseline.shape}"
        )
    advantage = jax.lax.stop_gradient(log_likelihood - baseline)
    # The score function: 0 in value, d log p(s) in gradient.
    score = log_probability - jax.lax.stop_gradient(log_probability)
    return -(log_likelihood + reward_weight * advantage * score + entropy_weight * entropy)


@contract.primitive()
def moving_baseline(
    baseline: Float[Array, ""],
    log_likelihood: Float[Array, "*B"],
    *,
    decay: float | Float[Array, ""] = 0.9,
) -> Float[Array, ""]:
    """The next baseline, `decay * baseline + (1 - decay) * mean(log_likelihood)`; no gradient.

    Args:
        baseline: the last one, a scalar.
        log_likelihood: of the examples of a batch, `[*B]`.
        decay: how much of the last one stays.

    Returns:
        A scalar. An empty batch leaves the baseline as it was.

    Xu et al. (2015), "Show, attend and tell".
    """
    contract.check_floating(baseline=baseline, log_likelihood=log_likelihood)
    if not log_likelihood.size:
        return baseline
    return jax.lax.stop_gradient(decay * baseline + (1.0 - decay) * jnp.mean(log_likelihood))


@contract.primitive()
def doubly_stochastic(
    weights: Float[Array, "*B N T S"],
    *,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    target: float | Float[Array, ""] = 1.0,
) -> Float[Array, "*B N"]:
    """Penalty for keys looked at too much or too little, `sum_s (target - sum_t w[t, s])^2`.

    Args:
        weights: of soft or hard attention, `[*B N T S]`.
        mask: that of the weights, `[*B N T S]`, or 1 in any axis; a key that no query may see counts
            nothing.
        target: attention that each key should get over all queries; 1 in the paper, T / S for rows
            that sum to 1 is one that can be met.

    Returns:
        `[*B N]`.

    Raises:
        ValueError: the mask does not fit the weights.
        TypeError: the mask is not boolean.

    Xu et al. (2015), "Show, attend and tell".
    """
    contract.check_mask(mask, weights.shape)
    received = jnp.sum(weights.astype(contract.working_dtype(weights.dtype)), axis=-2)
    missing = (target - received) ** 2
    if mask is not None:
        missing = jnp.where(jnp.any(mask, axis=-2), missing, 0.0)
    return jnp.sum(missing, axis=-1)


def _positive(weights: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1 in place of 0, whose logarithm is 0 with a finite gradient."""
    return jnp.where(weights == 0, 1.0, weights)


def _check(weights: Array, value: Array) -> None:
    contract.check_floating(weights=weights)
    contract.check_floating(value=value)
    fits = weights.ndim >= 3 and value.ndim == weights.ndim
    if not fits or (*weights.shape[:-3], weights.shape[-1]) != value.shape[:-2]:
        raise ValueError(
            f"weights [*B N T S] and value [*B S K V] do not fit each other, "
            f"got weights {weights.shape} and value {value.shape}"
        )
    if value.shape[-2] == 0 or weights.shape[-3] % value.shape[-2]:
        raise ValueError(
            f"the {weights.shape[-3]} heads of the weights cannot be shared out over "
            f"{value.shape[-2]} value heads: weights {weights.shape}, value {value.shape}"
        )
