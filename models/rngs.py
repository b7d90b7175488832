"""Initial values by name: what one part draws depends on the seed and its name, on no other part."""

import zlib

import jax
from flax import nnx


def named(rngs: nnx.Rngs, name: str) -> nnx.Rngs:
    """The streams of a part, so that adding or leaving out another shifts none of its initial values.

    Args:
        rngs: the streams of the whole, whatever has been drawn from them.
        name: of the part in the whole, such as "query" or "blocks.0".
    """
    number = zlib.crc32(name.encode())
    return nnx.Rngs(**{stream: jax.random.fold_in(rngs[stream].key[...], number) for stream in rngs})
