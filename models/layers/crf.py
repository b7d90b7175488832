"""A linear-chain conditional random field: labels of a sequence chosen together, not one by one.

    p(tags | x) = exp(sum_t logits[t, tags_t] + sum_t transitions[tags_t-1, tags_t]) / Z

with scores of the first and the last tag besides; Z sums over all sequences of tags. Padding is not part
of the sequence, wherever it lies.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

# Added to the score of what may not be. Finite, since the gradient of a sum of exponentials of -inf is NaN.
FORBIDDEN = -1e9


class Transitions(NamedTuple):
    """Scores of tags by their neighbours.

    Attributes:
        between: of tag j after tag i, `[K, K]`.
        first: of the first tag, `[K]`.
        last: of the last tag, `[K]`.
    """

    between: Float[Array, "K K"]
    first: Float[Array, "K"]
    last: Float[Array, "K"]


def log_partition(
    logits: Float[Array, "B T K"], mask: Bool[Array, "B T"], transitions: Transitions
) -> Float[Array, "B"]:
    """`log Z`, by the forward algorithm, O(T K^2).

    Args:
        logits: score of each tag at each vector, finite, `[B, T, K]`.
        mask: True where a vector is real, False where it is padding.
        transitions: scores of neighbours.

    Returns:
        `[B]`; 0 for an empty sequence.
    """

    def step(carry, inputs):
        before, begun = carry
        logit, real = inputs
        after = jax.nn.logsumexp(before[:, :, None] + transitions.between[None], axis=1)
        return _advance(before, begun, after, logit, real, transitions), None

    (scores, begun), _ = jax.lax.scan(step, _start(logits), _by_time(logits, mask))
    total = jax.nn.logsumexp(scores + transitions.last[None], axis=-1)
    return jnp.where(begun[:, 0], total, 0)


def loss(
    logits: Float[Array, "B T K"],
    tags: Int[Array, "B T"],
    mask: Bool[Array, "B T"],
    transitions: Transitions,
) -> Float[Array, "B"]:
    """`-log p(tags | x)` of each sequence, summed over what an unlabelled one may be.

    Args:
        logits: score of each tag at each vector, finite, `[B, T, K]`.
        tags: in 0 to K - 1, or below 0 where there is no label.
        mask: True where a vector is real, False where it is padding.
        transitions: scores of neighbours.

    Returns:
        `[B]`, at least 0; 0 for an empty sequence.

    Source: Lafferty, McCallum and Pereira 2001; unlabelled positions as in Tsuboi et al. 2008.
    """
    possible = (tags[..., None] < 0) | (tags[..., None] == jnp.arange(logits.shape[-1])[None, None])
    of_tags = log_partition(jnp.where(possible, logits, logits + FORBIDDEN), mask, transitions)
    return log_partition(logits, mask, transitions) - of_tags


def viterbi(
    logits: Float[Array, "B T K"], mask: Bool[Array, "B T"], transitions: Transitions
) -> Int[Array, "B T"]:
    """The likeliest sequence of tags, O(T K^2) (Viterbi 1967).

    Args:
        logits: score of each tag at each vector, finite, `[B, T, K]`.
        mask: True where a vector is real, False where it is padding.
        transitions: scores of neighbours.

    Returns:
        int32 `[B, T]`; at padding, what stands there means nothing.
    """
    itself = jnp.arange(logits.shape[-1], dtype=jnp.int32)[None]

    def forward(carry, inputs):
        before, begun = carry
        logit, real = inputs
        candidates = before[:, :, None] + transitions.between[None]
        # From padding, and from the first vector, there is nowhere to go back to.
        best = jnp.where(real & begun, candidates.argmax(axis=1).astype(jnp.int32), itself)
        return _advance(before, begun, candidates.max(axis=1), logit, real, transitions), best

    (scores, _), best = jax.lax.scan(forward, _start(logits), _by_time(logits, mask))
    end = (scores + transitions.last[None]).argmax(axis=-1).astype(jnp.int32)

    def backward(tag, best):
        return jnp.take_along_axis(best, tag[:, None], axis=1)[:, 0], tag

    _, tags = jax.lax.scan(backward, end, best, reverse=True)
    return tags.T


def _start(logits: Float[Array, "B T K"]) -> tuple[Float[Array, "B K"], Bool[Array, "B 1"]]:
    batch, _, tags = logits.shape
    return jnp.zeros((batch, tags), logits.dtype), jnp.zeros((batch, 1), bool)


def _by_time(
    logits: Float[Array, "B T K"], mask: Bool[Array, "B T"]
) -> tuple[Float[Array, "T B K"], Bool[Array, "T B 1"]]:
    return logits.swapaxes(0, 1), mask.T[..., None]


def _advance(
    before: Float[Array, "B K"],
    begun: Bool[Array, "B 1"],
    after: Float[Array, "B K"],
    logit: Float[Array, "B K"],
    real: Bool[Array, "B 1"],
    transitions: Transitions,
) -> tuple[Float[Array, "B K"], Bool[Array, "B 1"]]:
    """Scores of all beginnings that end in each tag, one vector further; as they were at padding."""
    new = jnp.where(begun, after, transitions.first[None]) + logit
    return jnp.where(real, new, before), begun | real
