"""Attention that favours a neighbourhood: Luong's windows, and Gaussian localness as a bias."""

import jax.numpy as jnp
import numpy as np

import attention
from attention import local, localness
from attention.internals import contract
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

# Predicted windows have to reach every key, since no pattern says beforehand whom they hide;
# test_local.py has the narrow ones.
WIDE = 12
A = 5


def local_m(query, key, value, **options):
    return local.local_m(query, key, value, **{"radius": 2, **options})


def parameters(query, *vectors):
    """A kernel and vectors for every head, small enough for centres to differ."""
    N, H = query.shape[-2:]
    shapes = {"kernel": (N, H, A)} | dict.fromkeys(vectors, (N, A))
    return {name: jnp.asarray(parameter(name, *shape), query.dtype) for name, shape in shapes.items()}


def predicted(query, S, name):
    """S sigmoid(v . tanh(W q)), [B N T]."""
    N, H = query.shape[-2:]
    hidden = np.tanh(np.einsum("btnh,nha->bnta", query, parameter("kernel", N, H, A)))
    return S / (1 + np.exp(-np.einsum("bnta,na->bnt", hidden, parameter(name, N, A))))


def gaussian(S, centre, window):
    """-(s - P)^2 / (2 sigma^2), [B N T S]."""
    return -((np.arange(S) - centre[..., None]) ** 2) / (2 * (window[..., None] / 2) ** 2)


def local_p(renormalize):
    def call(query, key, value, **options):
        made = parameters(query, "vector")
        return local.local_p(query, key, value, radius=WIDE, renormalize=renormalize, **made, **options)

    return call


def local_p_weights(renormalize):
    def weights(query, key, visible, bias):
        S = key.shape[1]
        favour = np.exp(gaussian(S, predicted(query, S, "vector"), np.float64(WIDE).reshape(1, 1, 1)))
        weights = oracle.weights(query, key, visible, bias) * favour
        if not renormalize:
            return weights
        total = weights.sum(-1, keepdims=True)
        return weights / np.where(total == 0, 1, total)

    return weights


def biased(make):
    def call(query, key, value, *, mask=None, bias=None):
        made = make(query, key)
        return attention.attend(query, key, value, mask=mask, bias=made if bias is None else made + bias)

    return call


def centred(query, key):
    (*batch, T, _, _), S = query.shape, key.shape[-3]
    window = jnp.full((1,) * (len(batch) + 2), 3, contract.working_dtype(query.dtype))
    return localness.centred(T, S, 0, window=window, batch_dims=len(batch))


def centred_weights(query, key, visible, bias):
    (_, T, _, _), S = query.shape, key.shape[1]
    favour = gaussian(S, np.arange(T).reshape(1, 1, T), np.full((1, 1, 1), 3.0))
    return oracle.weights(query, key, visible, bias + favour)


def query_window(query, key):
    made = parameters(query, "centre_vector", "window_vector")
    return localness.query_window(query, key.shape[-3], **made)


def query_window_weights(query, key, visible, bias):
    S = key.shape[1]
    centre, window = (predicted(query, S, name) for name in ("centre_vector", "window_vector"))
    favour = gaussian(S, centre, np.maximum(window, 0.01))
    return oracle.weights(query, key, visible, bias + favour)


MECHANISMS = [
    Mechanism(
        "local-m",
        local_m,
        bag_of_words=False,
        pattern=lambda T, S: np.abs(np.arange(S) - np.arange(T)[:, None]) <= 2,
        with_window=lambda window: lambda *arrays: local_m(*arrays, radius=window[0]),
        shift_invariant=True,
    ),
    Mechanism("local-p", local_p(False), local_p_weights(False), bag_of_words=False, shift_invariant=True),
    Mechanism(
        "local-p_renormalized",
        local_p(True),
        local_p_weights(True),
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
    Mechanism(
        "localness-centred",
        biased(centred),
        centred_weights,
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
    Mechanism(
        "localness-query_window",
        biased(query_window),
        query_window_weights,
        bag_of_words=False,
        shift_invariant=True,
    ),
]
