"""A set of vectors as one vector, by any pooling of the field."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from attention import pooling
from models.rngs import named
from spec import NonNegative, Registry


class Mean(nnx.Module):
    """The mean of the vectors.

    Args:
        dim: width D of the vectors.

    Attributes:
        dim: width of what comes out.
        ordered: whether it counts which vector comes first, which nodes of a graph do not know.
        reads_token: whether the model puts a learned vector before the others, for it to read.
    """

    ordered: ClassVar[bool] = False
    reads_token: ClassVar[bool] = False

    def __init__(self, *, dim: int):
        self.dim = dim

    def __call__(
        self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]
    ) -> tuple[Float[Array, "B F"], Float[Array, "B"]]:
        """What the sets `x [B T D]` come to, 0 for an empty one; and a penalty for the loss of each."""
        return self.pooled(x, mask), jnp.zeros(len(x), x.dtype)

    def pooled(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B F"]:
        """What the sets come to."""
        return pooling.mean(x, mask=mask)


class Max(Mean):
    """The maximum of the vectors, number by number.

    Args:
        dim: width D of the vectors.
    """

    def pooled(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B F"]:
        """What the sets come to."""
        return pooling.maximum(x, mask=mask)


class Sum(Mean):
    """The sum of the vectors, which alone tells sets apart that differ in size (Xu et al. 2019).

    Args:
        dim: width D of the vectors.
    """

    def pooled(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B F"]:
        """What the sets come to."""
        return jnp.where(mask[..., None], x, 0).sum(axis=1)


class Last(Mean):
    """The last vector.

    Args:
        dim: width D of the vectors.
    """

    ordered = True

    def pooled(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B F"]:
        """What the sets come to."""
        return pooling.last(x, mask=mask)


class First(Mean):
    """The first vector, of use where the encoder lets it see the others.

    Args:
        dim: width D of the vectors.
    """

    ordered = True

    def pooled(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B F"]:
        """What the sets come to."""
        return jnp.where(mask[:, :1], x[:, 0], 0)


class ClassToken(First):
    """The first vector, a learned one that the model puts before the others.

    Args:
        dim: width D of the vectors.
    """

    reads_token = True


class SelfAttentive(Mean):
    """Learned queries read the vectors in hops, which are laid end to end: a structured embedding.

    Args:
        hops: vectors that it makes, R.
        attention_dim: hidden width of the scores.
        penalty_weight: of `|A A^T - I|^2` in the loss, by which hops are kept apart.
        dim: width D of the vectors.
        rngs: source of the initial parameters.

    Source: Lin et al. 2017.
    """

    def __init__(
        self,
        *,
        hops: int = 1,
        attention_dim: int = 64,
        penalty_weight: NonNegative = 0.0,
        dim: int,
        rngs: nnx.Rngs,
    ):
        self.dim, self.penalty_weight = hops * dim, penalty_weight
        initial = nnx.initializers.lecun_normal()

        def kernel(name: str, shape: tuple[int, int]) -> nnx.Param[jax.Array]:
            return nnx.Param(initial(named(rngs, name).params(), shape))

        self.hidden_kernel = kernel("hidden_kernel", (dim, attention_dim))
        self.hop_kernel = kernel("hop_kernel", (attention_dim, hops))

    def __call__(
        self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]
    ) -> tuple[Float[Array, "B F"], Float[Array, "B"]]:
        """What the sets come to, and the penalty."""
        kernels = self.hidden_kernel[...], self.hop_kernel[...]
        pooled, weights = pooling.self_attentive(x, *kernels, mask=mask, return_weights=True)
        penalty = jnp.zeros(len(x), x.dtype)
        if self.penalty_weight:
            penalty = self.penalty_weight * pooling.penalty(weights)
        return pooled.reshape(len(x), -1), penalty


POOLS = Registry(
    "pool",
    {
        "mean": Mean,
        "max": Max,
        "sum": Sum,
        "last": Last,
        "first": First,
        "class": ClassToken,
        "self_attentive": SelfAttentive,
    },
    given=("dim", "rngs"),
)
