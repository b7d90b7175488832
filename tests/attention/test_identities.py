"""What holds for every mechanism, written once. A new mechanism is tested by a line in `rows/`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.attention.mechanism import (
    Sizes,
    changed,
    directions,
    draw,
    evaluate,
    padding_mask,
    random_mask,
)
from tests.attention.rows import MECHANISMS


def those(claim):
    """Parametrise over the mechanisms that claim something."""
    return pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if claim(m)], ids=lambda m: m.name)


def proven(claim=lambda m: True):
    """Parametrise over those that the proofs about masks, batches and order are made with."""
    return those(lambda m: not m.lean and claim(m))


every = those(lambda m: True)

GARBAGE = [np.nan, np.inf, -np.inf, 1e9]


def inputs(mechanism, dtype=np.float32):
    return draw(*mechanism.sizes.arrays, dtype=dtype)


def options(mechanism, mask, bias=None):
    """What of these the mechanism takes."""
    given = {"mask": mechanism.narrow(mask)}
    return given | ({"bias": bias} if mechanism.bias and bias is not None else {})


def assert_same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)
        assert np.isfinite(a).all()


def test_names_are_unique():
    assert len({m.name for m in MECHANISMS}) == len(MECHANISMS)


@every
def test_equals_oracle_and_derivatives_agree(mechanism, x64):
    """A wrong formula, mask, bias or head in any; a wrong derivative; a batch axis that is not mapped."""
    *arrays, bias = draw(*mechanism.sizes.arrays, mechanism.sizes.scores, dtype=np.float64)
    mask, towards = random_mask(mechanism.sizes), directions(mechanism, 6)
    found = evaluate(mechanism, arrays, mask, bias)
    expected, _ = mechanism.expected(*arrays, mechanism.narrow(mask), bias if mechanism.bias else None)
    assert found.out.dtype == np.float64
    np.testing.assert_allclose(found.out, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.mapped, found.out, rtol=1e-12, atol=1e-14)

    # The output at a position that does not exist is nobody's business.
    form = draw(found.out.shape, dtype=np.float64, seed=3)[0]
    if mechanism.mask == "positions":
        form = form * mechanism.narrow(mask)[:, 0, 0, :, None, None]
    pulled = sum(np.sum(a * b) for a, b in zip(found.gradients, towards, strict=True))
    np.testing.assert_allclose(np.sum(form * found.tangent), pulled, rtol=1e-10)
    if mechanism.differentiable:
        primals = *arrays, bias

        def moved(step):
            *arrays, bias = (x + step * d for x, d in zip(primals, towards, strict=True))
            return evaluate(mechanism, arrays, mask, bias).out

        found_by_steps = (moved(1e-5) - moved(-1e-5)) / 2e-5
        np.testing.assert_allclose(found.tangent, found_by_steps, rtol=1e-5, atol=1e-7)


@those(lambda m: m.own_derivative)
def test_second_derivatives_are_symmetric(mechanism, x64):
    """A rule of differentiation that is right itself, and whose own derivative is not."""
    arrays, mask = tuple(inputs(mechanism, np.float64)), random_mask(mechanism.sizes)

    def gradients(*arrays):
        return jax.grad(lambda *a: jnp.sum(jnp.sin(mechanism.call(*a, mask=mask))), (0, 1, 2))(*arrays)

    @jax.jit
    def product(left, right):
        pairs = zip(left, jax.jvp(gradients, arrays, right)[1], strict=True)
        return sum(jnp.sum(a * b) for a, b in pairs)

    one, other = (directions(mechanism, seed)[:3] for seed in (6, 7))
    assert abs(product(one, other)) > 1e-3
    np.testing.assert_allclose(product(one, other), product(other, one), rtol=1e-9)


@proven()
def test_any_lengths(mechanism):
    """What goes wrong where a sequence ends inside a block, or at its edge."""
    arrays = inputs(mechanism, np.float64)
    for lengths in ([0, 1, 2], [3, 4, 5], [6, 7, 0]):
        mask = padding_mask(mechanism.sizes, lengths)
        out = evaluate(mechanism, arrays, mask).out
        expected = mechanism.expected(*arrays, mechanism.narrow(mask))[0]
        if mechanism.mask == "positions":
            shown = mask[:, 0, 0, :, None, None]
            out, expected = out * shown, expected * shown
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@proven(lambda m: not m.random)
def test_called_alone_unbatched_and_unmasked(mechanism):
    """What only the short way takes: no mask, no batch axis, one key head for each query head, float32."""
    sizes = mechanism.sizes._replace(B=1, K=mechanism.sizes.N)
    arrays = draw(*sizes.arrays)
    out = mechanism.call(*(jnp.asarray(x[0]) for x in arrays))
    assert out.dtype == np.float32
    expected = mechanism.expected(*arrays)[0][0]
    np.testing.assert_allclose(out, expected, rtol=mechanism.rtol, atol=mechanism.rtol)


@every
def test_bfloat16_is_as_good_as_rounding_allows(mechanism):
    """Scores or sums in half precision; and what goes wrong where all query heads share one key head."""
    arrays = draw(*mechanism.sizes._replace(K=1).arrays, dtype=jnp.bfloat16)
    mask = random_mask(mechanism.sizes)
    given = jax.tree.map(jnp.asarray, options(mechanism, mask))
    out = mechanism.call(*map(jnp.asarray, arrays), **given)
    assert out.dtype == jnp.bfloat16
    exact, weights = mechanism.expected(*arrays, mask=mechanism.narrow(mask))
    # The reference rounds what any dense form in bfloat16 must: the weights and the output.
    reference = mechanism.output(weights.astype(jnp.bfloat16).astype(float), arrays[2])
    reference = reference.astype(jnp.bfloat16).astype(float)
    error, bound = (np.abs(np.asarray(x, float) - exact).mean() for x in (out, reference))
    assert error <= 2 * bound


@proven()
def test_padding_is_unseen(mechanism):
    """A hidden key or value that reaches an output or a gradient, as 0 times NaN does."""
    query, key, value = inputs(mechanism)
    mask = padding_mask(mechanism.sizes, [4, 0, 7])
    shown = mask[:, 0, 0, :, None, None]

    def result(query, key, value):
        found = evaluate(mechanism, (query, key, value), mask)
        # An output at a position that does not exist is nobody's business.
        return [found.out * shown if mechanism.mask == "positions" else found.out, *found.gradients]

    clean = result(query, key, value)
    for garbage in GARBAGE:
        key, value = (np.where(shown, x, np.float32(garbage)) for x in (key, value))
        if mechanism.mask == "positions":
            query = np.where(shown, query, np.float32(garbage))
        assert_same(result(query, key, value), clean)
    for gradient in clean[2:4]:
        assert (np.where(shown, 0, gradient) == 0).all()


@proven(lambda m: m.mask == "any")
def test_hidden_from_some_is_unseen_by_them(mechanism):
    """A key that others see, and that spoils by way of them the gradient of those who do not."""
    # Key 3 is hidden from the queries 0, 2 and 4, and seen by 1 and 3.
    rows, query, *others = [0, 2, 4], *inputs(mechanism)
    mask = np.ones(mechanism.sizes.scores, bool)
    mask[:, :, rows, 3] = False
    clean = evaluate(mechanism, (query, *others), mask, rows=rows)
    sees = mechanism.seen(mask)[0, 0, :, 3]
    for garbage in GARBAGE:
        for spoil in ((True, False), (False, True), (True, True)):
            dirty = [changed(x, np.s_[:, 3], garbage) if s else x for x, s in zip(others, spoil, strict=True)]
            found = evaluate(mechanism, (query, *dirty), mask, rows=rows)
            assert_same([found.out[:, rows], *found.gradients], [clean.out[:, rows], *clean.gradients])
            if not np.isfinite(garbage):
                assert np.isnan(found.out[:, sees]).all()


@proven()
def test_nan_stays_in_its_head_and_batch_element(mechanism):
    """A NaN that is lost, or that spreads by a sum over heads or batch elements."""
    query, key, value = inputs(mechanism)
    clean = evaluate(mechanism, (query, key, value)).out
    dirty = evaluate(mechanism, (query, changed(key, (1, 2, 1), np.nan), value)).out
    spoilt = np.zeros(clean.shape, bool)
    spoilt[1, :, 2:] = True  # key head 1 is read by the query heads 2 and 3
    np.testing.assert_array_equal(dirty[~spoilt], clean[~spoilt])
    if mechanism.mask == "any":
        spoilt[1] &= mechanism.seen(np.ones(mechanism.sizes.scores, bool))[0, 0, :, 2, None, None]
        np.testing.assert_array_equal(np.isnan(dirty), spoilt)


@proven(lambda m: m.bias)
def test_minus_infinity_in_a_bias_is_a_mask(mechanism):
    """A bias of -inf that is added, and makes NaN of a row that sees nothing."""
    arrays, mask = inputs(mechanism), random_mask(mechanism.sizes)
    bias = np.where(mask, 0, -np.inf)
    clean, masked = evaluate(mechanism, arrays, bias=bias), evaluate(mechanism, arrays, mask)
    assert_same([clean.out, *clean.gradients], [masked.out, *masked.gradients])
    assert (clean.d_bias[~mask] == 0).all()
    # Hidden from every query, by bias in some heads and by mask in the others
    bias[:, ::2, :, 2], mask[:, 1::2, :, 2] = -np.inf, False
    query, *others = arrays
    garbled = [changed(x, np.s_[:, 2], np.nan) for x in others]
    dirty, clean = (evaluate(mechanism, (query, *x), mask, bias) for x in (garbled, others))
    assert_same([dirty.out, *dirty.gradients], [clean.out, *clean.gradients])


@proven(lambda m: m.mask == "any" or m.causal)
def test_causality(mechanism):
    """A query that sees one key too many, or the future by way of a sum or a maximum."""
    if mechanism.causal:
        ahead, mask = 0, None
    else:  # by a mask, which shows query t the keys up to t + 1
        ahead, mask = 1, np.tri(mechanism.sizes.T, mechanism.sizes.S, 1, dtype=bool)
    arrays = inputs(mechanism)
    for t in range(mechanism.sizes.T):
        clean = evaluate(mechanism, arrays, mask, rows=t)
        first = (t + 1, t + 1 + ahead, t + 1 + ahead)  # of the queries, keys and values after t
        for gradient, after in zip(clean[1:4], first, strict=True):
            assert (gradient[:, after:] == 0).all()
        for garbage in (1.0, np.nan):
            future = [changed(x, np.s_[:, f:], garbage) for x, f in zip(arrays, first, strict=True)]
            found = evaluate(mechanism, future, mask, rows=t)
            assert_same([found.out[:, : t + 1], *found.gradients], [clean.out[:, : t + 1], *clean.gradients])
    assert (clean.d_value != 0).any((2, 3)).any(1).all(), "the last query sees nothing"


@proven()
def test_batch_independence(mechanism):
    """A maximum, a mean or a sorting over the whole batch."""
    arrays, mask = inputs(mechanism), random_mask(mechanism.sizes)
    whole = evaluate(mechanism, arrays, mask)
    others = [changed(x, np.s_[1:], 7) for x in arrays]
    for a, b in zip(evaluate(mechanism, others, mask)[:5], whole[:5], strict=True):
        np.testing.assert_array_equal(a[0], b[0])


@proven(lambda m: m.bag_of_words)
def test_without_positions_a_bag_of_words(mechanism):
    """A dependence on where a key stands that nobody asked for."""
    query, key, value = inputs(mechanism)
    sizes, mask = mechanism.sizes, random_mask(mechanism.sizes)
    to, so = (np.random.default_rng(seed).permutation(n) for seed, n in ((4, sizes.T), (5, sizes.S)))
    mask = mechanism.seen(mask)
    out = evaluate(mechanism, (query, key, value), mask).out
    permuted = evaluate(mechanism, (query[:, to], key[:, so], value[:, so]), mask[:, :, to][..., so]).out
    np.testing.assert_allclose(permuted, out[:, to], rtol=1e-12, atol=1e-12)
    # With positions the order of the keys shows.
    (encoding,) = draw((1, sizes.S, 1, sizes.H), seed=8)
    first, second = (
        evaluate(mechanism, (query, k + encoding, v)).out
        for k, v in [(key, value), (key[:, so], value[:, so])]
    )
    assert np.abs(first - second).max() > 1e-2


@proven()
def test_fully_masked_rows(mechanism):
    """0 / 0 in the output or the gradient of a query that sees nothing."""
    arrays, sizes = inputs(mechanism), mechanism.sizes
    for mask in (random_mask(sizes), padding_mask(sizes, [4, 0, 7])):
        out, d_query, *d_others = evaluate(mechanism, arrays, mask)[:5]
        blind = np.moveaxis(~mechanism.seen(mask).any(-1), 1, 2)
        assert (out[blind] == 0).all()
        assert (d_query[blind] == 0).all()
        assert all(np.isfinite(d).all() for d in d_others)
    for values in (arrays, [np.full_like(x, np.nan) for x in arrays]):
        for result in evaluate(mechanism, values, np.zeros_like(mask))[:5]:
            assert (result == 0).all()


@proven()
def test_empty_and_single(mechanism):
    """Blocks, windows or maxima of nothing."""

    @jax.jit
    def evaluated(arrays, options):
        out, pull = jax.vjp(lambda *arrays: mechanism.call(*arrays, **options), *arrays)
        return out, *pull(out)

    for T, S in ([(0, 0)] if mechanism.square else [(0, 3), (3, 0)]) + [(1, 1)]:
        sizes = mechanism.fit(Sizes(B=2, T=T, S=S))
        arrays, mask = draw(*sizes.arrays), padding_mask(sizes, [0, S])
        out, *gradients = evaluated(arrays, options(mechanism, mask))
        assert out.shape == (*arrays[0].shape[:3], sizes.V)
        expected = mechanism.expected(*arrays, mechanism.narrow(mask))[0]
        np.testing.assert_allclose(out, expected, rtol=mechanism.rtol, atol=mechanism.rtol)
        assert all(np.isfinite(d).all() for d in gradients)


@those(lambda m: m.shift_invariant)
def test_shift_invariance(mechanism):
    """Powers of large numbers: a normaliser that does not take the maximum off."""
    arrays = inputs(mechanism)
    expected, *shifted = (evaluate(mechanism, arrays, bias=shift).out for shift in (0.0, -1e7, 1e7))
    for out in shifted:
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-8)


@those(lambda m: m.with_block_size)
def test_any_block_size(mechanism, x64):
    """What goes wrong at the edges of blocks: of 1, and of more than there is."""
    arrays, mask = tuple(inputs(mechanism, np.float64)), random_mask(mechanism.sizes)
    whole = evaluate(mechanism, arrays, mask)
    (form,), towards = draw(whole.out.shape, dtype=np.float64, seed=3), directions(mechanism, 6)[:3]

    @partial(jax.jit, static_argnums=0)
    def everything(size):
        call = partial(mechanism.with_block_size(size), mask=mechanism.narrow(mask))
        out, pull = jax.vjp(call, *arrays)
        return out, *pull(form), jax.jvp(call, arrays, towards)[1]

    small, large = everything(1), everything(mechanism.sizes.S + 5)
    for found, expected in ((small[:4], whole[:4]), (large[:4], whole[:4]), (small[4:], large[4:])):
        for a, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-12)


@those(lambda m: m.with_window)
def test_two_windows_give_two_results(mechanism):
    """A program kept for one window and used for another."""
    arrays = [jnp.asarray(x) for x in inputs(mechanism)]
    outs = [np.asarray(mechanism.with_window(window)(*arrays)) for window in ((1, 1), (2, 0), (1, 1))]
    assert np.abs(outs[0] - outs[1]).max() > 1e-2
    np.testing.assert_array_equal(outs[0], outs[2])


@every
def test_exports_for_accelerators(mechanism):
    """An operation that one of them lacks."""
    arrays = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs(mechanism)]
    given = options(mechanism, padding_mask(mechanism.sizes, [4, 0, 7]))
    shapes = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in given.items()}
    program = jax.jit(lambda arrays, given: mechanism.call(*arrays, **given))
    exported = jax.export.export(program, platforms=("cuda", "tpu"))(arrays, shapes)
    assert exported.platforms == ("cuda", "tpu")
    assert exported.out_avals[0].shape == (*arrays[0].shape[:3], mechanism.sizes.V)


def wrong_arguments():
    """One for each of the shared checks, which test_contract.py tries with more; and words of the message."""
    sizes = Sizes(T=7)
    q, k, v = draw(*sizes.arrays)
    small = np.ones((3, 1, 1, 6), bool)
    return {
        "heads": ((q[:, :, :3], k, v), {}, [q[:, :, :3].shape, k.shape]),
        "number of values": ((q, k, v[:, :4]), {}, [k.shape, v[:, :4].shape]),
        "dtypes": ((q, k.astype(jnp.bfloat16), v), {}, ["float32", "bfloat16"]),
        "size of the mask": ((q, k, v), {"mask": small}, [small.shape, sizes.scores]),
        "dtype of the mask": ((q, k, v), {"mask": np.ones((3, 1, 1, 7), np.float32)}, ["float32"]),
    }


@proven()
def test_wrong_arguments_are_refused(mechanism, untyped):
    """A check that was left out."""
    cases = wrong_arguments()
    if mechanism.mask != "any":
        mask = np.tri(7, dtype=bool)[None, None]
        cases["a mask that varies over queries"] = (
            draw(*Sizes(T=7).arrays),
            {"mask": mask},
            [mask.shape, "quer"],
        )
    for arrays, given, words in cases.values():
        with pytest.raises((ValueError, TypeError)) as error:
            mechanism.call(*arrays, **given)
        assert "\n" not in str(error.value)
        for word in words:
            assert str(word) in str(error.value), str(error.value)
