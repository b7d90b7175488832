"""Mechanisms by config word."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import attention
from errors import UserError
from models import mechanisms
from models.multi_head_attention import MultiHeadAttention
from tests.models.parameters import filled, normal

B, T, S, N, K, H, V = 2, 3, 5, 4, 2, 6, 7


def built(kind, **arguments):
    return mechanisms.build({"kind": kind, **arguments}, num_heads=N, head_dim=H, rngs=nnx.Rngs(0))


def inputs():
    return normal(B, T, N, H), normal(B, S, K, H, seed=2), normal(B, S, K, V, seed=3)


def test_dot_product_is_the_default():
    for block in (None, {}, {"kind": "dot_product"}):
        module = mechanisms.build(block, num_heads=N, head_dim=H, rngs=nnx.Rngs(0))
        assert isinstance(module, mechanisms.DotProduct)
        assert module.implementation == "auto"
    np.testing.assert_array_equal(module(*inputs()), attention.dot_product_attention(*inputs()))


def test_cosine_is_sharpened_by_head():
    query, key, value = (np.asarray(x, np.float64) for x in inputs())
    module = built("cosine")
    np.testing.assert_allclose(module.log_sharpness[...], np.log(10.0), rtol=1e-6)
    module.log_sharpness[...] = jnp.log(jnp.arange(1.0, N + 1))
    mask = attention.masks.causal(T, S, 0)
    found, weights = module(*inputs(), mask=mask, return_weights=True)
    for b in range(B):
        for n in range(N):
            for t in range(T):
                q, keys = query[b, t, n], key[b, : t + 1, n // (N // K)]
                cosines = keys @ q / np.linalg.norm(keys, axis=1) / np.linalg.norm(q)
                expected = np.exp((n + 1) * cosines)
                expected /= expected.sum()
                np.testing.assert_allclose(weights[b, n, t, : t + 1], expected, rtol=1e-4)
                mixed = expected @ value[b, : t + 1, n // (N // K)]
                np.testing.assert_allclose(found[b, t, n], mixed, rtol=1e-4, atol=1e-5)


def test_the_word_in_a_config_block_decides():
    x = normal(B, T, N * H)
    outputs = {
        kind: filled(MultiHeadAttention, N * H, N, attention={"kind": kind})(x)
        for kind in mechanisms.MECHANISMS
    }
    assert np.abs(outputs["dot_product"] - outputs["cosine"]).max() > 0.01


@pytest.mark.parametrize(
    "block, message",
    [
        ({"kind": "cosin"}, "unknown attention kind 'cosin'. Did you mean 'cosine'? Allowed: cosine,"),
        ({"kind": "cosine", "implementation": "dense"}, "attention kind 'cosine': .*'implementation'"),
        ({"kind": "dot_product", "window": 3}, "attention kind 'dot_product': .*'window'"),
    ],
)
def test_what_a_mechanism_lacks_is_refused_by_name(block, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")) as error:
        built(**block)
    assert "\n" not in str(error.value)


def test_an_implementation_there_is_not_is_refused():
    with pytest.raises(ValueError, match="implementation"):
        built("dot_product", implementation="flash")(*inputs())
