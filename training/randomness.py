"""Every random number of a run as a pure function of (seed, purpose, step).

Adding a module or a purpose moves no other number, and a resumed run draws what the first would have.
"""

import zlib

import jax


def key(seed: int, purpose: str) -> jax.Array:
    """The key of one purpose ("init", "dropout"); fold a step in where numbers change by step."""
    return jax.random.fold_in(jax.random.key(seed), zlib.crc32(purpose.encode()))
