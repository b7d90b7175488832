"""What an encoder is: a set of vectors in, as many of the same width out."""

from typing import Protocol

from flax import nnx
from jaxtyping import Array, Bool, Float


class Encoder(Protocol):
    """What all encoders can do, so that one word swaps a window for a CNN, an RNN or self-attention."""

    def __call__(
        self,
        x: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
    ) -> Float[Array, "B T D"]:
        """Encode sets of vectors.

        Args:
            x: vectors.
            mask: True where a vector is real, False where it is padding. What padding holds changes nothing.
            train: normalise by the batch's own statistics, where there are any, and update the running ones.
            rngs: stream `dropout`, where there is dropout; None turns it off.

        Returns:
            As many vectors, 0 at padding.
        """
