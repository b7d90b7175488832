"""Every mechanism by config word, held to what an encoder must not depend on."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import spec
from attention import masks
from errors import UserError
from models.mechanisms import BROUGHT, MECHANISMS, NORMALIZERS, Drawn, those_that_can
from models.rngs import named
from tests.models.parameters import filled, normal, program

N, H = 2, 4
# Real vectors of each sequence, in batches of 7: neither a multiple of the sizes below.
LENGTHS = (5, 1, 0)
PADDED = 7

# Sizes that cut a sequence of 5 into parts.
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
ROWS = {word: make for word, make in MECHANISMS.items() if word != "none"}


def build(kind, *, rngs, num_heads=N, num_kv_heads=N, head_dim=H, **options):
    """The mechanism in sizes that suit a sequence of 5."""
    block = {"kind": kind, **OPTIONS.get(kind, {}), **options}
    return MECHANISMS.build(
        block,
        "config.attention",
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rngs=rngs,
    )


def shaped(kind, **options):
    """The mechanism with shapes in place of arrays, which costs no compiling."""
    return nnx.eval_shape(lambda: build(kind, **options, rngs=nnx.Rngs(0)))


def inputs(T=5, S=5, num_kv_heads=N):
    return normal(1, T, N, H), normal(1, S, num_kv_heads, H, seed=2), normal(1, S, num_kv_heads, H, seed=3)


@pytest.mark.parametrize("kind", ROWS)
def test_padding_does_not_matter(kind):
    """Alone, in a batch and padded further; gradients; a sequence of one vector, of zeros, and of none.

    And the weights are those of the output, wherever values have no positions of their own.
    """
    module = filled(build, kind)
    structure, params, drawn = nnx.split(module, nnx.Param, ...)
    mask = np.arange(PADDED)[None] < np.asarray(LENGTHS)[:, None]
    x = [normal(len(LENGTHS), PADDED, N, H, seed=seed).at[1, 0].set(0).at[2].set(0) for seed in (1, 2, 3)]
    weighted = "return_weights" in ROWS[kind].takes

    @jax.jit
    def run(params, x):
        def attend(params, x, mask=None):
            module = nnx.merge(structure, params, drawn)
            y = module(*x, mask=None if mask is None else mask[:, None, None])
            y = y if mask is None else jnp.where(mask[..., None, None], y, 0)
            return jnp.sum(jnp.sin(y)), y

        short = [array[:1, : LENGTHS[0]] for array in x]
        module = nnx.merge(structure, params, drawn)
        alone, weights = module(*short, return_weights=True) if weighted else (module(*short), None)
        gradients, batched = jax.grad(attend, argnums=(0, 1), has_aux=True)(params, x, jnp.asarray(mask))
        return alone, weights, batched, *gradients

    alone, weights, batched, by_params, by_x = run(params, x)
    np.testing.assert_allclose(batched[0, : LENGTHS[0]], alone[0], rtol=1e-5, atol=1e-5)
    for name, gradient in zip(("query", "key", "value"), by_x, strict=True):
        np.testing.assert_array_equal(gradient[~mask], 0)
        assert np.isfinite(gradient).all(), name
        assert (np.abs(gradient).max() > 1e-4) == (name in (*ROWS[kind].reads, "value")), name
    for path, gradient in jax.tree_util.tree_leaves_with_path(by_params):
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 1e-5, path
    if weighted:
        if module.sums_to_1:
            np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        if kind != "shaw":
            sums = np.einsum("bnts,bsnh->btnh", weights, x[2][:1, : LENGTHS[0]])
            np.testing.assert_allclose(alone, sums, rtol=1e-4, atol=1e-5)
    if (not jax.tree.leaves(params) and module.sums_to_1) or kind in ("linear", "nystromformer"):
        # Of what nothing is learned, a sequence of one vector has the value itself.
        np.testing.assert_allclose(batched[1, 0], x[2][1, 0], atol=1e-4)


def by_dots(query, key):
    return np.einsum("btnh,bsnh->bnts", *(np.asarray(x, np.float64) for x in (query, key)))


PATTERNS = {
    "banded": ["11000", "11100", "11110", "01111", "00111"],
    "dilated": ["10100", "01010", "10101", "01010", "00101"],
    "strided": ["10000", "11000", "11100", "01110", "10111"],
    "longformer": ["11111", "11000", "11100", "10110", "10011"],
}


@pytest.mark.parametrize("kind", PATTERNS)
def test_weights_of_a_pattern_are_a_softmax_over_what_it_shows(kind):
    query, key, value = inputs()
    module = build(kind, scale=0.25, rngs=nnx.Rngs(0))
    _, weights = module(query, key, value, return_weights=True)
    visible = np.array([[int(seen) for seen in row] for row in PATTERNS[kind]], bool)
    expected = np.exp(by_dots(query, key) / 4) * visible
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_weights_of_blocks_know_the_bias_and_the_step():
    module = build("blockwise", is_causal=True, rngs=nnx.Rngs(0))
    (query, key, value), bias = inputs(T=2), normal(1, N, 2, 5)
    out, weights = module(query, key, value, bias=bias, query_offset=2, return_weights=True)
    expected = np.exp(by_dots(query, key) / np.sqrt(H) + np.asarray(bias))
    expected *= np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out, np.einsum("bnts,bsnh->btnh", weights, value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "normalize, weigh",
    [
        ("relu", lambda a: np.maximum(a, 0)),
        ({"kind": "relu", "divide": True}, lambda a: np.maximum(a, 0) / 5),
        ("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
        ("identity", lambda a: a),
        ({"kind": "top_k", "k": 1}, lambda a: a == a.max(-1, keepdims=True)),
        ("hardmax", lambda a: a == a.max(-1, keepdims=True)),
        ({"kind": "entmax", "alpha": 1}, lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
    ],
)
def test_the_normalizer_by_word(normalize, weigh):
    query, key, value = inputs()
    module = build("dot_product", normalize=normalize, rngs=nnx.Rngs(0))
    _, weights = module(query, key, value, return_weights=True)
    np.testing.assert_allclose(weights, weigh(by_dots(query, key) / np.sqrt(H)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("word", NORMALIZERS)
def test_every_normalizer_goes_with_every_score_and_says_whether_it_sums_to_1(word):
    assert shaped("cosine", normalize=word)
    weights = NORMALIZERS.build(word)(by_dots(*inputs()[:2]).astype(np.float32), None)
    module = shaped("synthesizer_random", normalize=word)
    assert module.sums_to_1 == np.allclose(np.sum(weights, axis=-1), 1, atol=1e-5)


def test_cosine_is_sharpened_by_head():
    query, key, _ = inputs()
    module = build("cosine", rngs=nnx.Rngs(0))
    np.testing.assert_allclose(module.log_sharpness[...], np.log(10.0), rtol=1e-6)
    module.log_sharpness[...] = jnp.log(jnp.array([1.0, 2.0]))
    mask = masks.causal(5)
    _, weights = module(*inputs(), mask=mask, return_weights=True)
    norms = (np.linalg.norm(np.asarray(x, np.float64), axis=-1, keepdims=True) for x in (query, key))
    cosines = by_dots(*(np.asarray(x, np.float64) / n for x, n in zip((query, key), norms, strict=True)))
    expected = np.exp(cosines * np.array([1.0, 2.0]).reshape(1, 2, 1, 1)) * np.asarray(mask)
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), rtol=1e-4)


def test_local_p_sums_to_1_if_told_to():
    assert not shaped("local_p").sums_to_1
    module = filled(build, "local_p", renormalize=True)
    assert module.sums_to_1
    np.testing.assert_allclose(module(*inputs(), return_weights=True)[1].sum(-1), 1, rtol=1e-5)


# Options whose other value is not just any number.
OTHER = {
    ("dot_product", "implementation"): "blockwise",
    ("blockwise", "window"): (1, 1),
    ("attention_free_local", "window"): (0, 1),
    ("reformer", "buckets"): 4,
    ("bigbird", "max_length"): 11,  # one more block
}
# Options that count only beside another.
BESIDE = {name: {"is_causal": True, "block_size": 2} for name in ("linear", "performer", "cosformer")} | {
    "attention_free_full": {"block_size": 2},
    "attention_free_local": {"block_size": 2},
}


def another(kind, field, value):
    """Another value that a field may have."""
    if (kind, field.name) in OTHER:
        return OTHER[kind, field.name]
    if field.part is not None:
        return "sigmoid"
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (1,) if len(value) == 1 else (value[0] + 1, value[1])
    return 0.3 if value is None and field.type is float else (value or 1) + 1


def computed(kind, options):
    """What is computed, of what arrays, constants included."""
    x = [jax.ShapeDtypeStruct((1, 5, N, H), np.float32)] * 3
    return program(shaped(kind, **options), *x)


@pytest.mark.parametrize("kind", ROWS)
def test_no_option_is_ignored(kind):
    """Every one, at another value, computes something else, or is of arrays of another shape."""
    base = {**OPTIONS.get(kind, {}), **BESIDE.get(kind, {})}
    block = spec.complete(MECHANISMS, {"kind": kind, **base}, around=({"head_dim": H},))
    fields = MECHANISMS.fields(kind)
    assert list(block) == ["kind", *fields]
    before = computed(kind, base)
    ignored = [
        name
        for name, field in fields.items()
        if computed(kind, {**base, name: another(kind, field, block[name])}) == before
    ]
    assert not ignored


@pytest.mark.parametrize("registry", [MECHANISMS, NORMALIZERS], ids=lambda registry: registry.what)
def test_every_option_has_a_comment_of_one_line(registry):
    for word in registry:
        for field in registry.fields(word).values():
            assert 0 < len(field.comment) < 110, (word, field.name)
            assert field.part or field.allowed, (word, field.name)


@pytest.mark.parametrize("kind", ROWS)
def test_a_call_may_bring_what_the_row_says_and_nothing_else(kind):
    module, x = shaped(kind), inputs()
    brought = {
        "bias": jnp.zeros((1, 1, 5, 5)),
        "dropout_rate": 0.5,
        "return_weights": True,
        "query_offset": 0,
    }
    assert brought.keys() == set(BROUGHT)
    structure, state = nnx.split(module)
    for name, value in brought.items():
        arguments = {name: value} | ({"dropout_key": jax.random.key(0)} if name == "dropout_rate" else {})

        def call(state, arguments=arguments):
            return nnx.merge(structure, state)(*x, **arguments)

        if name in ROWS[kind].takes and not (
            kind == "blockwise" and name == "query_offset"
        ):  # of causal ones
            jax.eval_shape(call, state)
        elif name not in ROWS[kind].takes:
            with pytest.raises(UserError, match=f"'{kind}' cannot honour {name}; these can: ") as error:
                jax.eval_shape(call, state)
            assert str(error.value).endswith(those_that_can(name))
            assert f" {kind}," not in those_that_can(name)


# Where learned and drawn arrays are found in checkpoints, and in what shapes: of heads of 2, 4 wide.
ARRAYS = {
    "cosine": {"log_sharpness": (2,)},
    "general": {"kernel": (2, 4, 4)},
    "additive": {"bias": (2, 3), "key_kernel": (1, 4, 3), "query_kernel": (2, 4, 3), "vector": (2, 3)},
    "concat": {"kernel": (2, 8, 3), "vector": (2, 3)},
    "location": {"kernel": (2, 4, 9)},
    "synthesizer_dense": {
        "bias": (2, 9),
        "hidden_bias": (2, 3),
        "hidden_kernel": (2, 4, 3),
        "kernel": (2, 3, 9),
    },
    "synthesizer_random": {"matrix": (2, 9, 9)},
    "synthesizer_factorized": {"key_factor": (2, 9, 3), "query_factor": (2, 9, 3)},
    "localness": {"log_window": (2,)},
    "localness_fixed_window": {"centre_vector": (2, 4), "kernel": (2, 4, 4), "log_window": (2,)},
    "localness_layer_window": {
        "centre_vector": (2, 4),
        "kernel": (2, 4, 4),
        "window_kernel": (2, 4, 4),
        "window_vector": (2, 4),
    },
    "localness_query_window": {"centre_vector": (2, 4), "kernel": (2, 4, 4), "window_vector": (2, 4)},
    "local_p": {"kernel": (2, 4, 4), "vector": (2, 4)},
    "shaw": {"key_table": (5, 4), "value_table": (5, 4)},
    "bigbird": {"random_blocks": (5, 1)},
    "performer": {"projection": (3, 4)},
    "linformer": {"key_projection": (9, 3), "value_projection": (9, 3)},
    "reformer": {"rotations": (2, 4, 1)},
    "attention_free_full": {"position_bias": (9, 9)},
    "attention_free_local": {"position_bias": (9, 9)},
}
DRAWN = {"bigbird", "performer", "reformer"}


@pytest.mark.parametrize("kind", ROWS)
def test_arrays_keep_their_names_and_shapes_with_key_heads_shared(kind):
    module = shaped(kind, num_kv_heads=N if kind == "reformer" else 1)  # which has its keys from the queries
    arrays = nnx.to_pure_dict(nnx.state(module))
    assert {name: array.shape for name, array in arrays.items()} == ARRAYS.get(kind, {})
    drawn = len(jax.tree.leaves(nnx.state(module, Drawn)))
    assert drawn == (1 if kind in DRAWN else 0)
    assert drawn + len(jax.tree.leaves(nnx.state(module, nnx.Param))) == len(arrays)


# Standard deviations of normal initial values, of heads 16 wide, 100 hidden units, lengths of 64 and rank 4.
DEVIATIONS = {
    "general": {"kernel": 1 / 16},
    "additive": {"query_kernel": 1 / 4, "key_kernel": 1 / 4, "vector": 1 / 10},
    "concat": {"kernel": 32**-0.5, "vector": 1 / 10},
    "location": {"kernel": 1 / 4},
    "synthesizer_dense": {"hidden_kernel": 1 / 4, "kernel": 1 / 10},
    "synthesizer_random": {"matrix": 1 / 8},
    "synthesizer_factorized": {"query_factor": 1 / 2, "key_factor": 1 / 2},
    "localness_fixed_window": {"kernel": 1 / 4, "centre_vector": 1 / 10},
    "localness_layer_window": {
        "kernel": 1 / 4,
        "centre_vector": 1 / 10,
        "window_kernel": 1 / 4,
        "window_vector": 1 / 10,
    },
    "localness_query_window": {"kernel": 1 / 4, "centre_vector": 1 / 10, "window_vector": 1 / 10},
    "local_p": {"kernel": 1 / 4, "vector": 1 / 10},
    "shaw": {"key_table": 1 / 4, "value_table": 1 / 4},
    "linformer": {"key_projection": 1 / 8, "value_projection": 1 / 8},
}
CONSTANTS = {
    "log_sharpness": np.log(10),
    "log_window": np.log(8),
    "bias": 0,
    "hidden_bias": 0,
    "position_bias": 0,
}


@pytest.mark.parametrize("kind", [kind for kind in ARRAYS if kind not in DRAWN])
def test_initial_values(kind, monkeypatch):
    """Constants; or normal numbers by seed and name, whatever else is drawn."""
    sizes = {"hidden_dim": 100, "max_length": 64, "rank": 4, "max_distance": 16}

    def numbers(key, shape):  # each shape of which would be compiled
        return np.random.default_rng(np.asarray(jax.random.key_data(key))).standard_normal(shape)

    monkeypatch.setattr(jax.random, "normal", numbers)
    options = {name: size for name, size in sizes.items() if name in MECHANISMS.fields(kind)}
    module = build(kind, **options, num_heads=8, num_kv_heads=8, head_dim=16, rngs=nnx.Rngs(5))
    for name, array in nnx.to_pure_dict(nnx.state(module)).items():
        if name in CONSTANTS:
            np.testing.assert_allclose(array, CONSTANTS[name], rtol=1e-6)
        else:
            drawn = numbers(named(nnx.Rngs(5), name).params(), array.shape)
            np.testing.assert_allclose(array, DEVIATIONS[kind][name] * drawn, rtol=1e-6)


@pytest.mark.parametrize("kind", sorted(DRAWN))
def test_what_is_drawn_comes_of_the_seed(kind):
    one, again, two = (jax.tree.leaves(nnx.state(build(kind, rngs=nnx.Rngs(seed))))[0] for seed in (0, 0, 5))
    np.testing.assert_array_equal(one, again)
    assert (one != two).any()


def test_where_a_row_can_be_used():
    by_place = MECHANISMS.where(lambda make: getattr(make, "by_place", False), "of a decoder")
    assert set(by_place) == {
        "dot_product",
        "dot",
        "cosine",
        "general",
        "additive",
        "concat",
        "negative_squared_distance",
        "location",
        "local_p",
        "synthesizer_dense",
        "linear",
        "performer",
    }
    recurrent = {kind for kind, make in ROWS.items() if make.in_recurrent}
    assert recurrent == {*by_place, "local_m"} - {"synthesizer_dense", "linear", "performer"}
    with pytest.raises(UserError, match="unknown attention of a decoder in x 'banded'"):
        by_place.build("banded", "x")


@pytest.mark.parametrize("kind", ["linear", "localness_fixed_window"])
def test_a_mask_by_query_is_refused_where_only_keys_can_be_hidden(kind):
    with pytest.raises(ValueError, match="differs between queries"):
        jax.eval_shape(lambda: build(kind, rngs=nnx.Rngs(0))(*inputs(), mask=masks.causal(5)))


@pytest.mark.parametrize("kind", [kind for kind in ROWS if "max_length" in MECHANISMS.fields(kind)])
def test_a_sequence_longer_than_max_length_is_one_line(kind):
    message = f"attention kind '{kind}' has max_length 4, a sequence has 5 vectors"
    with pytest.raises(UserError, match=message):
        jax.eval_shape(lambda: build(kind, max_length=4, rngs=nnx.Rngs(0))(*inputs()))


@pytest.mark.parametrize(
    "block, message",
    [
        ("cosin", "unknown attention in config.attention 'cosin'. Did you mean 'cosine'? Allowed: additive,"),
        (
            {"kind": "cosine", "window": (3, 3)},
            "config.attention with kind 'cosine' has no field 'window', which is of blockwise, banded, ",
        ),
        (
            {"kind": "banded", "window": 3},
            "config.attention.window is 3; it must be (an integer, at least 0, an integer, at least 0)",
        ),
        ({"kind": "banded", "window": (3, -1)}, "config.attention.window is (3, -1); it must be "),
        ({"kind": "strided", "stride": 0}, "config.attention.stride is 0; it must be an integer, at least 1"),
        ({"kind": "sinkhorn", "temperature": 0.0}, "temperature is 0.0; it must be a number, above 0"),
        (
            {"kind": "reformer", "buckets": 3},
            "config.attention: rounds must be 1 or more and buckets even, or 1, got 2 rounds and 3 buckets",
        ),
        (
            {"kind": "linformer", "rank": "2"},
            "config.attention.rank is '2'; it must be an integer, at least 1",
        ),
        (
            {"kind": "dot_product", "implementation": "flash"},
            "it must be one of auto, dense, blockwise, cudnn",
        ),
        (
            {"kind": "dot_product", "implementation": "dense", "normalize": "relu"},
            "config.attention: implementation 'dense' is of the normaliser softmax alone",
        ),
        (
            {"kind": "dot_product", "normalize": "sofmax"},
            "unknown normaliser in config.attention.normalize 'sofmax'. Did you mean 'softmax'?",
        ),
        (
            {"kind": "additive", "normalize": {"kind": "entmax", "alpha": 0.5}},
            "config.attention.normalize.alpha is 0.5; it must be a number, in [1, 2]",
        ),
        ("none", ""),
    ],
)
def test_what_a_mechanism_cannot_work_with_is_one_line(block, message):
    def make():
        given = {"num_heads": N, "num_kv_heads": N, "head_dim": H, "rngs": nnx.Rngs(0)}
        return MECHANISMS.build(block, "config.attention", **given)

    if not message:
        assert make() is None
        return
    with pytest.raises(UserError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_only_the_function_can_tell_is_one_line():
    """What construction lets pass, tracing the mechanism finds out."""
    with pytest.raises(ValueError, match="window must be a pair") as error:
        ROWS["banded"](window=3, num_heads=N, num_kv_heads=N, head_dim=H, rngs=nnx.Rngs(0))
    assert "\n" not in str(error.value)


def test_a_block_may_leave_out_fields_and_hold_lists_and_older_words():
    module = shaped("banded", window=[2, 1])
    assert module.window == (2, 1)
    assert shaped("truncated", window=(1, 0)).kind == "banded"
    assert shaped("truncated").window == (15, 15)


def test_widths_follow_that_of_a_head():
    for kind, name, expected in (("synthesizer_factorized", "rank", 8), ("performer", "features", 17)):
        whole = spec.complete(MECHANISMS, {"kind": kind}, around=({"head_dim": 8},))
        assert whole[name] == expected
        assert name not in spec.complete(MECHANISMS, {"kind": kind})
        assert expected in jax.tree.leaves(nnx.state(shaped(kind, head_dim=8, **{name: expected})))[0].shape


@pytest.mark.parametrize("kind", [kind for kind in ROWS if ROWS[kind].can_prepare] + ["dot"])
def test_keys_may_be_prepared_for_many_calls(kind):
    structure, state = nnx.split(filled(build, kind, num_heads=4, num_kv_heads=2))
    query, key, value = normal(1, 3, 4, H), normal(1, 5, 2, H, seed=2), normal(1, 5, 2, H, seed=3)

    @jax.jit
    def run(state):
        module = nnx.merge(structure, state)
        keys = module.prepare(key)
        assert (keys is key) == (not module.can_prepare)
        return module(query, key, value), module(query[:, 1:2], keys, value, prepared=True)

    together, alone = run(state)
    np.testing.assert_allclose(alone, together[:, 1:2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in ROWS if "query_offset" in ROWS[kind].takes])
def test_a_query_may_say_which_step_it_is(kind):
    options = {"is_causal": True} if kind == "blockwise" else {}
    structure, state = nnx.split(filled(build, kind, **options))
    query, key, value = inputs()

    @jax.jit
    def run(state):
        module = nnx.merge(structure, state)
        alone = module(query[:, 3:], key, value, query_offset=jnp.array([3]))
        if "return_weights" in module.takes:
            weights = [
                module(query, key, value, return_weights=True)[1][:, :, 3:],
                module(query[:, 3:], key, value, query_offset=jnp.array([3]), return_weights=True)[1],
            ]
        else:
            weights = [0, 0]
        return module(query, key, value)[:, 3:], alone, *weights

    together, alone, weights, weights_alone = run(state)
    np.testing.assert_allclose(alone, together, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weights_alone, weights, rtol=1e-5, atol=1e-6)


def test_signatures_say_what_is_taken():
    """`takes` and the arguments of `_attend` are one list."""
    for kind, make in ROWS.items():
        names = inspect.signature(make._attend).parameters.keys() - {"self", "query", "key", "value", "mask"}
        assert names - {"dropout_key", "prepared"} == make.takes, kind
        assert ("dropout_key" in names) == ("dropout_rate" in names)
        assert not make.can_prepare or "prepared" in names
