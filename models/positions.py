"""What tells a model where its vectors stand.

Absolute positions are given to the vectors before the first layer. Relative ones are part of every attention
layer of a Transformer: they turn its queries and keys, or make a bias for its scores. (Shaw's are in scores
and values, so they are a mechanism of their own, `models.mechanisms`.)
"""

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import positions as encodings
from attention import relative_positions
from errors import UserError
from models.layers.linear import Linear
from models.rngs import named
from spec import Positive, Registry, nothing

Combine = Literal["add", "concatenate"]


class NoPositions(nnx.Module):
    """The vectors as they are, a bag of them to self-attention."""

    def __call__(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"] | None = None) -> jax.Array:
        """The vectors, 0 at padding."""
        return x if mask is None else jnp.where(mask[..., None], x, 0)

    def at(self, x: Float[Array, "B D"], index: Int[Array, "B"]) -> Float[Array, "B D"]:
        """One vector of each sequence, as it is."""
        return x


class Absolute(nnx.Module):
    """Positions that have an encoding each: it is added to the vector there, or `W [x; encoding] + b`.

    Args:
        dim: width D.
        combine: how the two come together.
        scale: what the vectors are multiplied by before an encoding is added.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, combine: Combine, *, scale: float = 1.0, rngs: nnx.Rngs):
        self.dim, self.scale = dim, scale
        self.project = Linear(2 * dim, dim, rngs=named(rngs, "project")) if combine == "concatenate" else None

    def encodings(self, places: int | Int[Array, "*P"]) -> Float[Array, "*P D"]:
        """Those of some places, or of the first so many.

        Raises:
            UserError: there are not so many.
        """
        raise NotImplementedError

    def __call__(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"] | None = None) -> jax.Array:
        """Vectors `[B T D]` that know where they stand.

        Args:
            x: vectors.
            mask: True where a vector is real; the others become 0.

        Raises:
            UserError: if T is more than a learned table has.
        """
        x = self._combined(x, self.encodings(x.shape[-2]).astype(x.dtype))
        return x if mask is None else jnp.where(mask[..., None], x, 0)

    def at(self, x: Float[Array, "B D"], index: Int[Array, "B"]) -> Float[Array, "B D"]:
        """One vector of each sequence, `x [B D]`, that stands at `index [B]`; NaN beyond a learned table."""
        return self._combined(x[:, None], self.encodings(index)[:, None].astype(x.dtype))[:, 0]

    def _combined(self, x: Float[Array, "B T D"], encoded: Float[Array, "*#B T D"]) -> Float[Array, "B T D"]:
        if self.project is not None:
            return self.project(encodings.concatenate(x, encoded))
        return encodings.add(self.scale * x, encoded)


class Sinusoidal(Absolute):
    """Sines and cosines of the place: `sqrt(D) x + PE`, or `W [x; PE] + b`.

    Sinusoids are of size 1, so what they are added to is brought to that size by `sqrt(D)`, as published.

    Args:
        combine: add them to the vectors, or concatenate and project back to their width.
        dim: width D.
        rngs: source of the initial parameters.

    Source: Vaswani et al. 2017; concatenation from Collobert et al. 2011.
    """

    def __init__(self, *, combine: Combine = "add", dim: int, rngs: nnx.Rngs):
        super().__init__(dim, combine, scale=dim**0.5, rngs=rngs)

    def encodings(self, places: int | Int[Array, "*P"]) -> Float[Array, "*P D"]:
        """Those of some places, or of the first so many."""
        return encodings.sinusoidal(places, self.dim)


class Learned(Absolute):
    """A learned vector for each place: `x + table`, or `W [x; table] + b`.

    The table starts small, with standard deviation 0.02, so that the vectors need no factor.

    Args:
        max_length: vectors in the longest sequence, places in the table.
        combine: add them to the vectors, or concatenate and project back to their width.
        dim: width D.
        rngs: source of the initial parameters.

    Source: Gehring et al. 2017; concatenation from Collobert et al. 2011.
    """

    def __init__(self, *, max_length: int = 512, combine: Combine = "add", dim: int, rngs: nnx.Rngs):
        super().__init__(dim, combine, rngs=rngs)
        self.max_length = max_length
        self.table = nnx.Param(0.02 * jax.random.normal(named(rngs, "table").params(), (max_length, dim)))

    def encodings(self, places: int | Int[Array, "*P"]) -> Float[Array, "*P D"]:
        """Those of some places, NaN beyond the table, or of the first so many."""
        if not isinstance(places, int):
            return jnp.take(self.table[...], places, axis=0, mode="fill")
        if places > self.max_length:
            raise UserError(
                f"a sequence of {places} vectors is longer than the table of learned positions, which has "
                f"positions.max_length {self.max_length}"
            )
        return self.table[...][:places]


POSITIONS = Registry(
    "absolute positions (relative ones are of a transformer encoder or decoder)",
    {"none": NoPositions, "sinusoidal": Sinusoidal, "learned": Learned},
    given=("dim", "rngs"),
)


class Relative(nnx.Module):
    """Relative positions of one attention layer.

    Attributes:
        needs: what they work on: "keys" that are turned, or scores that take a "bias".
        by_place: whether they can be told of one query at a time, in a decoder.
    """

    needs: ClassVar[str] = "bias"
    by_place: ClassVar[bool] = False

    def turn(self, x: Float[Array, "*B T N H"], index: Int[Array, "*B"] | None = None) -> jax.Array:
        """Queries or keys, turned by their positions if the kind does that.

        Args:
            x: `[*B, T, N, H]`.
            index: position of the first of each sequence, `[*B]`; None means 0.
        """
        return x

    def bias(self, length: int) -> Float[Array, "1 N T T"] | None:
        """What is added to the scores of a sequence with itself, None if nothing is."""
        return None


class Rotary(Relative):
    """Queries and keys turned by angles that grow with their place.

    Args:
        base: of the angles' wavelengths.
        num_heads: heads N.
        head_dim: width H of a head, even.

    Source: Su et al. 2021.
    """

    needs = "keys"
    by_place = True

    def __init__(self, *, base: Positive = 10000.0, num_heads: int, head_dim: int):
        self.base = base
        jax.eval_shape(self.turn, jnp.zeros((1, 1, num_heads, head_dim)))  # says if it can't

    def turn(self, x: Float[Array, "*B T N H"], index: Int[Array, "*B"] | None = None) -> jax.Array:
        """Queries or keys, turned; see `Relative`."""
        places = jnp.arange(x.shape[-3])
        if index is not None:
            places = index[..., None] + places.reshape((1,) * index.ndim + places.shape)
        return encodings.rotary(x, places, base=self.base)


class Alibi(Relative):
    """A penalty by distance, steeper from head to head.

    Args:
        num_heads: heads N.

    Source: Press et al. 2022.
    """

    def __init__(self, *, num_heads: int):
        self.num_heads = num_heads

    def bias(self, length: int) -> Float[Array, "1 N T T"] | None:
        """The penalty."""
        return relative_positions.alibi(self.num_heads, length)


class T5(Relative):
    """A learned number for each bucket of distances and head, 0 to begin with.

    Args:
        num_buckets: buckets of distances.
        max_distance: from here on all distances share a bucket, positions.
        num_heads: heads N.

    Source: Raffel et al. 2020.
    """

    def __init__(self, *, num_buckets: int = 32, max_distance: int = 128, num_heads: int):
        self.max_distance = max_distance
        self.table = nnx.Param(jnp.zeros((num_buckets, num_heads)))
        jax.eval_shape(lambda: self.bias(1))  # says if it can't

    def bias(self, length: int) -> Float[Array, "1 N T T"] | None:
        """The numbers."""
        return relative_positions.t5_bias(self.table[...], length, max_distance=self.max_distance)


RELATIVE = Registry(
    "relative positions (absolute ones are config.model.positions)",
    {"none": nothing, "rotary": Rotary, "alibi": Alibi, "t5": T5},
    given=("num_heads", "head_dim", "rngs"),
)
