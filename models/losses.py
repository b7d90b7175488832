"""The loss of every task that chooses among classes or tokens."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def cross_entropy(
    logits: Float[Array, "*B K"], labels: Int[Array, "*B"], label_smoothing: float = 0.0
) -> Float[Array, "*B"]:
    """`-log p(label)`, with part of the target's probability spread evenly over all classes.

    Args:
        logits: of each class, `[*B, K]`.
        labels: the right ones, int `[*B]`, in 0 to K - 1.
        label_smoothing: the part that is spread, in [0, 1) (Szegedy et al. 2016).
    """
    # Not by one-hot targets, which would be as large as the logits.
    log_sum = jax.nn.logsumexp(logits, axis=-1)
    loss = log_sum - jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    if label_smoothing:
        loss = (1 - label_smoothing) * loss + label_smoothing * (log_sum - logits.mean(axis=-1))
    return loss
