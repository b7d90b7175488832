"""`attend` with every score and every normaliser."""

from functools import partial

import jax.numpy as jnp
from jax.tree_util import Partial

import attention
from attention import normalizers, scores
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

A = 9


def general(query, key):
    N, H = query.shape[-2:]
    return {"kernel": parameter("general", N, H, key.shape[-1])}


def additive(query, key):
    (N, H), (K, _) = query.shape[-2:], key.shape[-2:]
    return {
        "query_kernel": parameter("Wq", N, H, A),
        "key_kernel": parameter("Wk", K, H, A),
        "bias": parameter("b", N, A),
        "vector": parameter("v", N, A),
    }


def learned(score, parameters):
    """A score with parameters made for the shapes it meets."""

    def bound(query, key):
        made = {name: jnp.asarray(array, query.dtype) for name, array in parameters(query, key).items()}
        return score(query, key, **made)

    return bound


def learned_oracle(score, parameters, normalize=oracle.softmax):
    def weights(query, key, visible, bias):
        made = score(**parameters(query, key))
        return oracle.weights(query, key, visible, bias, made, normalize)

    return weights


def attend(name, score=None, weights=None):
    return Mechanism(
        f"attend-{name}",
        partial(attention.attend, score=score or getattr(scores, name)),
        weights or partial(oracle.weights, score=getattr(oracle, name), normalize=oracle.softmax),
        shift_invariant=True,
    )


def normalized(name, normalize=None):
    return Mechanism(
        f"attend-{name}",
        partial(attention.attend, normalize=normalize or getattr(normalizers, name)),
        partial(oracle.weights, score=oracle.scaled_dot, normalize=getattr(oracle, name)),
    )


MECHANISMS = [
    attend("dot"),
    attend("scaled_dot"),
    attend("cosine"),
    attend("general", learned(scores.general, general), learned_oracle(oracle.general, general)),
    attend("additive", learned(scores.additive, additive), learned_oracle(oracle.additive, additive)),
    normalized("relu"),
    normalized("relu_divided", Partial(normalizers.relu, divide=True)),
    normalized("identity"),
]
