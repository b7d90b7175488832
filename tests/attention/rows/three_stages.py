"""`attend` with every score and every normaliser."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import attention
from attention import normalizers, scores
from tests.attention import oracle
from tests.attention.mechanism import Mechanism, parameter

A = 9
# The plain one, one with parameters, one that counts what is visible, one that searches among it
PROVEN = {"scaled_dot", "additive", "relu_divided", "entmax"}


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


def concat(query, key):
    N, H = query.shape[-2:]
    return {"kernel": parameter("W", N, H + key.shape[-1], A), "vector": parameter("v", N, A)}


def location(query, key):
    N, H = query.shape[-2:]
    return {"kernel": parameter("location", N, H, key.shape[-3])}


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


def location_oracle(query, key, visible, bias):
    return oracle.location(query, key, visible, bias, **location(query, key))


TEMPERATURE = 0.7


def gumbel(query, key, value, hard=False, **given):
    noise = jax.random.key(0)
    options = {"key": noise, "temperature": TEMPERATURE, "hard": hard}
    return attention.attend(
        query, key, value, normalize=Partial(normalizers.gumbel_softmax, **options), **given
    )


def gumbel_oracle(query, key, visible, bias, normalize=oracle.softmax):
    # In float64 where JAX is, and so the very noise that was drawn.
    noise = np.asarray(jax.random.gumbel(jax.random.key(0), visible.shape))
    return oracle.weights(
        query, key, visible, bias + noise, normalize=lambda scores: normalize(scores / TEMPERATURE)
    )


def attend(name, score=None, weights=None, **claims):
    return Mechanism(
        f"attend-{name}",
        partial(attention.attend, score=score or getattr(scores, name)),
        weights or partial(oracle.weights, score=getattr(oracle, name), normalize=oracle.softmax),
        shift_invariant=True,
        lean=name not in PROVEN,
        **claims,
    )


def normalized(name, normalize=None, weights=None, **claims):
    return Mechanism(
        f"attend-{name}",
        partial(attention.attend, normalize=normalize or getattr(normalizers, name)),
        partial(oracle.weights, score=oracle.scaled_dot, normalize=weights or getattr(oracle, name)),
        lean=name not in PROVEN,
        **claims,
    )


MECHANISMS = [
    attend("dot"),
    attend("scaled_dot"),
    attend("cosine"),
    attend("general", learned(scores.general, general), learned_oracle(oracle.general, general)),
    attend("additive", learned(scores.additive, additive), learned_oracle(oracle.additive, additive)),
    attend("concat", learned(scores.concat, concat), learned_oracle(oracle.concat, concat)),
    attend("location", learned(scores.location, location), location_oracle, bag_of_words=False),
    attend("negative_squared_distance", own_derivative=True),
    normalized("relu"),
    normalized("relu_divided", Partial(normalizers.relu, divide=True)),
    normalized("identity"),
    normalized("sigmoid"),
    normalized("sparsemax", shift_invariant=True, own_derivative=True),
    normalized(
        "entmax",
        Partial(normalizers.entmax, alpha=1.3),
        partial(oracle.entmax, alpha=1.3),
        shift_invariant=True,
        own_derivative=True,
    ),
    normalized(
        "top_k",
        Partial(normalizers.top_k, k=3),
        partial(oracle.top_k, k=3),
        shift_invariant=True,
    ),
    normalized("hardmax", shift_invariant=True),
    Mechanism(
        "attend-gumbel",
        gumbel,
        gumbel_oracle,
        random=True,
        bag_of_words=False,
        shift_invariant=True,
        lean=True,
    ),
    Mechanism(
        "attend-gumbel_hard",
        partial(gumbel, hard=True),
        partial(gumbel_oracle, normalize=oracle.hardmax),
        random=True,
        bag_of_words=False,
        shift_invariant=True,
        differentiable=False,
        lean=True,
    ),
]
