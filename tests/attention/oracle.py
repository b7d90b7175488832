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


def concat(kernel, vector):
    return lambda q, k, n, m: vector[n] @ np.tanh(np.concatenate([q, k]) @ kernel[n])


def negative_squared_distance(q, k, n, m):
    return -sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) / len(q) ** 0.5


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def relu(scores):
    return np.maximum(scores, 0)


def relu_divided(scores):
    return np.maximum(scores, 0) / len(scores)


def identity(scores):
    return scores


def sigmoid(scores):
    return 1 / (1 + np.exp(-scores))


def entmax(scores, alpha):
    """The threshold by halving: at `max - 1` the weights sum to 1 or more, at `max` to 0."""
    scores = (alpha - 1) * scores
    low, high = scores.max() - 1, scores.max()
    while low < (middle := (low + high) / 2) < high:
        enough = np.sum(np.maximum(scores - middle, 0) ** (1 / (alpha - 1))) >= 1
        low, high = (middle, high) if enough else (low, middle)
    return np.maximum(scores - low, 0) ** (1 / (alpha - 1))


def sparsemax(scores):
    return entmax(scores, 2)


def top_k(scores, k):
    best = sorted(range(len(scores)), key=lambda s: -scores[s])[:k]
    weights = np.zeros(len(scores))
    weights[best] = softmax(scores[best])
    return weights


def hardmax(scores):
    return np.eye(len(scores))[list(scores).index(max(scores))]


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


def location(query, key, visible, bias, kernel):
    """Weights [B N T S] by a score of positions, `(W q)[s]`, which has no use for the key."""
    scores = np.einsum("btnh,nhs->bnts", query, kernel)
    return weights(query, key, visible, bias + scores, score=lambda q, k, n, m: 0.0)


def attend(query, key, value, score=scaled_dot, normalize=softmax, mask=None, bias=None):
    """Output [B T N V] and weights [B N T S]."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    (B, T, N, _), (_, S, K, _) = query.shape, value.shape
    visible = np.broadcast_to(True if mask is None else mask, (B, N, T, S))
    bias = np.broadcast_to(0.0 if bias is None else np.asarray(bias, np.float64), (B, N, T, S))
    found = weights(query, key, visible, bias, score, normalize)
    return np.einsum("bnts,bsnv->btnv", found, np.repeat(value, N // K, axis=2)), found


def attend_and_gradients(query, key, value, visible, form):
    """Output `[B T N V]` of scaled dot products and softmax, and the gradients of `sum(form * output)`."""
    (B, _, N, H), K = query.shape, key.shape[2]
    keys, values = (np.repeat(x, N // K, axis=2) for x in (key, value))
    scores = np.where(visible, np.einsum("btnh,bsnh->bnts", query, keys) / H**0.5, -np.inf)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), np.finfo(float).min))
    total = powers.sum(-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    d_weights = np.einsum("btnv,bsnv->bnts", form, values)
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True)) / H**0.5

    def of_group(x):
        """Summed over the query heads that share a key head."""
        return x.reshape(B, -1, K, N // K, x.shape[-1]).sum(3)

    return (
        np.einsum("bnts,bsnv->btnv", weights, values),
        np.einsum("bnts,bsnh->btnh", d_scores, keys),
        of_group(np.einsum("bnts,btnh->bsnh", d_scores, query)),
        of_group(np.einsum("bnts,btnv->bsnv", weights, form)),
    )
