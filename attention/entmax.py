"""The entmax family: softmax, sparsemax and all between, as one function of scores and alpha.

With `b = alpha - 1` a weight is the power function that turns into an exponential as b goes to 0,

    w = max(1 + b (a - t), 0)^(1/b)

where t, the same for all keys of a row, makes them sum to 1. At alpha = 1 the weights are those of
softmax and t is the log-sum-exp; at alpha = 2 they are `max(a - t + 1, 0)`, sparsemax.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.internals.softmax_parts import finite_maximum


@jax.custom_jvp
def entmax_weights(
    scores: Float[Array, "*B N T S"], alpha: Float[Array, "*#B #N #T 1"]
) -> Float[Array, "*B N T S"]:
    """Weights of rows of scores, -inf where masked; alpha between 1 and 2."""
    largest = jnp.max(scores, axis=-1, keepdims=True, initial=-jnp.inf)
    scores = scores - finite_maximum(largest)
    b = alpha - 1
    is_softmax = b == 0
    divisor = jnp.where(is_softmax, 1.0, b)

    def powers(
        m: Float[Array, "*B N T 1"],
    ) -> tuple[Float[Array, "*B N T S"], Float[Array, "*B N T S"]]:
        """The weights if the largest is `exp(-m)`, and how fast they fall as t grows."""
        # In terms of m no digits are lost at either end: neither of 1 + b (a - t) where b is small,
        # nor of its difference to 0 where it is small itself, as for many keys at alpha = 2.
        scale = jnp.exp(b * m)
        bases = b * (scores * scale)
        outside = bases <= -1  # and not `> -1` of the others, so that NaN stays NaN
        logarithm = jnp.where(is_softmax, scores, jnp.log1p(bases) / divisor) - m
        weights = jnp.where(outside, 0.0, jnp.exp(logarithm))
        return weights, jnp.where(weights > 0, weights * scale / (1 + bases), 0.0)

    def newton(m: Float[Array, "*B N T 1"]) -> Float[Array, "*B N T 1"]:
        """How far to go by a step of Newton's method in t on `(sum w)^b = 1`."""
        weights, slopes = powers(m)
        total, slope = (jnp.sum(x, axis=-1, keepdims=True) for x in (weights, slopes))
        excess = jnp.where(is_softmax, jnp.log(total), -jnp.expm1(-b * jnp.log(total)) / divisor)
        t_step = total * excess / slope
        return jnp.where(is_softmax, t_step, -jnp.log1p(-b * t_step * jnp.exp(b * m)) / divisor)

    def forward(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        # `(sum w)^b` is a norm of positive parts of lines in t, hence convex, and falls; so from
        # m = 0, where the largest weight alone is 1, each step goes forward and, but for rounding,
        # none too far. A row that has stopped stays, however long the others go on.
        m, step, _ = state
        m = jnp.where(m + step > m, m + step, m)
        step = newton(m)
        return m, step, jnp.any(m + step > m)

    zero = jnp.zeros_like(largest + alpha)
    m, step, _ = jax.lax.while_loop(lambda state: state[2], forward, (zero, zero, jnp.array(True)))
    # Back over what rounding has gone too far. No step is known where no key is visible.
    return powers(jnp.where(step < 0, m + step, m))[0]


@entmax_weights.defjvp
def _entmax_tangent(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Float[Array, "*B N T S"], Float[Array, "*B N T S"]]:
    """The implicit function's derivative, in terms of the weights; so it has one itself.

    Each weight moves by what it would alone, at fixed t, less its part of what t takes back to keep
    the sum at 1, which is in proportion to `w^(2 - alpha)`.
    """
    scores, alpha = primals
    d_scores, d_alpha = tangents
    weights = entmax_weights(scores, alpha)
    positive = weights > 0
    logarithm = jnp.log(jnp.where(positive, weights, 1.0))
    share = jnp.where(positive, jnp.exp((2 - alpha) * logarithm), 0.0)
    alone = share * d_scores - _by_alpha(weights, share, logarithm, alpha - 1) * d_alpha
    shares = jnp.sum(share, axis=-1, keepdims=True)
    taken_back = jnp.sum(alone, axis=-1, keepdims=True) / jnp.where(shares == 0, 1.0, shares)
    return weights, alone - share * taken_back


def _by_alpha(
    weights: Float[Array, "*B N T S"],
    share: Float[Array, "*B N T S"],
    logarithm: Float[Array, "*B N T S"],
    b: Float[Array, "*#B #N #T 1"],
) -> Float[Array, "*B N T S"]:
    """`w log(w)^2 (e^y - 1 - y) / y^2` with `y = -b log w`, which is -dw/dalpha but for what t takes back.

    Correia et al. give `(w - share) / b^2 - w log(w) / b`, equal but for a multiple of the share, which
    t takes back in any case. That loses all digits near alpha = 1; this has the limit `w log(w)^2 / 2`.
    """
    y = -b * logarithm
    small = y < 0.3
    near = jnp.where(small, y, 0.0)
    series = jnp.ones_like(near)
    for n in range(13, 2, -1):
        series = 1 + series * near / n
    far = jnp.where(small, 1.0, y)
    # w e^y is the share: e^y alone could overflow.
    direct = (share - weights * (1 + y)) / (far * far)
    return logarithm**2 * jnp.where(small, weights * series / 2, direct)
