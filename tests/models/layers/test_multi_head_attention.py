"""Multi-head attention against its formula, head by head, in float64."""

import jax
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.layers.multi_head_attention import MultiHeadAttention
from tests.models.parameters import arrays, filled, normal, paths, real, run, shaped

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


@pytest.mark.parametrize("num_kv_heads", [None, K], ids=["a key head each", "grouped"])
def test_it_is_the_formula(num_kv_heads):
    """Cross-attention and self-attention, masked; weights on request leave the output as it is."""
    module = filled(MultiHeadAttention, D, N, num_kv_heads=num_kv_heads, head_dim=H)
    x, memory = normal(B, T, D), normal(B, S, D, seed=2)
    mask = np.broadcast_to(real(5, 2, of=S)[:, None, None], (B, 1, T, S)).copy()
    mask[1, :, 2] = False
    causal = np.tri(T, dtype=bool)[None, None]

    @jax.jit
    def both(module, x, memory):
        found, weights = module(x, memory, mask=mask, return_weights=True)
        return found, weights, module(x, memory, mask=mask), module(x, mask=causal)

    found, found_weights, same, self_attention = both(module, x, memory)
    np.testing.assert_array_equal(found, same)
    # A query that sees nothing gets the output's bias.
    np.testing.assert_allclose(found[1, 2], module.output.bias[...], rtol=1e-6)
    np.testing.assert_array_equal(found_weights[1, :, 2], 0)
    mask[1, :, 2] = real(2, of=S)
    outputs, weights = by_hand(module, x, memory, mask)
    seen = np.ones((B, T), bool)
    seen[1, 2] = False
    np.testing.assert_allclose(found[seen], outputs[seen], **CLOSE)
    np.testing.assert_allclose(found_weights.swapaxes(1, 2)[seen], weights.swapaxes(1, 2)[seen], **CLOSE)
    np.testing.assert_allclose(self_attention, by_hand(module, x, x, causal)[0], **CLOSE)


def test_head_dim_is_dim_over_heads_unless_given():
    module = shaped(MultiHeadAttention, 12, 4)
    assert module.head_dim == 3
    assert module.query.kernel.shape == module.value.kernel.shape == (12, 12)


def test_dropout_is_on_the_weights_and_needs_rngs():
    dropped = filled(MultiHeadAttention, D, N, head_dim=H, dropout_rate=0.4)
    x = normal(B, T, D)

    @jax.jit
    def attend(module, seed):
        rngs = nnx.Rngs(dropout=jax.random.key(seed))
        return *module(x, rngs=rngs, return_weights=True), module(x)

    (one, weights, sure), (same, _, _), (other, _, _) = (attend(dropped, seed) for seed in (0, 0, 1))
    np.testing.assert_allclose(sure, by_hand(dropped, x, x, True)[0], **CLOSE)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)  # returned as they were before dropout


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
        ("linear", {"query", "key", "value", "output"}),
        ("location", {"query", "value", "output"}),
        ("reformer", {"query", "value", "output"}),
        ({"kind": "synthesizer_random", "max_length": 9}, {"value", "output"}),
    ):
        layer = shaped(MultiHeadAttention, 12, 4, attention=kind)
        assert {path.split("/")[0] for path in paths(layer)} - {"mechanism"} == projections


def test_shaw_is_keys_and_values_moved_by_distance():
    """Two vectors, so every distance is -1, 0 or 1: a row of the tables each."""
    layer = filled(MultiHeadAttention, 4, 1, attention={"kind": "shaw", "max_distance": 1})
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
    np.testing.assert_allclose(run(layer, x)[0], expected, **CLOSE)


@pytest.mark.parametrize("kind", ["rotary", "t5", "alibi"])
def test_relative_positions_tell_order_and_distance_alone(kind):
    """The same vectors two places further on see each other as before; in reverse they do not."""
    x = np.zeros((4, 5, 8), np.float32)
    vectors = np.asarray(normal(3, 8))
    x[0, :3], x[1, 2:], x[2, :3], x[3, :3] = vectors, vectors, vectors[::-1], vectors[[1, 0, 2]]
    mask = real(3, 5, 3, 3, of=5)
    mask[1, :2] = False
    layer = filled(MultiHeadAttention, 8, 2, positions=kind)
    found = np.asarray(run(layer, x, mask=mask[:, None, None]))
    np.testing.assert_allclose(found[1, 2:], found[0, :3], **CLOSE)
    if kind != "alibi":  # which is the same in both directions
        assert np.abs(found[2, 2::-1] - found[0, :3]).max() > 1e-3
    assert np.abs(found[3, [1, 0, 2]] - found[0, :3]).max() > 1e-3


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"attention": "linear", "dropout_rate": 0.1}, "attention kind 'linear' has no weights to drop"),
        (
            {"attention": "linear", "positions": "alibi"},
            "positions kind 'alibi' is a bias, which attention kind 'linear' cannot honour; these can: dot",
        ),
        (
            {"attention": "synthesizer_random", "positions": "rotary"},
            "positions kind 'rotary' turns queries and keys; attention kind 'synthesizer_random' reads none",
        ),
        ({"positions": "learned"}, r"unknown relative positions \(absolute ones .* in positions 'learned'"),
        ({"positions": "rotari"}, "'rotari'. Did you mean 'rotary'"),
        (
            {"positions": {"kind": "t5", "base": 9.0}},
            "positions with kind 't5' has no field 'base', which is of rotary; it has num_buckets, max_dist",
        ),
        ({"positions": {"kind": "t5", "num_buckets": 3}}, "positions: num_buckets must be even"),
        ({"positions": "rotary", "head_dim": 3}, "positions: rotary needs an even head dim"),
        (
            {"attention": {"kind": "shaw", "max_distance": 0}},
            "attention.max_distance is 0; it must be an int",
        ),
        ({"attention": "reformer", "num_kv_heads": 1}, "attention: "),
    ],
)
def test_what_does_not_go_together_is_one_line(arguments, message):
    with pytest.raises(UserError, match=message) as error:
        shaped(MultiHeadAttention, 8, 2, **arguments)
    assert "\n" not in str(error.value)


def test_relative_positions_are_those_of_self_attention():
    layer = shaped(MultiHeadAttention, 8, 2, positions="rotary")
    with pytest.raises(ValueError, match="Rotary positions are those of self-attention; there is a memory"):
        layer(normal(1, 3, 8), normal(1, 5, 8))


def largest_array(attention, T):
    """Elements of the largest array in a forward and backward pass over T vectors."""
    layer = shaped(MultiHeadAttention, 8, 2, attention=attention)
    x, mask = np.zeros((1, T, 8), np.float32), np.ones((1, 1, 1, T), bool)
    structure, params, drawn = nnx.split(layer, nnx.Param, ...)
    loss = jax.grad(lambda params, drawn: nnx.merge(structure, params, drawn)(x, mask=mask).sum())
    program = jax.make_jaxpr(loss)(params, drawn).jaxpr
    return max(v.aval.size for equation in equations(program) for v in equation.outvars)


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
        {"kind": "linformer", "max_length": 512, "rank": 4},
        {"kind": "nystromformer", "landmarks": 4},
    ],
    ids=lambda block: block["kind"],
)
def test_no_array_is_as_large_as_length_times_length(attention):
    T = 512
    assert largest_array(attention, T) < T * T / 4


def test_full_attention_has_such_an_array():
    assert largest_array({"kind": "dot_product"}, 64) == 2 * 64 * 64
