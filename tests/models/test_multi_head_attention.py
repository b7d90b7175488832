"""Multi-head attention against its formula, head by head, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention import masks
from errors import UserError
from models.layers.multi_head_attention import MultiHeadAttention
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


def test_what_a_mechanism_does_not_read_has_no_projection():
    for kind, projections in (
        ({"kind": "linear"}, {"query", "key", "value", "output"}),
        ({"kind": "location", "max_length": 9}, {"query", "value", "output"}),
        ({"kind": "reformer", "chunk_size": 2}, {"query", "value", "output"}),
        ({"kind": "synthesizer_random", "max_length": 9}, {"value", "output"}),
    ):
        layer = filled(MultiHeadAttention, 12, 4, attention=kind)
        assert arrays(layer).keys() - {"mechanism"} == projections


def test_shaw_is_keys_and_values_moved_by_distance():
    """Two vectors, so every distance is -1, 0 or 1: a row of the tables each."""
    layer = filled(MultiHeadAttention, 4, 1, positions={"kind": "shaw", "max_distance": 1})
    p, x = arrays(layer), normal(1, 2, 4)
    query, key, value = (
        np.asarray(x[0], np.float64) @ p[name]["kernel"] + p[name]["bias"]
        for name in ("query", "key", "value")
    )
    keys, values = p["mechanism"]["key_table"], p["mechanism"]["value_table"]
    rows = []
    for t in range(2):
        scores = np.array([query[t] @ (key[s] + keys[s - t + 1]) / 2 for s in range(2)])
        weights = np.exp(scores) / np.exp(scores).sum()
        rows.append(sum(weights[s] * (value[s] + values[s - t + 1]) for s in range(2)))
    expected = np.stack(rows) @ p["output"]["kernel"] + p["output"]["bias"]
    np.testing.assert_allclose(layer(x)[0], expected, **CLOSE)


def test_relative_positions_tell_order_and_distance_alone():
    """The same vectors two places further on see each other as before; in reverse they do not."""
    x = normal(1, 3, 8)
    later, mask = jnp.pad(x, ((0, 0), (2, 0), (0, 0))), jnp.array([0, 0, 1, 1, 1], bool).reshape(1, 1, 1, 5)
    for kind in ("rotary", "t5", "alibi"):
        layer = filled(MultiHeadAttention, 8, 2, positions={"kind": kind})
        found = layer(x)
        np.testing.assert_allclose(layer(later, mask=mask)[:, 2:], found, **CLOSE)
        if kind != "alibi":  # which is the same in both directions
            assert np.abs(layer(x[:, ::-1])[:, ::-1] - found).max() > 1e-3
        assert np.abs(layer(x[:, jnp.array([1, 0, 2])])[:, jnp.array([1, 0, 2])] - found).max() > 1e-3


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"attention": {"kind": "linear"}, "dropout_rate": 0.1},
            "attention kind 'linear' has no weights to drop",
        ),
        (
            {"attention": {"kind": "linear"}, "positions": {"kind": "alibi"}},
            "positions kind 'alibi' is a bias, which attention kind 'linear' cannot honour; these can: dot",
        ),
        (
            {"attention": {"kind": "cosine"}, "positions": {"kind": "shaw"}},
            "positions kind 'shaw' is for attention kind 'dot_product' as it is, not 'cosine'",
        ),
        (
            {"attention": {"kind": "synthesizer_random", "max_length": 3}, "positions": {"kind": "rotary"}},
            "positions kind 'rotary' turns queries and keys; attention kind 'synthesizer_random' reads none",
        ),
        ({"positions": {"kind": "learned"}}, "positions kind 'learned' is absolute"),
        ({"positions": {"kind": "rotari"}}, "unknown positions kind 'rotari'. Did you mean 'rotary'?"),
        (
            {"positions": {"kind": "t5", "base": 9}},
            "unknown argument of positions kind 't5' 'base'. Allowed: ",
        ),
        ({"positions": {"kind": "t5", "num_buckets": 3}}, "positions kind 't5': num_buckets must be even"),
        (
            {"positions": {"kind": "rotary"}, "head_dim": 3},
            "positions kind 'rotary': rotary needs an even head dim",
        ),
        (
            {"positions": {"kind": "shaw", "max_distance": 0}},
            "max_distance is 0; it must be a whole number from 1",
        ),
        (
            {"attention": {"kind": "reformer", "chunk_size": 2}, "num_kv_heads": 1},
            "attention kind 'reformer': ",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(arguments, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")) as error:
        nnx.eval_shape(lambda: MultiHeadAttention(8, 2, **arguments, rngs=nnx.Rngs(0)))
    assert "\n" not in str(error.value)


def test_relative_positions_are_those_of_self_attention():
    layer = filled(MultiHeadAttention, 8, 2, positions={"kind": "rotary"})
    with pytest.raises(ValueError, match="'rotary' are those of self-attention; there is a memory"):
        layer(normal(1, 3, 8), normal(1, 5, 8))


def largest_array(attention, T):
    """Elements of the largest array in a forward and backward pass over T vectors."""
    layer = filled(MultiHeadAttention, 8, 2, attention=attention)
    x, mask = jnp.zeros((1, T, 8)), jnp.ones((1, 1, 1, T), bool)
    structure, params, drawn = nnx.split(layer, nnx.Param, ...)
    loss = jax.grad(lambda params: nnx.merge(structure, params, drawn)(x, mask=mask).sum())
    return max(v.aval.size for e in equations(jax.make_jaxpr(loss)(params).jaxpr) for v in e.outvars)


def equations(jaxpr):
    """Those of a program and of all programs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


@pytest.mark.parametrize(
    "attention",
    [
        {"kind": "banded", "window": (3, 3)},
        {"kind": "linear"},
        {"kind": "performer", "features": 4},
        {"kind": "cosformer", "max_length": 512},
        {"kind": "linformer", "max_length": 512},
        {"kind": "nystromformer", "landmarks": 4},
    ],
    ids=lambda block: block["kind"],
)
def test_no_array_is_as_large_as_length_times_length(attention):
    T = 512
    assert largest_array(attention, T) < T * T / 4


def test_full_attention_has_such_an_array():
    assert largest_array({"kind": "dot_product"}, 64) == 2 * 64 * 64
