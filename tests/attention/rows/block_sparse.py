"""Longformer and BigBird."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attention.block_sparse import bigbird_attention, longformer_attention
from tests.attention.mechanism import Mechanism

GLOBAL = [3, 0, 3, -1]


def longformer_pattern(T, S):
    seen = np.zeros((T, S), bool)
    for t, s in np.ndindex(T, S):
        seen[t, s] = -1 <= s - t <= 2 or t in GLOBAL or s in GLOBAL
    return seen


def longformer(query, key, value, window=(1, 2), **options):
    return longformer_attention(
        query, key, value, window=window, global_positions=jnp.array(GLOBAL), **options
    )


def random_blocks(blocks):
    """Block i sees block 3 i + 2 modulo their number, and one that may not exist."""
    return np.array([[(3 * i + 2) % blocks, i + 3] for i in range(blocks)]).reshape(blocks, 2)


def bigbird_pattern(T, S, b=2):
    seen = np.zeros((T, S), bool)
    drawn = random_blocks(-(-T // b))
    for t, s in np.ndindex(T, S):
        i, j = t // b, s // b
        seen[t, s] = j in (i - 1, i) or i == 0 or j == 0 or j in drawn[i]
    return seen


def bigbird(query, key, value, window=(1, 0), **options):
    drawn = jnp.asarray(random_blocks(-(-key.shape[-3] // 2)), jnp.int32)
    return bigbird_attention(query, key, value, block_size=2, random_blocks=drawn, window=window, **options)


def row(name, call, pattern):
    return Mechanism(
        name,
        call,
        mask="keys",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=pattern,
        with_window=lambda window: partial(call, window=window),
    )


MECHANISMS = [row("longformer", longformer, longformer_pattern), row("bigbird", bigbird, bigbird_pattern)]
