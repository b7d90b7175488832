"""A set of vectors as one vector, by any pooling of the field."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from attention import pooling


def _first(x: Float[Array, "B T D"], *, mask: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    return jnp.where(mask[:, :1], x[:, 0], 0)


def _sum(x: Float[Array, "B T D"], *, mask: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    return jnp.where(mask[..., None], x, 0).sum(axis=1)


SELF_ATTENTIVE = "self_attentive"  # learned queries read the vectors, in hops (Lin et al. 2017)
POOLS: dict[str, Callable[..., jax.Array] | None] = {
    "last": pooling.last,  # the last vector
    "first": _first,  # the first vector
    "class": _first,  # the same, where the model has put a learned vector there
    "mean": pooling.mean,
    "max": pooling.maximum,
    "sum": _sum,  # which alone tells sets apart that differ in size (Xu et al. 2019)
    SELF_ATTENTIVE: None,
}


class Pool(nnx.Module):
    """The vectors of a set as one, or as the `hops` of self-attentive pooling end to end.

    Args:
        dim: width D of the vectors.
        kind: one of `POOLS`.
        hops: vectors that self-attentive pooling makes, R.
        attention_dim: hidden width of self-attentive pooling.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if kind is none of the above, or hops are asked of another pool.

    Attributes:
        dim: width of what comes out.

    Source: Lin et al. 2017 for self-attentive pooling; the rest as in `attention.pooling`.
    """

    def __init__(self, dim: int, kind: str, *, hops: int = 1, attention_dim: int = 64, rngs: nnx.Rngs):
        if kind not in POOLS:
            raise ValueError(f"pool is {kind!r}; it must be one of {tuple(POOLS)}")
        if hops != 1 and kind != SELF_ATTENTIVE:
            raise ValueError(f"hops are of pool 'self_attentive', not of {kind!r}")
        self.kind, self.dim = kind, hops * dim
        if kind == SELF_ATTENTIVE:
            initial = nnx.initializers.lecun_normal()
            self.hidden_kernel = nnx.Param(initial(rngs.params(), (dim, attention_dim)))
            self.hop_kernel = nnx.Param(initial(rngs.params(), (attention_dim, hops)))

    def __call__(
        self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]
    ) -> tuple[Float[Array, "B F"], Float[Array, "B R T"] | None]:
        """What the sets `x [B, T, D]` come to, 0 for an empty one; and the weights of the hops, if any."""
        function = POOLS[self.kind]
        if function is not None:
            return function(x, mask=mask), None
        kernels = self.hidden_kernel[...], self.hop_kernel[...]
        pooled, weights = pooling.self_attentive(x, *kernels, mask=mask, return_weights=True)
        return pooled.reshape(len(x), -1), weights
