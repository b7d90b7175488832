"""Every mechanism by config word, held to what an encoder must not depend on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import attention
from errors import UserError
from models import mechanisms
from models.mechanism_kinds import KINDS, NORMALIZERS
from tests.models.parameters import filled, normal

N, H = 2, 4
# Real vectors of each sequence, in batches of 7: neither a multiple of the sizes below.
LENGTHS = (5, 1, 0)
PADDED = 7

# Sizes that cut a sequence of 5 into parts, unless the word says all.
OPTIONS = {
    "location": {"max_length": 9},
    "synthesizer_dense": {"max_length": 9, "hidden_dim": 3},
    "synthesizer_random": {"max_length": 9},
    "synthesizer_factorized": {"max_length": 9, "rank": 3},
    "additive": {"hidden_dim": 3},
    "concat": {"hidden_dim": 3},
    "local_m": {"radius": 1},
    "local_p": {"radius": 2},
    "shaw": {"max_distance": 2},
    "banded": {"window": (2, 1)},
    "truncated": {"window": (1, 0)},
    "dilated": {"window": (1, 1), "dilation": 2},
    "strided": {"stride": 2},
    "longformer": {"window": (1, 0)},
    "bigbird": {"block_size": 2, "max_length": 9, "count": 1, "window": (0, 0)},
    "cosformer": {"max_length": 9},
    "linformer": {"max_length": 9, "rank": 3},
    "nystromformer": {"landmarks": 2},
    "reformer": {"chunk_size": 2, "buckets": 2},
    "sinkhorn": {"block_size": 2, "iterations": 2},
    "attention_free_full": {"max_length": 9},
    "attention_free_local": {"max_length": 9, "window": (1, 1)},
    "performer": {"features": 3},
}


def block_of(kind):
    return {"kind": kind, **OPTIONS.get(kind, {})}


def built(kind, **options):
    return mechanisms.build({"kind": kind, **options}, num_heads=N, head_dim=H, rngs=nnx.Rngs(0))


def inputs(T=5):
    return normal(1, T, N, H), normal(1, T, N, H, seed=2), normal(1, T, N, H, seed=3)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "truncated"])
def test_padding_does_not_matter(kind):
    """Alone, in a batch and padded further; gradients; a sequence of one vector, of zeros, and of none."""
    module = filled(mechanisms.build, block_of(kind), num_heads=N, head_dim=H)
    structure, params, drawn = nnx.split(module, nnx.Param, ...)
    mask = np.arange(PADDED)[None] < np.asarray(LENGTHS)[:, None]
    x = [normal(len(LENGTHS), PADDED, N, H, seed=seed).at[1, 0].set(0).at[2].set(0) for seed in (1, 2, 3)]

    @jax.jit
    def run(params):
        def attend(params, x, mask=None):
            module = nnx.merge(structure, params, drawn)
            y = module(*x, mask=None if mask is None else mask[:, None, None])
            y = y if mask is None else jnp.where(mask[..., None, None], y, 0)
            return jnp.sum(jnp.sin(y)), y

        _, alone = attend(params, [array[:1, : LENGTHS[0]] for array in x])
        gradients, batched = jax.grad(attend, argnums=(0, 1), has_aux=True)(params, x, jnp.asarray(mask))
        return alone, batched, *gradients

    alone, batched, by_params, by_x = run(params)
    np.testing.assert_allclose(batched[0, : LENGTHS[0]], alone[0], rtol=1e-5, atol=1e-5)
    for name, gradient in zip(("query", "key", "value"), by_x, strict=True):
        np.testing.assert_array_equal(gradient[~mask], 0)
        assert np.isfinite(gradient).all(), name
        assert (np.abs(gradient).max() > 1e-4) == (name in (*KINDS[kind].reads, "value")), name
    for path, gradient in jax.tree_util.tree_leaves_with_path(by_params):
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 1e-5, path


# Of what no score or position is learned, a sequence of one vector has the value itself.
SUM_TO_1 = ("dot_product", "banded", "dilated", "strided", "longformer", "bigbird", "linear", "nystromformer")


@pytest.mark.parametrize("kind", SUM_TO_1)
def test_a_sequence_of_one_vector_attends_to_itself(kind):
    query, key, value = inputs(1)
    np.testing.assert_allclose(built(**block_of(kind))(query, key, value), value, rtol=1e-4)


def by_dots(query, key):
    return np.einsum("btnh,bsnh->bnts", *(np.asarray(x, np.float64) for x in (query, key)))


@pytest.mark.parametrize(
    "normalize, weigh",
    [
        ("relu", lambda a: np.maximum(a, 0)),
        ({"kind": "relu", "divide": True}, lambda a: np.maximum(a, 0) / 5),
        ("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
        ("identity", lambda a: a),
        ({"kind": "top_k", "k": 1}, lambda a: a == a.max(-1, keepdims=True)),
    ],
)
def test_the_normalizer_by_word(normalize, weigh):
    query, key, value = inputs()
    _, weights = built("dot_product", normalize=normalize)(query, key, value, return_weights=True)
    np.testing.assert_allclose(weights, weigh(by_dots(query, key) / np.sqrt(H)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("word", sorted(NORMALIZERS.keys() - {"top_k"}))
def test_every_normalizer_goes_with_every_score(word):
    for kind in ("cosine", "synthesizer_random"):
        assert built(**block_of(kind), normalize=word)


def test_cosine_is_sharpened_by_head():
    query, key, _ = inputs()
    module = built("cosine")
    np.testing.assert_allclose(module.log_sharpness[...], np.log(10.0), rtol=1e-6)
    module.log_sharpness[...] = jnp.log(jnp.array([1.0, 2.0]))
    mask = attention.masks.causal(5)
    _, weights = module(*inputs(), mask=mask, return_weights=True)
    norms = (np.linalg.norm(np.asarray(x, np.float64), axis=-1, keepdims=True) for x in (query, key))
    cosines = by_dots(*(np.asarray(x, np.float64) / n for x, n in zip((query, key), norms, strict=True)))
    expected = np.exp(cosines * np.array([1.0, 2.0]).reshape(1, 2, 1, 1)) * np.asarray(mask)
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), rtol=1e-4)


PATTERNS = {
    "banded": ["11000", "11100", "11110", "01111", "00111"],
    "dilated": ["10100", "01010", "10101", "01010", "00101"],
    "strided": ["10000", "11000", "11100", "01110", "10111"],
    "longformer": ["11111", "11000", "11100", "10110", "10011"],
}


@pytest.mark.parametrize("kind", PATTERNS)
def test_weights_of_a_sparse_mechanism_are_those_of_its_pattern(kind):
    """A softmax over what the pattern shows, that gives the same output as the mechanism itself."""
    query, key, value = inputs()
    out, weights = built(**block_of(kind))(query, key, value, return_weights=True)
    visible = np.array([[int(seen) for seen in row] for row in PATTERNS[kind]], bool)
    expected = np.exp(by_dots(query, key) / np.sqrt(H)) * visible
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(out, built(**block_of(kind))(query, key, value))
    np.testing.assert_allclose(out, np.einsum("bnts,bsnh->btnh", weights, value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bigbird", "blockwise"])
def test_weights_of_blocks_give_the_output(kind):
    query, key, value = inputs()
    out, weights = built(**block_of(kind))(query, key, value, return_weights=True)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(out, np.einsum("bnts,bsnh->btnh", weights, value), rtol=1e-4, atol=1e-5)


def test_a_scale_is_in_the_weights_too():
    query, key, value = inputs()
    out, weights = built("banded", window=(4, 4), scale=0.25)(query, key, value, return_weights=True)
    expected = np.exp(by_dots(query, key) / 4)
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(out, np.einsum("bnts,bsnh->btnh", weights, value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bigbird", "performer", "reformer"])
def test_what_is_drawn_is_kept_and_not_trained(kind):
    module = built(**block_of(kind))
    assert not jax.tree.leaves(nnx.state(module, nnx.Param))
    assert len(jax.tree.leaves(nnx.state(module, mechanisms.Drawn))) == 1
    other = mechanisms.build(block_of(kind), num_heads=N, head_dim=H, rngs=nnx.Rngs(5))
    one, two = (jax.tree.leaves(nnx.state(m))[0] for m in (module, other))
    assert (one != two).any()


@pytest.mark.parametrize(
    "block, message",
    [
        ({"kind": "cosin"}, "unknown attention kind 'cosin'. Did you mean 'cosine'? Allowed: additive,"),
        (
            {"kind": "cosine", "windo": 3},
            "unknown argument of attention kind 'cosine' 'windo'. Allowed: normalize",
        ),
        ({"kind": "banded"}, "attention kind 'banded' needs window; it takes "),
        ({"kind": "banded", "window": 3}, "attention kind 'banded': window must be a pair"),
        ({"kind": "banded", "window": (3, -1)}, "attention kind 'banded': window sides must not be negative"),
        ({"kind": "strided", "stride": 0}, "attention kind 'strided': stride must be at least 1"),
        ({"kind": "sinkhorn", "block_size": 2, "temperature": 0.0}, "temperature must be positive, got 0.0"),
        (
            {"kind": "reformer", "chunk_size": 2, "buckets": 3},
            "buckets even, or 1, got 2 rounds and 3 buckets",
        ),
        ({"kind": "linformer", "max_length": 0}, "max_length is 0; it must be a whole number from 1 on"),
        (
            {"kind": "linformer", "max_length": 4, "rank": "2"},
            "rank is '2'; it must be a whole number from 0 on",
        ),
        (
            {"kind": "dot_product", "implementation": "flash"},
            "unknown implementation 'flash'; allowed: auto,",
        ),
        (
            {"kind": "dot_product", "normalize": "sofmax"},
            "unknown normalizer 'sofmax'. Did you mean 'softmax'?",
        ),
        ({"kind": "dot_product", "normalize": "top_k"}, "attention kind 'dot_product': .*'k'"),
        ({"kind": "additive", "normalize": {"kind": "entmax", "alpha": 0.5}}, "alpha must be"),
    ],
)
def test_what_a_mechanism_cannot_work_with_is_one_line(block, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")) as error:
        mechanisms.build(block, num_heads=N, head_dim=H, rngs=nnx.Rngs(0))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"bias": jnp.zeros((1, 1, 5, 5))},
            "attention kind 'linear' cannot honour bias; these can: dot_product,",
        ),
        ({"return_weights": True}, "attention kind 'linear' cannot honour return_weights; these can: "),
        ({"dropout_rate": 0.1, "dropout_key": jax.random.key(0)}, "cannot honour dropout_rate; these can: "),
    ],
)
def test_what_a_mechanism_cannot_honour_is_refused_by_name(arguments, message):
    with pytest.raises(UserError, match=message):
        built("linear")(*inputs(), **arguments)


@pytest.mark.parametrize("kind", ["linear", "localness_fixed_window"])
def test_a_mask_by_query_is_refused_where_only_keys_can_be_hidden(kind):
    with pytest.raises(ValueError, match="differs between queries"):
        built(kind)(*inputs(), mask=attention.masks.causal(5))


@pytest.mark.parametrize("kind", ["location", "linformer", "cosformer", "bigbird", "attention_free_full"])
def test_a_sequence_longer_than_max_length_is_one_line(kind):
    with pytest.raises(
        UserError, match=f"attention kind '{kind}' has max_length 4, a sequence has 5 vectors"
    ):
        built(**{**block_of(kind), "max_length": 4})(*inputs())


def test_a_list_of_a_config_read_back_is_as_good_as_a_tuple():
    module = built("banded", window=[2, 1])
    assert module.options == (("window", (2, 1)),)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"reformer"}))
def test_key_heads_may_be_shared(kind):
    """Tried out at construction; the reformer has its keys from the queries."""
    nnx.eval_shape(
        lambda: mechanisms.build(block_of(kind), num_heads=4, num_kv_heads=2, head_dim=H, rngs=nnx.Rngs(0))
    )


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row.prepared] + ["dot"])
def test_keys_may_be_prepared_for_many_calls(kind):
    module = filled(mechanisms.build, block_of(kind), num_heads=4, num_kv_heads=2, head_dim=H)
    query, key, value = normal(1, 3, 4, H), normal(1, 5, 2, H, seed=2), normal(1, 5, 2, H, seed=3)
    together = module(query, key, value)
    keys = module.prepare(key)
    for place in range(3):
        alone = module(query[:, place : place + 1], keys, value, prepared=True)
        np.testing.assert_allclose(alone, together[:, place : place + 1], rtol=1e-5, atol=1e-6)


def test_a_query_may_say_which_step_it_is():
    module, (query, key, value) = built("local_m", radius=1), inputs()
    together = module(query, key, value)
    alone = module(query[:, 3:], key, value, query_offset=jnp.array([3]))
    np.testing.assert_allclose(alone, together[:, 3:], rtol=1e-5)
    with pytest.raises(UserError, match="cannot honour query_offset"):
        built("sinkhorn", block_size=2)(query, key, value, query_offset=3)


def test_every_row_without_a_default_is_tried():
    """A new mechanism comes with its options here, or works without any."""
    assert OPTIONS.keys() <= KINDS.keys()
