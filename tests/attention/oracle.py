"""Attention written as its definition reads: float64 numpy, one query and one key at a time."""

import numpy as np


def dot(q, k, n, m):
    return sum(a * b for a, b in zip(q, k, strict=True))


def scaled_dot(q, k, n, m):
    return dot(q, k, n, m) / len(q) ** 0.5


def cosine(q, k, n, m):
    return dot(q, k, n, m) / (dot(q, q, n, m) * dot(k, k, n, m)) ** 0.5


def general(kernel):
    return lambda q, k, n, m: q @ kernel[n] @ k


def additive(query_kernel, key_kernel, bias, vector):
    return lambda q, k, n, m: vector[n] @ np.tanh(q @ query_kernel[n] + k @ key_kernel[m] + bias[n])


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def relu(scores):
    return np.maximum(scores, 0)


def relu_divided(scores):
    return np.maximum(scores, 0) / len(scores)


def identity(scores):
    return scores


def weights(query, key, visible, bias, score=scaled_dot, normalize=softmax):
    """Weights [B N T S]; `normalize` gets the scores of the visible keys only, of one query."""
    (B, T, N, _), (_, S, K, _) = query.shape, key.shape
    weights = np.zeros((B, N, T, S))
    for b, t, n in np.ndindex(B, T, N):
        m = n // (N // K)
        seen = [s for s in range(S) if visible[b, n, t, s] and bias[b, n, t, s] > -np.inf]
        if seen:
            scores = [score(query[b, t, n], key[b, s, m], n, m) + bias[b, n, t, s] for s in seen]
            weights[b, n, t, seen] = normalize(np.array(scores))
    return weights


def attend(query, key, value, score=scaled_dot, normalize=softmax, mask=None, bias=None):
    """Output [B T N V] and weights [B N T S]."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    (B, T, N, _), (_, S, K, _) = query.shape, value.shape
    visible = np.broadcast_to(True if mask is None else mask, (B, N, T, S))
    bias = np.broadcast_to(0.0 if bias is None else np.asarray(bias, np.float64), (B, N, T, S))
    found = weights(query, key, visible, bias, score, normalize)
    return np.einsum("bnts,bsnv->btnv", found, np.repeat(value, N // K, axis=2)), found
