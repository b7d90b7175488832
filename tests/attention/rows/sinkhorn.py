"""Sparse Sinkhorn attention, with blocks that do not divide the length."""

from functools import partial

import numpy as np

from attention.sinkhorn import sinkhorn_attention
from tests.attention.mechanism import Mechanism

SIZE, TEMPERATURE, ITERATIONS = 3, 0.5, 4


def oracle_weights(query, key, visible, bias):
    (B, T, N, H), K = query.shape, key.shape[2]
    weights = np.zeros((B, N, T, T))
    for b, n in np.ndindex(B, N):
        q, k = query[b, :, n], key[b, :, n // (N // K)]
        shown = np.flatnonzero(visible[b, n].any(0))
        blocks = [[s for s in shown if s // SIZE == g] for g in range(-(-T // SIZE))]
        used = [g for g, members in enumerate(blocks) if members]
        if not used:
            continue
        means = [(q[blocks[g]].mean(0), k[blocks[g]].mean(0)) for g in used]
        P = np.exp(np.array([[a @ c for _, c in means] for a, _ in means]) / H**0.5 / TEMPERATURE)
        P /= P.sum(1, keepdims=True)
        for _ in range(ITERATIONS):
            P /= P.sum(0, keepdims=True)
            P /= P.sum(1, keepdims=True)
        for t in shown:
            share = dict(zip(used, P[used.index(t // SIZE)], strict=True))
            exponentials = {s: np.exp(q[t] @ k[s] / H**0.5) for s in blocks[t // SIZE]}
            row = np.zeros(T)
            for s, e in exponentials.items():
                row[s] += e
            for place in range(SIZE):
                sources = [s for s in shown if s % SIZE == place]
                mixed = sum((share[s // SIZE] * k[s] for s in sources), np.zeros(H))
                for s in sources:
                    row[s] += share[s // SIZE] * np.exp(q[t] @ mixed / H**0.5)
            weights[b, n, t] = row / row.sum()
    return weights


MECHANISMS = [
    Mechanism(
        "sinkhorn",
        partial(sinkhorn_attention, block_size=SIZE, temperature=TEMPERATURE, iterations=ITERATIONS),
        oracle_weights,
        mask="positions",
        bias=False,
        square=True,
        bag_of_words=False,
    ),
]
