"""What tells a Transformer where its vectors stand, by config word: `positions={"kind": "rotary"}`.

Absolute positions are given to the vectors before the first layer, by `Positions`. Relative ones are part
of every attention layer: `Relative` turns its queries and keys, or makes a bias for its scores.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import positions as encodings
from attention import relative_positions
from errors import UserError, unknown
from models.linear import Linear

ABSOLUTE = ("none", "sinusoidal", "learned")
RELATIVE = ("rotary", "alibi", "t5", "shaw")
COMBINE = ("add", "concatenate")


class Positions(nnx.Module):
    """Absolute positions: `sqrt(D) x + PE` or `x + table`, or `W [x; PE] + b`; 0 at padding.

    Sinusoids are of size 1, so what they are added to is brought to that size by `sqrt(D)`, as published. A
    learned table starts small, with standard deviation 0.02, and needs no such factor.

    Args:
        kind: "none", "sinusoidal" or "learned".
        dim: width D.
        combine: "add", or "concatenate" and project back to D.
        max_length: positions in a learned table.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word, or a max_length below 1.

    Source: Vaswani et al. 2017; learned tables from Gehring et al. 2017; concatenation from Collobert et
    al. 2011.
    """

    def __init__(self, kind: str, dim: int, *, combine: str = "add", max_length: int = 512, rngs: nnx.Rngs):
        if kind not in ABSOLUTE:
            raise unknown("kind of absolute positions", kind, ABSOLUTE)
        if combine not in COMBINE:
            raise unknown("way to combine positions", combine, COMBINE)
        if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
            raise UserError(f"positions.max_length is {max_length!r}; it must be a whole number from 1 on")
        self.kind, self.dim, self.combine, self.max_length = kind, dim, combine, max_length
        if kind == "learned":
            self.table = nnx.Param(0.02 * jax.random.normal(rngs.params(), (max_length, dim)))
        if kind != "none" and combine == "concatenate":
            self.project = Linear(2 * dim, dim, rngs=rngs)

    def __call__(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"] | None = None) -> jax.Array:
        """Vectors `[B T D]` that know where they stand.

        Args:
            x: vectors.
            mask: True where a vector is real; the others become 0.

        Raises:
            UserError: if T is more than a learned table has.
        """
        if self.kind != "none":
            x = self._combined(x, self._encodings(x.shape[-2]).astype(x.dtype))
        return x if mask is None else jnp.where(mask[..., None], x, 0)

    def at(self, x: Float[Array, "B D"], index: Int[Array, "B"]) -> Float[Array, "B D"]:
        """One vector of each sequence, `x [B D]`, that stands at `index [B]`; NaN beyond a learned table."""
        if self.kind == "none":
            return x
        if self.kind == "sinusoidal":
            encoded = encodings.sinusoidal(index, self.dim)
        else:
            encoded = jnp.take(self.table[...], index, axis=0, mode="fill")
        return self._combined(x[:, None], encoded[:, None].astype(x.dtype))[:, 0]

    def _combined(self, x: Float[Array, "B T D"], encoded: Float[Array, "*#B T D"]) -> Float[Array, "B T D"]:
        if self.combine == "concatenate":
            return self.project(encodings.concatenate(x, encoded))
        scale = self.dim**0.5 if self.kind == "sinusoidal" else 1.0
        return encodings.add(scale * x, encoded)

    def _encodings(self, length: int) -> Float[Array, "T D"]:
        if self.kind == "sinusoidal":
            return encodings.sinusoidal(length, self.dim)
        if length > self.max_length:
            raise UserError(
                f"a sequence of {length} vectors is longer than the table of learned positions, which has "
                f"positions.max_length {self.max_length}"
            )
        return self.table[...][:length]


class Relative(nnx.Module):
    """Relative positions of one attention layer.

    Args:
        kind: "rotary", turning queries and keys (Su et al. 2021); "alibi", a penalty by distance (Press et
            al. 2022); or "t5", a learned number by bucket of distances (Raffel et al. 2020).
        num_heads: query heads N.
        head_dim: width H of a head.
        options: `base` for rotary; `num_buckets` and `max_distance` for t5.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an option that the kind does not have or cannot work with.
    """

    def __init__(
        self, kind: str, num_heads: int, head_dim: int, options: Mapping[str, Any], *, rngs: nnx.Rngs
    ):
        self.kind, self.num_heads = kind, num_heads
        chosen = {**OPTIONS[kind], **options}
        for name in options:
            if name not in OPTIONS[kind]:
                raise unknown(f"argument of positions kind {kind!r}", name, OPTIONS[kind])
        self.options = tuple(sorted((k, v) for k, v in chosen.items() if k != "num_buckets"))
        if kind == "t5":
            self.table = nnx.Param(jnp.zeros((chosen["num_buckets"], num_heads)))
        try:
            jax.eval_shape(self.turn, jnp.zeros((1, 1, num_heads, head_dim)))
            jax.eval_shape(lambda: self.bias(1))
        except (ValueError, TypeError) as error:
            raise UserError(f"positions kind {kind!r}: {error}") from None

    def turn(self, x: Float[Array, "*B T N H"], index: Int[Array, "*B"] | None = None) -> jax.Array:
        """Queries or keys, turned by their positions if the kind does that.

        Args:
            x: `[*B, T, N, H]`.
            index: position of the first of each sequence, `[*B]`; None means 0.
        """
        if self.kind != "rotary":
            return x
        places = jnp.arange(x.shape[-3])
        if index is not None:
            places = index[..., None] + places.reshape((1,) * index.ndim + places.shape)
        return encodings.rotary(x, places, **dict(self.options))

    def bias(self, length: int) -> Float[Array, "1 N T T"] | None:
        """What is added to the scores of a sequence with itself, None if nothing is."""
        if self.kind == "alibi":
            return relative_positions.alibi(self.num_heads, length)
        if self.kind == "t5":
            return relative_positions.t5_bias(self.table[...], length, **dict(self.options))
        return None


OPTIONS: dict[str, dict[str, Any]] = {
    "rotary": {"base": 10000.0},
    "alibi": {},
    "t5": {"num_buckets": 32, "max_distance": 128},
    "shaw": {"max_distance": 16},
}


def relative_kind(positions: Mapping | None) -> str:
    """The word of a config block of relative positions, "none" if there is none.

    Raises:
        UserError: if the word is not one of `RELATIVE` or "none".
    """
    kind = dict(positions or {}).get("kind", "none")
    if kind in ABSOLUTE[1:]:
        raise UserError(
            f"positions kind {kind!r} is absolute: models.positions.Positions gives it to the vectors before "
            f"the encoder; the encoder itself takes none, {', '.join(RELATIVE)}"
        )
    if kind not in (*RELATIVE, "none"):
        raise unknown("positions kind", kind, (*RELATIVE, *ABSOLUTE))
    return kind
