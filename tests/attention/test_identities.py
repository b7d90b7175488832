"""What holds for every mechanism, written once. A new mechanism is tested by a line in MECHANISMS."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import masks, normalizers, positions, scores
from tests.attention import oracle

B, T, S, N, K, H, V, A = 3, 5, 7, 4, 2, 6, 8, 9


rng = np.random.default_rng(1)


def sixteenths(*shape):
    """Parameters that bfloat16 holds exactly."""
    return np.round(16 * rng.normal(size=shape)) / 16


GENERAL = {"kernel": sixteenths(N, H, H)}
ADDITIVE = {
    "query_kernel": sixteenths(N, H, A),
    "key_kernel": sixteenths(K, H, A),
    "bias": sixteenths(N, A),
    "vector": sixteenths(N, A),
}


def learned(score, parameters):
    def bound(query, key):
        return score(query, key, **{k: jnp.asarray(v, query.dtype) for k, v in parameters.items()})

    return bound


@dataclasses.dataclass(frozen=True)
class Mechanism:
    name: str
    call: Callable[..., Any]
    score: Callable[..., Any] = oracle.scaled_dot
    normalize: Callable[..., Any] = oracle.softmax

    def expected(self, *arrays, **options):
        return oracle.attend(*arrays, score=self.score, normalize=self.normalize, **options)


def attend(name, normalizer="softmax", score=None, expected_score=None, normalize=None):
    return Mechanism(
        f"attend-{name}-{normalizer}",
        partial(
            attention.attend,
            score=score or getattr(scores, name),
            normalize=normalize or getattr(normalizers, normalizer),
        ),
        expected_score or getattr(oracle, name),
        getattr(oracle, normalizer),
    )


MECHANISMS = [
    attend("dot"),
    attend("scaled_dot"),
    attend("cosine"),
    attend("general", score=learned(scores.general, GENERAL), expected_score=oracle.general(**GENERAL)),
    attend("additive", score=learned(scores.additive, ADDITIVE), expected_score=oracle.additive(**ADDITIVE)),
    attend("scaled_dot", "relu"),
    attend("scaled_dot", "relu_divided", normalize=Partial(normalizers.relu, divide=True)),
    attend("scaled_dot", "identity"),
    Mechanism("dot_product-dense", partial(attention.dot_product_attention, implementation="dense")),
]
every = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
softmaxes = pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if m.normalize is oracle.softmax], ids=lambda m: m.name
)


def draw(*shapes, dtype=jnp.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]


def inputs(dtype=jnp.float32):
    return draw((B, T, N, H), (B, S, K, H), (B, S, K, V), dtype=dtype)


def random_mask():
    """A mask in which the first query sees nothing and the second one everything."""
    mask = np.random.default_rng(2).random((B, N, T, S)) < 0.6
    mask[:, :, 0], mask[:, :, 1] = False, True
    return mask


def full(mask):
    return np.broadcast_to(mask, (B, N, T, S))


@partial(jax.jit, static_argnums=0)
def output_and_gradients(mechanism, form, query, key, value, mask, bias):
    """The output, and the gradients of `sum(form * output)` in query, key, value and bias."""

    def loss(query, key, value, bias):
        out = mechanism.call(query, key, value, mask=mask, bias=bias)
        return jnp.sum(out * form), out

    gradients, out = jax.grad(loss, (0, 1, 2, 3), has_aux=True)(query, key, value, bias)
    return out, *gradients


def evaluate(mechanism, arrays, mask=True, bias=0.0, rows=slice(None)):
    """The same in numpy, for a random form on the output of some of the queries."""
    form = np.zeros((B, T, N, V), np.float32)
    form[:, rows] = np.random.default_rng(3).normal(size=form.shape)[:, rows]
    mask, bias = full(mask), full(np.float32(bias))  # one shape, so that one program serves all tests
    return [np.asarray(x) for x in output_and_gradients(mechanism, form, *arrays, mask, bias)]


def assert_same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)
        assert np.isfinite(a).all()


GARBAGE = [np.nan, np.inf, -np.inf, 1e9]


@every
def test_padding_is_unseen(mechanism):
    query, key, value = inputs()
    mask = full(masks.padding(jnp.array([4, 0, 7]), S))
    shown = mask[:, 0, 0, :, None, None]
    clean = evaluate(mechanism, (query, key, value), mask=mask)
    for garbage in GARBAGE:
        dirty = query, np.where(shown, key, np.float32(garbage)), np.where(shown, value, np.float32(garbage))
        assert_same(evaluate(mechanism, dirty, mask=mask), clean)
    for gradient in clean[2:4]:
        assert (np.where(shown, 0, gradient) == 0).all()


@every
def test_hidden_from_some_is_unseen_by_them(mechanism):
    # Key 3 is hidden from the queries 0, 2 and 4, and seen by 1 and 3.
    rows, query, *others = [0, 2, 4], *inputs()
    mask = np.ones((B, N, T, S), bool)
    mask[:, :, rows, 3] = False
    clean = evaluate(mechanism, (query, *others), mask, rows=rows)
    for garbage in GARBAGE:
        for spoil in ((True, False), (False, True), (True, True)):
            dirty = [x.at[:, 3].set(garbage) if s else x for x, s in zip(others, spoil, strict=True)]
            out, *gradients = evaluate(mechanism, (query, *dirty), mask, rows=rows)
            assert_same([out[:, rows], *gradients], [clean[0][:, rows], *clean[1:]])
            if not np.isfinite(garbage):
                assert np.isnan(out[:, 1::2]).all()


@every
def test_nan_stays_in_its_head_and_batch_element(mechanism):
    query, key, value = inputs()
    mask = np.ones((B, N, T, S), bool)
    clean = evaluate(mechanism, (query, key, value), mask=mask)[0]
    dirty = evaluate(mechanism, (query, key.at[1, 2, 1].set(jnp.nan), value), mask=mask)[0]
    spoilt = np.zeros(clean.shape, bool)
    spoilt[1, :, 2:] = True  # key head 1 is read by the query heads 2 and 3
    np.testing.assert_array_equal(np.isnan(dirty), spoilt)
    np.testing.assert_array_equal(dirty[~spoilt], clean[~spoilt])


@every
def test_minus_infinity_in_a_bias_is_a_mask(mechanism):
    arrays, mask = inputs(), random_mask()
    bias = np.where(mask, np.float32(0), -np.inf)
    clean = evaluate(mechanism, arrays, bias=bias)
    assert_same(clean, evaluate(mechanism, arrays, mask=mask))
    assert (clean[-1][~mask] == 0).all()
    # Hidden from every query, by bias in some heads and by mask in the others
    bias[:, ::2, :, 2], mask[:, 1::2, :, 2] = -np.inf, False
    query, *others = arrays
    garbled = [x.at[:, 2].set(jnp.nan) for x in others]
    assert_same(*(evaluate(mechanism, (query, *x), mask, bias) for x in (garbled, others)))


@every
def test_causality(mechanism):
    query, *others = inputs()
    mask = full(masks.causal(T, S, 1))  # query t sees the keys up to t + 1
    for t in range(T):
        clean = evaluate(mechanism, (query, *others), mask, rows=t)
        for gradient in clean[2:4]:
            assert (gradient[:, t + 2 :] == 0).all()
            assert (gradient[:, : t + 2] != 0).any((2, 3)).all() or mechanism.normalize is not oracle.softmax
        for garbage in (1.0, np.nan):
            future = [x.at[:, t + 2 :].set(garbage) for x in others]
            out, *gradients = evaluate(mechanism, (query, *future), mask, rows=t)
            assert_same([out[:, : t + 1], *gradients], [clean[0][:, : t + 1], *clean[1:]])


@every
def test_batch_independence(mechanism):
    arrays, mask = inputs(), random_mask()
    whole = evaluate(mechanism, arrays, mask=mask)
    others = [x.at[1:].set(np.float32(7)) for x in arrays]
    for a, b in zip(evaluate(mechanism, others, mask=mask), whole, strict=True):
        np.testing.assert_array_equal(a[0], b[0])


@every
def test_eager_and_unbatched_equals_compiled_and_batched(mechanism):
    arrays, mask = inputs(), random_mask()
    whole = evaluate(mechanism, arrays, mask=mask)[0]
    with jax.disable_jit():
        alone = mechanism.call(*(x[0] for x in arrays), mask=jnp.asarray(mask[0]))
    np.testing.assert_allclose(whole[0], alone, rtol=1e-5, atol=1e-6)


@every
def test_without_positions_a_bag_of_words(mechanism):
    query, key, value = inputs()
    mask = random_mask()
    to, so = np.random.default_rng(4).permutation(T), np.random.default_rng(5).permutation(S)
    out = evaluate(mechanism, (query, key, value), mask=mask)[0]
    permuted = evaluate(mechanism, (query[:, to], key[:, so], value[:, so]), mask=mask[:, :, to][..., so])[0]
    np.testing.assert_allclose(permuted, out[:, to], rtol=1e-5, atol=1e-5)
    # With positions the order of the keys shows.
    everything = np.ones_like(mask)
    first, second = (
        evaluate(mechanism, (query, positions.rotary(k, jnp.arange(S)), v), mask=everything)[0]
        for k, v in [(key, value), (key[:, so], value[:, so])]
    )
    assert np.abs(first - second).max() > 1e-2


@every
def test_fully_masked_rows(mechanism):
    arrays, mask = inputs(), random_mask()
    out, d_query, *d_others = evaluate(mechanism, arrays, mask=mask)
    assert (out[:, 0] == 0).all()
    assert (d_query[:, 0] == 0).all()
    assert all(np.isfinite(d).all() for d in d_others)
    for values in (arrays, [np.full_like(x, np.nan) for x in arrays]):
        for result in evaluate(mechanism, values, mask=np.zeros_like(mask)):
            assert (result == 0).all()


@every
def test_empty_and_single(mechanism):
    cases = [(0, 3, True), (3, 0, False), (3, 0, True), (1, 1, False)]

    inputs = [draw((B, T, N, H), (B, S, K, H), (B, S, K, V)) for T, S, _ in cases]

    def evaluated(T, S, masked, arrays):
        options = {"mask": jnp.ones((1, 1, T, S), bool)} if masked else {}
        out, pull = jax.vjp(lambda *arrays: mechanism.call(*arrays, **options), *arrays)
        return out, *pull(out)

    program = jax.jit(lambda inputs: [evaluated(*c, x) for c, x in zip(cases, inputs, strict=True)])
    for arrays, (out, *gradients) in zip(inputs, program(inputs), strict=True):
        assert out.shape == (*arrays[0].shape[:3], V)
        np.testing.assert_allclose(out, mechanism.expected(*arrays)[0], rtol=1e-5, atol=1e-6)
        assert all(np.isfinite(d).all() for d in gradients)


@every
def test_equals_oracle_in_float64(mechanism, x64):
    query, key, value, bias = draw((B, T, N, H), (B, S, N, H), (B, S, N, V), (1, N, T, S), dtype=jnp.float64)
    mask = jnp.asarray(random_mask())
    # Grouped heads, with and without mask and bias; one key head for all; one for each.
    cases = [(K, {}), (K, {"mask": mask, "bias": bias}), (1, {}), (N, {"mask": mask})]
    if "additive" in mechanism.name:
        cases = cases[:2]  # its parameters are made for K key heads
    calls = [((query, key[:, :, :heads], value[:, :, :heads]), options) for heads, options in cases]
    outs = jax.jit(lambda: [mechanism.call(*arrays, **options) for arrays, options in calls])()
    for out, (arrays, options) in zip(outs, calls, strict=True):
        assert out.dtype == jnp.float64
        expected = mechanism.expected(*arrays, **options)[0]
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@every
def test_bfloat16_is_as_good_as_rounding_allows(mechanism):
    arrays, mask = inputs(jnp.bfloat16), random_mask()
    out = mechanism.call(*arrays, mask=mask)
    assert out.dtype == jnp.bfloat16
    exact, weights = mechanism.expected(*arrays, mask=mask)
    # The reference rounds what any dense form in bfloat16 must: the weights and the output.
    values = np.repeat(np.asarray(arrays[2], np.float64), N // K, axis=2)
    reference = np.einsum("bnts,bsnv->btnv", weights.astype(jnp.bfloat16).astype(float), values)
    reference = reference.astype(jnp.bfloat16).astype(float)
    error, bound = (np.abs(np.asarray(x, float) - exact).mean() for x in (out, reference))
    assert error <= 2 * bound


@softmaxes
def test_shift_invariance(mechanism, x64):
    arrays = inputs(jnp.float64)
    outs = [mechanism.call(*arrays, bias=jnp.full((1, 1, 1, 1), shift)) for shift in (0.0, -1e7, 1e7)]
    for shifted in outs[1:]:
        np.testing.assert_allclose(shifted, outs[0], rtol=1e-6, atol=1e-8)


@every
def test_transforms_agree(mechanism, x64):
    arrays, mask = inputs(jnp.float64), jnp.asarray(random_mask())
    tangents, others = (tuple(draw(*(x.shape for x in arrays), dtype=jnp.float64, seed=s)) for s in (6, 7))

    def call(*arrays):
        return mechanism.call(*arrays, mask=mask)

    def gradients(*arrays):
        return jax.grad(lambda *a: jnp.sum(jnp.sin(call(*a))), (0, 1, 2))(*arrays)

    @jax.jit
    def transformed(arrays, tangents):
        out, tangent = jax.jvp(call, arrays, tangents)
        mapped = jax.vmap(lambda q, k, v, m: mechanism.call(q, k, v, mask=m))(*arrays, mask)
        gradient, second = jax.jvp(gradients, arrays, tangents)
        return out, tangent, mapped, gradient, second

    def inner(left, right):
        return sum(np.sum(np.asarray(a) * np.asarray(b)) for a, b in zip(left, right, strict=True))

    def moved(step):
        points = tuple(np.asarray(x) + step * np.asarray(t) for x, t in zip(arrays, tangents, strict=True))
        return np.asarray(transformed(points, tangents)[0])

    out, tangent, mapped, gradient, second = transformed(tuple(arrays), tangents)
    np.testing.assert_allclose(mapped, out, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(tangent, (moved(1e-5) - moved(-1e-5)) / 2e-5, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(inner([np.cos(out)], [tangent]), inner(gradient, tangents), rtol=1e-10)
    # The Hessian is symmetric: <u, H v> = <v, H u>.
    swapped = transformed(tuple(arrays), others)[-1]
    assert abs(inner(others, second)) > 1e-3
    np.testing.assert_allclose(inner(others, second), inner(tangents, swapped), rtol=1e-9)


@every
def test_exports_for_accelerators(mechanism):
    arrays = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs()]
    mask = jax.ShapeDtypeStruct((B, 1, T, S), bool)
    program = jax.jit(lambda q, k, v, mask: mechanism.call(q, k, v, mask=mask))
    exported = jax.export.export(program, platforms=("cuda", "tpu"))(*arrays, mask)
    assert exported.platforms == ("cuda", "tpu")
    assert exported.out_avals[0].shape == (B, T, N, V)
