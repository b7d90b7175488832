"""Nyströmformer, with fewer landmarks than positions and with one for each."""

from functools import partial

import numpy as np

from attention.nystromformer import nystromformer_attention
from tests.attention import oracle
from tests.attention.mechanism import Mechanism

ITERATIONS = 6


def softmax_rows(scores):
    return np.array([oracle.softmax(row) for row in scores])


def oracle_weights(query, key, visible, bias, landmarks):
    """The product of the three softmaxes, each sequence cut down to the positions that exist."""
    (B, T, N, H), K = query.shape, key.shape[2]
    weights = np.zeros((B, N, T, T))
    for b, n in np.ndindex(B, N):
        shown = np.flatnonzero(visible[b, n].any(0))
        if not len(shown):
            continue
        q, k = query[b, shown, n] / H**0.5, key[b, shown, n // (N // K)]
        M = min(landmarks, len(shown))
        segments = [[i for i in range(len(shown)) if i * M // len(shown) == m] for m in range(M)]
        q_marks, k_marks = (np.array([x[members].mean(0) for members in segments]) for x in (q, k))
        A = softmax_rows(q_marks @ k_marks.T)
        Z = A.T / (np.linalg.norm(A, 1) * np.linalg.norm(A, np.inf))
        unit = np.eye(M)
        for _ in range(ITERATIONS):
            Z = Z @ (13 * unit - A @ Z @ (15 * unit - A @ Z @ (7 * unit - A @ Z))) / 4
        rebuilt = softmax_rows(q @ k_marks.T) @ Z @ softmax_rows(q_marks @ k.T)
        weights[b, n][np.ix_(shown, shown)] = rebuilt
    return weights


MECHANISMS = [
    Mechanism(
        f"nystromformer-{landmarks}-landmarks",
        partial(nystromformer_attention, landmarks=landmarks, iterations=ITERATIONS),
        partial(oracle_weights, landmarks=landmarks),
        mask="positions",
        bias=False,
        square=True,
        bag_of_words=False,
        rtol=1e-4,
        lean=landmarks == 7,
    )
    for landmarks in (3, 7)
]
