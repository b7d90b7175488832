"""Reformer, over three rounds, looking both ways and back only."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attention.reformer import reformer_attention
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

ROUNDS, CHUNK = 3, 2


def hashed(query, key, value, **options):
    rotations = parameter("rotations", ROUNDS, query.shape[-1], 2)
    return reformer_attention(
        query, key, value, rotations=jnp.asarray(rotations, query.dtype), chunk_size=CHUNK, **options
    )


def pairs_that_meet(key, shown, rotations, chunk_size):
    """The pairs (query position, key position) that meet in any round: key [S H], positions that exist."""
    pairs = set()
    for directions in rotations:
        buckets = {}
        for s in shown:
            towards = key[s] @ directions
            buckets.setdefault(int(np.argmax([*towards, *-towards])), []).append(s)
        for members in buckets.values():
            for i, j in np.ndindex(len(members), len(members)):
                if i // chunk_size - j // chunk_size in (0, 1):
                    pairs.add((members[i], members[j]))
    return pairs


def oracle_weights(query, key, visible, bias, *, is_causal=False, hide_self=False):
    (B, T, N, H), K = query.shape, key.shape[2]
    rotations = parameter("rotations", ROUNDS, H, 2)
    weights = np.zeros((B, N, T, T))
    for b, n in np.ndindex(B, N):
        m = n // (N // K)
        shown = np.flatnonzero(visible[b, n].any(0))
        meet = pairs_that_meet(key[b, :, m], shown, rotations, CHUNK)
        for t in shown:
            seen = [s for s in shown if (t, s) in meet and not (is_causal and s > t)]
            if hide_self and seen != [t]:
                seen.remove(t)
            scores = np.array([query[b, t, n] @ key[b, s, m] for s in seen]) / H**0.5
            weights[b, n, t, seen] = oracle.softmax(scores)
    return weights


def lower_triangle(T, S):
    return np.tri(T, S, dtype=bool)


MECHANISMS = [
    Mechanism(
        "reformer",
        hashed,
        oracle_weights,
        mask="positions",
        bias=False,
        square=True,
        bag_of_words=False,
    ),
    Mechanism(
        "reformer-causal",
        partial(hashed, is_causal=True, hide_self=True),
        partial(oracle_weights, is_causal=True, hide_self=True),
        mask="positions",
        bias=False,
        square=True,
        bag_of_words=False,
        pattern=lower_triangle,
        causal=True,
    ),
]
