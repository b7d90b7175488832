"""No encoder."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float


class Identity(nnx.Module):
    """The vectors as they come, such as those of a grid that a CNN has made already."""

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """`x`, 0 at padding; see `Encoder`."""
        return jnp.where(mask[..., None], x, 0)
