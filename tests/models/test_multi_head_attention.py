"""Multi-head attention against its formula, head by head, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention import masks
from models.multi_head_attention import MultiHeadAttention
from tests.models.parameters import arrays, filled, normal

B, T, S, D, N, K, H = 2, 3, 5, 10, 6, 2, 7
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def by_hand(module, x, memory, visible):
    """Outputs [B, T, D] and weights [B, N, T, S], one head of one batch element at a time."""
    p = arrays(module)
    x, memory = np.asarray(x, np.float64), np.asarray(memory, np.float64)
    visible = np.broadcast_to(visible, (B, N, T, memory.shape[1]))
    outputs, weights = np.zeros((B, T, D)), np.zeros(visible.shape)
    group = module.query.out_features // module.key.out_features
    for b in range(B):
        heads = []
        for n in range(N):
            columns = slice(n * H, (n + 1) * H)
            shared = slice(n // group * H, (n // group + 1) * H)
            query = x[b] @ p["query"]["kernel"][:, columns] + p["query"]["bias"][columns]
            key = memory[b] @ p["key"]["kernel"][:, shared] + p["key"]["bias"][shared]
            value = memory[b] @ p["value"]["kernel"][:, shared] + p["value"]["bias"][shared]
            exponentials = np.exp(query @ key.T / np.sqrt(H)) * visible[b, n]
            weights[b, n] = exponentials / exponentials.sum(-1, keepdims=True)
            heads.append(weights[b, n] @ value)
        outputs[b] = np.concatenate(heads, -1) @ p["output"]["kernel"] + p["output"]["bias"]
    return outputs, weights


@pytest.fixture(scope="module", params=[None, K], ids=["a key head each", "grouped"])
def module(request):
    return filled(MultiHeadAttention, D, N, num_kv_heads=request.param, head_dim=H)


@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_is_the_formula(module, masked):
    x, memory = normal(B, T, D), normal(B, S, D, seed=2)
    mask = masks.padding(jnp.array([5, 2]), S) if masked else None
    outputs, weights = by_hand(module, x, memory, True if mask is None else np.asarray(mask))
    found, found_weights = module(x, memory, mask=mask, return_weights=True)
    np.testing.assert_allclose(found, outputs, **CLOSE)
    np.testing.assert_allclose(found_weights, weights, **CLOSE)
    np.testing.assert_array_equal(found, module(x, memory, mask=mask))


def test_self_attention_is_that_with_itself(module):
    x, mask = normal(B, T, D), masks.causal(T)
    outputs, _ = by_hand(module, x, x, np.asarray(mask))
    np.testing.assert_allclose(module(x, mask=mask), outputs, **CLOSE)


def test_a_query_that_sees_nothing_gets_the_output_bias(module):
    mask = jnp.ones((B, 1, T, S), bool).at[1, :, 2].set(False)
    output = module(normal(B, T, D), normal(B, S, D, seed=2), mask=mask)
    np.testing.assert_allclose(output[1, 2], module.output.bias[...], rtol=1e-6)
    assert np.abs(output[1, 1] - module.output.bias[...]).max() > 0.01


def test_head_dim_is_dim_over_heads_unless_given():
    module = filled(MultiHeadAttention, 12, 4)
    assert module.head_dim == 3
    assert module.query.kernel.shape == module.value.kernel.shape == (12, 12)


def test_dropout_is_on_the_weights_and_needs_rngs():
    dropped = filled(MultiHeadAttention, D, N, head_dim=H, dropout_rate=0.4)
    plain = filled(MultiHeadAttention, D, N, head_dim=H)
    x = normal(B, T, D)
    np.testing.assert_array_equal(dropped(x), plain(x))
    attend = jax.jit(
        lambda seed: dropped(x, rngs=nnx.Rngs(dropout=jax.random.key(seed)), return_weights=True)
    )
    (one, weights), (same, _), (other, _) = attend(0), attend(0), attend(1)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)  # returned as they were before dropout


def test_gradients_reach_every_parameter(module):
    structure, params = nnx.split(module)

    def loss(params):
        return jnp.sum(nnx.merge(structure, params)(normal(B, T, D), normal(B, S, D, seed=2)) ** 2)

    for path, gradient in jax.tree_util.tree_leaves_with_path(jax.jit(jax.grad(loss))(params)):
        # A bias of the keys adds the same to all scores of a query, which softmax does not see.
        if "key" not in jax.tree_util.keystr(path) or gradient.ndim > 1:
            assert (gradient != 0).all(), jax.tree_util.keystr(path)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 3}, "dim 10 is not divisible by num_heads 3"),
        ({"num_heads": 5, "num_kv_heads": 3}, "num_heads 5 is not divisible by num_kv_heads 3"),
    ],
)
def test_heads_that_do_not_divide_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(D, **arguments, rngs=nnx.Rngs(0))
