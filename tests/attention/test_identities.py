"""What holds for every mechanism, written once. A new mechanism is tested by a line in `rows/`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import masks, positions
from tests.attention.mechanism import Sizes, draw, evaluate, padding_mask, random_mask
from tests.attention.rows import MECHANISMS


def those(claim):
    """Parametrise over the mechanisms that claim something."""
    return pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if claim(m)], ids=lambda m: m.name)


every = those(lambda m: True)
masked = those(lambda m: m.mask != "none")
masked_by_query = those(lambda m: m.mask == "any")
biased = those(lambda m: m.bias)

GARBAGE = [np.nan, np.inf, -np.inf, 1e9]


def inputs(mechanism, dtype=jnp.float32):
    return draw(*mechanism.sizes.arrays, dtype=dtype)


def options(mechanism, mask, bias=None):
    """What of these the mechanism takes."""
    mask = mechanism.narrow(mask)
    given = {} if mask is None else {"mask": jnp.asarray(mask)}
    return given | ({"bias": bias} if mechanism.bias and bias is not None else {})


def assert_same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)
        assert np.isfinite(a).all()


def test_names_are_unique():
    assert len({m.name for m in MECHANISMS}) == len(MECHANISMS)


@masked
def test_padding_is_unseen(mechanism):
    query, key, value = inputs(mechanism)
    mask = padding_mask(mechanism.sizes, [4, 0, 7])
    shown = mask[:, 0, 0, :, None, None]

    def result(query, key, value):
        out, *gradients = evaluate(mechanism, (query, key, value), mask)
        # An output at a position that does not exist is nobody's business.
        return [out * shown if mechanism.mask == "positions" else out, *gradients]

    clean = result(query, key, value)
    for garbage in GARBAGE:
        key, value = (np.where(shown, x, np.float32(garbage)) for x in (key, value))
        if mechanism.mask == "positions":
            query = np.where(shown, query, np.float32(garbage))
        assert_same(result(query, key, value), clean)
    for gradient in clean[2:4]:
        assert (np.where(shown, 0, gradient) == 0).all()


@masked_by_query
def test_hidden_from_some_is_unseen_by_them(mechanism):
    # Key 3 is hidden from the queries 0, 2 and 4, and seen by 1 and 3.
    rows, query, *others = [0, 2, 4], *inputs(mechanism)
    mask = np.ones(mechanism.sizes.scores, bool)
    mask[:, :, rows, 3] = False
    clean = evaluate(mechanism, (query, *others), mask, rows=rows)
    sees = mechanism.seen(mask)[0, 0, :, 3]
    for garbage in GARBAGE:
        for spoil in ((True, False), (False, True), (True, True)):
            dirty = [x.at[:, 3].set(garbage) if s else x for x, s in zip(others, spoil, strict=True)]
            out, *gradients = evaluate(mechanism, (query, *dirty), mask, rows=rows)
            assert_same([out[:, rows], *gradients], [clean[0][:, rows], *clean[1:]])
            if not np.isfinite(garbage):
                assert np.isnan(out[:, sees]).all()


@every
def test_nan_stays_in_its_head_and_batch_element(mechanism):
    query, key, value = inputs(mechanism)
    clean = evaluate(mechanism, (query, key, value))[0]
    dirty = evaluate(mechanism, (query, key.at[1, 2, 1].set(jnp.nan), value))[0]
    spoilt = np.zeros(clean.shape, bool)
    spoilt[1, :, 2:] = True  # key head 1 is read by the query heads 2 and 3
    np.testing.assert_array_equal(dirty[~spoilt], clean[~spoilt])
    if mechanism.mask == "any":
        spoilt[1] &= mechanism.seen(np.ones(mechanism.sizes.scores, bool))[0, 0, :, 2, None, None]
        np.testing.assert_array_equal(np.isnan(dirty), spoilt)


@biased
def test_minus_infinity_in_a_bias_is_a_mask(mechanism):
    arrays, mask = inputs(mechanism), random_mask(mechanism.sizes)
    bias = np.where(mask, np.float32(0), -np.inf)
    clean = evaluate(mechanism, arrays, bias=bias)
    assert_same(clean, evaluate(mechanism, arrays, mask))
    assert (clean[-1][~mask] == 0).all()
    # Hidden from every query, by bias in some heads and by mask in the others
    bias[:, ::2, :, 2], mask[:, 1::2, :, 2] = -np.inf, False
    query, *others = arrays
    garbled = [x.at[:, 2].set(jnp.nan) for x in others]
    assert_same(*(evaluate(mechanism, (query, *x), mask, bias) for x in (garbled, others)))


@those(lambda m: m.mask == "any" or m.causal)
def test_causality(mechanism):
    if mechanism.causal:
        ahead, arrays, run = 0, draw(*mechanism.sizes._replace(T=7).arrays), causal_program(mechanism)
    else:  # by a mask, which shows query t the keys up to t + 1
        mask = masks.causal(mechanism.sizes.T, mechanism.sizes.S, 1)
        ahead, arrays, run = 1, inputs(mechanism), partial(evaluate, mechanism, mask=mask)
    for t in range(arrays[0].shape[1]):
        clean = run(arrays, rows=t)
        first = (t + 1, t + 1 + ahead, t + 1 + ahead)  # of the queries, keys and values after t
        for gradient, after in zip(clean[1:4], first, strict=True):
            assert (gradient[:, after:] == 0).all()
        for garbage in (1.0, np.nan):
            future = [x.at[:, after:].set(garbage) for x, after in zip(arrays, first, strict=True)]
            out, *gradients = run(future, rows=t)
            assert_same([out[:, : t + 1], *gradients], [clean[0][:, : t + 1], *clean[1:]])
    assert (clean[3] != 0).any((2, 3)).any(1).all(), "the last query sees nothing"


def causal_program(mechanism):
    """What `evaluate` gives, of the causal form."""

    @jax.jit
    def output_and_gradients(form, *arrays):
        def loss(*arrays):
            out = mechanism.causal(*arrays)
            return jnp.sum(out * form), out

        gradients, out = jax.grad(loss, (0, 1, 2), has_aux=True)(*arrays)
        return out, *gradients

    def run(arrays, rows):
        form = np.zeros((*arrays[0].shape[:3], mechanism.sizes.V), np.float32)
        form[:, rows] = np.random.default_rng(3).normal(size=form[:, rows].shape)
        return [np.asarray(x) for x in output_and_gradients(form, *arrays)]

    return run


@every
def test_batch_independence(mechanism):
    arrays, mask = inputs(mechanism), random_mask(mechanism.sizes)
    whole = evaluate(mechanism, arrays, mask)
    others = [x.at[1:].set(np.float32(7)) for x in arrays]
    for a, b in zip(evaluate(mechanism, others, mask), whole, strict=True):
        np.testing.assert_array_equal(a[0], b[0])


@those(lambda m: not m.random)
def test_called_alone_and_unbatched_equals_inside_a_program_and_batched(mechanism):
    arrays, mask = inputs(mechanism), random_mask(mechanism.sizes)
    whole = evaluate(mechanism, arrays, mask)[0]
    given = {name: x[0] for name, x in options(mechanism, mask).items()}
    alone = mechanism.call(*(x[0] for x in arrays), **given)
    np.testing.assert_allclose(whole[0], alone, rtol=mechanism.rtol, atol=mechanism.rtol)


@those(lambda m: m.bag_of_words)
def test_without_positions_a_bag_of_words(mechanism):
    query, key, value = inputs(mechanism)
    sizes, mask = mechanism.sizes, random_mask(mechanism.sizes)
    to, so = (np.random.default_rng(seed).permutation(n) for seed, n in ((4, sizes.T), (5, sizes.S)))
    mask = mechanism.seen(mask)
    out = evaluate(mechanism, (query, key, value), mask)[0]
    permuted = evaluate(mechanism, (query[:, to], key[:, so], value[:, so]), mask[:, :, to][..., so])[0]
    np.testing.assert_allclose(permuted, out[:, to], rtol=mechanism.rtol, atol=mechanism.rtol)
    # With positions the order of the keys shows.
    first, second = (
        evaluate(mechanism, (query, positions.rotary(k, jnp.arange(sizes.S)), v))[0]
        for k, v in [(key, value), (key[:, so], value[:, so])]
    )
    assert np.abs(first - second).max() > 1e-2


@masked
def test_fully_masked_rows(mechanism):
    arrays, sizes = inputs(mechanism), mechanism.sizes
    for mask in (random_mask(sizes), padding_mask(sizes, [4, 0, 7])):
        out, d_query, *d_others = evaluate(mechanism, arrays, mask)
        blind = np.moveaxis(~mechanism.seen(mask).any(-1), 1, 2)
        assert (out[blind] == 0).all()
        assert (d_query[blind] == 0).all()
        assert all(np.isfinite(d).all() for d in d_others)
    for values in (arrays, [np.full_like(x, np.nan) for x in arrays]):
        for result in evaluate(mechanism, values, np.zeros_like(mask)):
            assert (result == 0).all()


@every
def test_empty_and_single(mechanism):
    lengths = [(0, 0)] if mechanism.square else [(0, 3), (3, 0)]
    cases = [(mechanism.fit(Sizes(T=T, S=S)), True) for T, S in lengths]
    cases += [(mechanism.fit(Sizes(T=1, S=1)), shown) for shown in (True, False)]
    given = [
        (draw(*sizes.arrays), options(mechanism, jnp.full(sizes.scores, shown))) for sizes, shown in cases
    ]

    def evaluated(arrays, options):
        out, pull = jax.vjp(lambda *arrays: mechanism.call(*arrays, **options), *arrays)
        return out, *pull(out)

    program = jax.jit(lambda given: [evaluated(*case) for case in given])
    for (sizes, shown), (arrays, _), (out, *gradients) in zip(cases, given, program(given), strict=True):
        assert out.shape == (*arrays[0].shape[:3], sizes.V)
        expected = mechanism.expected(*arrays, mechanism.narrow(np.full(sizes.scores, shown)))[0]
        np.testing.assert_allclose(out, expected, rtol=mechanism.rtol, atol=mechanism.rtol)
        assert all(np.isfinite(d).all() for d in gradients)


@every
def test_equals_oracle_in_float64(mechanism, x64):
    # Grouped heads with mask and bias, one for each without; one key head for all is in the next test.
    mask = random_mask(mechanism.sizes)
    for heads, shown in ((2, True), (4, False)):
        sizes = mechanism.sizes._replace(K=heads)
        *arrays, bias = draw(*sizes.arrays, (1, *sizes.scores[1:]), dtype=jnp.float64)
        given = options(mechanism, mask, bias) if shown else {}
        out = jax.jit(mechanism.call)(*arrays, **given)
        assert out.dtype == jnp.float64
        expected = mechanism.expected(*arrays, **given)[0]
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@every
@settings(max_examples=8, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_any_lengths(mechanism, data):
    sizes = mechanism.fit(Sizes(2, 4, 9, 2, 1, 4, 3))
    lengths = data.draw(st.lists(st.integers(0, sizes.S), min_size=sizes.B, max_size=sizes.B))
    mask = padding_mask(sizes, lengths)
    arrays = draw(*sizes.arrays, seed=data.draw(st.integers(0, 99)))
    with jax.enable_x64(True):
        arrays = [x.astype(jnp.float64) for x in arrays]
        out = np.asarray(mechanism.call(*arrays, **options(mechanism, mask)))
        expected = mechanism.expected(*arrays, mask=mechanism.narrow(mask))[0]
    if mechanism.mask == "positions":
        shown = mask[:, 0, 0, :, None, None]
        out, expected = out * shown, expected * shown
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@every
def test_bfloat16_is_as_good_as_rounding_allows(mechanism):
    arrays, mask = inputs(mechanism, jnp.bfloat16), random_mask(mechanism.sizes)
    out = mechanism.call(*arrays, **options(mechanism, mask))
    assert out.dtype == jnp.bfloat16
    exact, weights = mechanism.expected(*arrays, mask=mechanism.narrow(mask))
    # The reference rounds what any dense form in bfloat16 must: the weights and the output.
    reference = mechanism.output(weights.astype(jnp.bfloat16).astype(float), arrays[2])
    reference = reference.astype(jnp.bfloat16).astype(float)
    error, bound = (np.abs(np.asarray(x, float) - exact).mean() for x in (out, reference))
    assert error <= 2 * bound


@those(lambda m: m.shift_invariant)
def test_shift_invariance(mechanism, x64):
    arrays = inputs(mechanism, jnp.float64)
    outs = [mechanism.call(*arrays, bias=jnp.full((1, 1, 1, 1), shift)) for shift in (0.0, -1e7, 1e7)]
    for shifted in outs[1:]:
        np.testing.assert_allclose(shifted, outs[0], rtol=1e-6, atol=1e-8)


@those(lambda m: m.with_block_size)
def test_any_block_size(mechanism, x64):
    arrays, mask = inputs(mechanism, jnp.float64), random_mask(mechanism.sizes)
    tangents = tuple(draw(*(x.shape for x in arrays), dtype=jnp.float64, seed=6))
    given = options(mechanism, mask)

    def everything(call):
        def loss(*arrays):
            out = call(*arrays, **given)
            return jnp.sum(jnp.sin(out)), out

        gradients, out = jax.grad(loss, (0, 1, 2), has_aux=True)(*arrays)
        return out, *gradients, jax.jvp(lambda *a: call(*a, **given), tuple(arrays), tangents)[1]

    S = mechanism.sizes.S
    calls = [
        mechanism.call,
        *(mechanism.with_block_size(size) for size in (1, 3, S + 5)),
    ]
    expected, *found = jax.jit(lambda: [everything(call) for call in calls])()
    for results in found:
        for a, e in zip(results, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-12)


@those(lambda m: m.with_window)
def test_two_windows_give_two_results(mechanism):
    arrays = inputs(mechanism)
    outs = [np.asarray(mechanism.with_window(window)(*arrays)) for window in ((1, 1), (2, 0), (1, 1))]
    assert np.abs(outs[0] - outs[1]).max() > 1e-2
    np.testing.assert_array_equal(outs[0], outs[2])


@every
def test_transforms_agree(mechanism, x64):
    arrays, mask = inputs(mechanism, jnp.float64), random_mask(mechanism.sizes)
    tangents, others = (tuple(draw(*(x.shape for x in arrays), dtype=jnp.float64, seed=s)) for s in (6, 7))
    given = options(mechanism, mask)

    def call(*arrays):
        return mechanism.call(*arrays, **given)

    def gradients(*arrays):
        return jax.grad(lambda *a: jnp.sum(jnp.sin(call(*a))), (0, 1, 2))(*arrays)

    @jax.jit
    def transformed(arrays, tangents):
        out, tangent = jax.jvp(call, arrays, tangents)
        mapped = jax.vmap(lambda arrays, given: mechanism.call(*arrays, **given))(arrays, given)
        gradient, second = jax.jvp(gradients, arrays, tangents)
        return out, tangent, mapped, gradient, second

    def inner(left, right):
        return sum(np.sum(np.asarray(a) * np.asarray(b)) for a, b in zip(left, right, strict=True))

    def moved(step):
        points = tuple(np.asarray(x) + step * np.asarray(t) for x, t in zip(arrays, tangents, strict=True))
        return np.asarray(transformed(points, tangents)[0])

    out, tangent, mapped, gradient, second = transformed(tuple(arrays), tangents)
    if not mechanism.random:
        np.testing.assert_allclose(mapped, out, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(inner([np.cos(out)], [tangent]), inner(gradient, tangents), rtol=1e-10)
    if mechanism.differentiable:
        np.testing.assert_allclose(tangent, (moved(1e-5) - moved(-1e-5)) / 2e-5, rtol=1e-5, atol=1e-7)
    # The Hessian is symmetric: <u, H v> = <v, H u>.
    swapped = transformed(tuple(arrays), others)[-1]
    assert abs(inner(others, second)) > 1e-3
    if mechanism.differentiable:
        np.testing.assert_allclose(inner(others, second), inner(tangents, swapped), rtol=1e-9)


@every
def test_exports_for_accelerators(mechanism):
    arrays = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs(mechanism)]
    given = options(mechanism, padding_mask(mechanism.sizes, [4, 0, 7]))
    shapes = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in given.items()}
    program = jax.jit(lambda arrays, given: mechanism.call(*arrays, **given))
    exported = jax.export.export(program, platforms=("cuda", "tpu"))(arrays, shapes)
    assert exported.platforms == ("cuda", "tpu")
    assert exported.out_avals[0].shape == (*arrays[0].shape[:3], mechanism.sizes.V)


def wrong_inputs():
    """What no mechanism takes, each with a word of the message."""
    sizes = Sizes(T=7)
    q, k, v = (jnp.zeros(shape) for shape in sizes.arrays)
    return {
        "batch of the key": ((q, k[:2], v[:2]), {}, [q.shape, k[:2].shape]),
        "batch of the value": ((q, k, v[:2]), {}, [k.shape, v[:2].shape]),
        "number of values": ((q, k, v[:, :4]), {}, [k.shape, v[:, :4].shape]),
        "heads": ((q[:, :, :3], k, v), {}, [q[:, :, :3].shape, k.shape]),
        "rank": ((q, k[0], v[0]), {}, [q.shape, k[0].shape]),
        "integers": ((q.astype(int), k.astype(int), v.astype(int)), {}, ["int32"]),
        "dtypes": ((q, k.astype(jnp.bfloat16), v), {}, ["float32", "bfloat16"]),
    }


def wrong_masks():
    scores = Sizes(T=7).scores
    return {
        "rank": (jnp.ones((3, 7), bool), [(3, 7), scores]),
        "size": (jnp.ones((3, 1, 1, 6), bool), [(3, 1, 1, 6), scores]),
        "dtype": (jnp.ones((3, 1, 1, 7)), ["float32", (3, 1, 1, 7)]),
    }


@every
@pytest.mark.parametrize("wrong", wrong_inputs())
def test_wrong_inputs_are_refused(mechanism, wrong, untyped):
    arrays, given, words = wrong_inputs()[wrong]
    assert_refused(mechanism, arrays, given, words)


@masked
@pytest.mark.parametrize("wrong", wrong_masks())
def test_wrong_masks_are_refused(mechanism, wrong, untyped):
    mask, words = wrong_masks()[wrong]
    assert_refused(mechanism, draw(*Sizes(T=7).arrays), {"mask": mask}, words)


@those(lambda m: m.mask in ("keys", "positions"))
def test_a_mask_that_varies_over_queries_is_refused_by_name(mechanism, untyped):
    mask = masks.causal(7)
    assert_refused(mechanism, draw(*Sizes(T=7).arrays), {"mask": mask}, [mask.shape, "quer"])


def assert_refused(mechanism, arrays, given, words):
    with pytest.raises((ValueError, TypeError)) as error:
        mechanism.call(*arrays, **given)
    assert "\n" not in str(error.value)
    for word in words:
        assert str(word) in str(error.value), str(error.value)
