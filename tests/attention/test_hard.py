import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attention
from attention import hard, masks
from tests.attention.mechanism import Sizes, changed, draw

KEY = jax.random.key(0)


def glimpse(query, key, value, *, sample_key=KEY, **options):
    _, weights = attention.attend(query, key, value, return_weights=True, **options)
    return hard.sample(weights, value, sample_key=sample_key)


def test_by_hand():
    weights = jnp.array([[[0.25, 0.0, 0.75], [0.0, 0.0, 0.0]]])
    value = jnp.array([[[1.0, 2.0]], [[np.nan, np.inf]], [[5.0, 6.0]]])
    seen = hard.choose(weights, value, jnp.array([[2, 0]]))
    assert seen.context.tolist() == [[[5.0, 6.0]], [[0.0, 0.0]]]
    assert seen.position.tolist() == [[2, -1]]
    np.testing.assert_allclose(seen.log_probability, [[np.log(0.75), 0.0]], rtol=1e-6)
    np.testing.assert_allclose(seen.entropy, [[-0.25 * np.log(0.25) - 0.75 * np.log(0.75), 0]], rtol=1e-6)
    # A hidden position, none, and one past the end
    for nowhere in (1, -1, 3):
        seen = hard.choose(weights, value, np.full((1, 2), nowhere))
        assert seen.position.tolist() == [[-1, -1]]
        assert not seen.context.any()
        assert not seen.log_probability.any()


def test_head_n_looks_at_value_head_n_over_group():
    weights = np.full((6, 2, 3), 1 / 3)
    value = np.arange(9.0).reshape(3, 3, 1)  # 3 s + m for position s, head m
    context = hard.choose(weights, value, jnp.array([[0, 2]] * 6)).context
    assert context[..., 0].tolist() == [[0, 0, 1, 1, 2, 2], [6, 6, 7, 7, 8, 8]]


def test_draws_are_as_frequent_as_their_weights():
    weights = np.broadcast_to(jnp.array([0.1, 0.0, 0.6, 0.3]), (1, 20_000, 4))
    position = hard.sample(weights, np.ones((4, 1, 1)), sample_key=KEY).position
    frequency = np.bincount(np.asarray(position).ravel(), minlength=4) / 20_000
    assert frequency[1] == 0
    # Five standard deviations of a frequency of 20,000 draws are 0.018.
    np.testing.assert_allclose(frequency, [0.1, 0, 0.6, 0.3], atol=0.018)


def test_the_mean_context_is_soft_attention():
    query, key, value = draw((1, 2, 6), (4, 1, 6), (4, 1, 3))
    draws = jax.vmap(lambda k: glimpse(query, key, value, sample_key=k).context)(jax.random.split(KEY, 4000))
    soft = attention.attend(query, key, value)
    np.testing.assert_allclose(draws.mean(0), soft, atol=0.12)
    one, other = draws[0], glimpse(query, key, value, sample_key=jax.random.split(KEY, 4000)[0]).context
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("T, S", [(1, 1), (1, 4), (2, 3)])
def test_the_mean_of_the_estimator_is_the_exact_gradient(T, S, x64):
    arrays = tuple(draw((T, 1, 3), (S, 1, 3), (S, 1, 2), dtype=jnp.float64))
    baseline, entropy_weight = jnp.asarray(-0.7), 0.3

    def likelihood(context):
        # Anything that mixes the rows: log p(y | s) is no sum over them.
        return -jnp.log1p(jnp.exp(jnp.sum(context) + jnp.prod(context[:, 0, 0])))

    def look(position, arrays):
        query, key, value = arrays
        _, weights = attention.attend(query, key, value, return_weights=True)
        seen = hard.choose(weights, value, position)
        return likelihood(seen.context), seen.log_probability.sum(), seen.entropy.sum(), weights

    positions = [jnp.array([p]) for p in itertools.product(range(S), repeat=T)]

    def bound(arrays):
        total = 0.0
        for position in positions:
            log_likelihood, *_, weights = look(position, arrays)
            probability = jnp.prod(weights[0, jnp.arange(T), position[0]])
            total += probability * log_likelihood
        entropy = -jnp.sum(weights * jnp.log(weights))
        return -(total + entropy_weight * entropy)

    def estimator(position, arrays):
        *terms, _ = look(position, arrays)
        return hard.variational_loss(*terms, baseline, entropy_weight=entropy_weight)

    @jax.jit
    def mean_of_estimator(arrays):
        mean = 0.0, jax.tree.map(jnp.zeros_like, arrays)
        for position in positions:
            probability = jnp.exp(look(position, arrays)[1])
            found = jax.value_and_grad(partial(estimator, position))(arrays)
            mean = jax.tree.map(lambda m, x, p=probability: m + p * x, mean, found)
        return mean

    mean_value, mean_gradient = mean_of_estimator(arrays)
    value, gradient = jax.jit(jax.value_and_grad(bound))(arrays)
    np.testing.assert_allclose(mean_value, value, rtol=1e-12)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12), mean_gradient, gradient)
    if S > 1:
        assert np.abs(gradient[0]).max() > 1e-3


def test_the_baseline_changes_no_mean_but_the_variance():
    weights, log_likelihood = jnp.array([0.2, 0.8]), jnp.array([-5.0, -4.0])

    def gradients(baseline):
        def loss(logits, s):
            log_probability = jax.nn.log_softmax(logits)[s]
            return hard.variational_loss(log_likelihood[s], log_probability, np.zeros(()), baseline)

        return np.array([jax.grad(loss)(jnp.log(weights), s) for s in (0, 1)])

    plain, better = gradients(np.zeros(())), gradients(jnp.asarray(-4.2))
    means = [np.asarray(weights) @ g for g in (plain, better)]
    np.testing.assert_allclose(*means, atol=1e-5)
    # d log p(s) of the two draws is (0.8, -0.8) and (-0.2, 0.2), times the advantage.
    np.testing.assert_allclose(better, [[0.64, -0.64], [0.04, -0.04]], atol=1e-5)
    spread = [np.asarray(weights) @ (g - m) ** 2 for g, m in zip((plain, better), means, strict=True)]
    assert (spread[1] < 0.1 * spread[0]).all()


def test_reward_weight_and_value():
    terms = jnp.array([-2.0]), jnp.array([-1.0]), jnp.array([0.5])
    loss = partial(hard.variational_loss, baseline=jnp.asarray(-3.0), reward_weight=2.0, entropy_weight=0.1)
    assert loss(*terms).tolist() == pytest.approx([2.0 - 0.05])
    gradients = jax.grad(lambda *terms: loss(*terms).sum(), (0, 1, 2))(*terms)
    # The reward above the baseline is 1; no gradient runs through it.
    assert [g.item() for g in gradients] == pytest.approx([-1.0, -2.0, -0.1])


def test_the_baseline_is_a_moving_average():
    baseline = hard.moving_baseline(jnp.asarray(-3.0), jnp.array([-1.0, -2.0]))
    assert baseline.item() == pytest.approx(0.9 * -3.0 + 0.1 * -1.5)
    assert hard.moving_baseline(baseline, np.zeros(0)) == baseline
    assert jax.grad(lambda x: hard.moving_baseline(baseline, x, decay=0.5))(np.ones(2)).tolist() == [0, 0]


def test_doubly_stochastic():
    weights = jnp.array([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])  # the keys get 1.5, 0.5 and 0
    assert hard.doubly_stochastic(weights).tolist() == [0.25 + 0.25 + 1]
    mask = jnp.array([[[True, True, False]]])
    assert hard.doubly_stochastic(weights, mask=mask).tolist() == [0.5]
    assert hard.doubly_stochastic(weights, mask=mask, target=2.0).tolist() == [0.25 + 2.25]
    assert hard.doubly_stochastic(np.eye(3)[None]).tolist() == [0]


SIZES = Sizes()


@jax.jit
def everything(query, key, value, mask):
    """A glimpse, and the gradients of all of it."""

    def loss(query, key, value):
        seen = glimpse(query, key, value, mask=mask)
        return jnp.sum(jnp.sin(seen.context)) + jnp.sum(seen.log_probability * seen.entropy), seen

    gradients, seen = jax.grad(loss, (0, 1, 2), has_aux=True)(query, key, value)
    return [*seen, *gradients]


def test_padding_is_unseen_and_empty_rows_see_nothing():
    query, key, value = draw(*SIZES.arrays)
    mask = masks.padding(jnp.array([4, 0, 7]), SIZES.S)
    shown = mask[:, 0, 0, :, None, None]
    clean = everything(query, key, value, mask)
    for garbage in (np.nan, np.inf, 1e9):
        dirty = everything(query, *(jnp.where(shown, x, garbage) for x in (key, value)), mask)
        for a, e in zip(dirty, clean, strict=True):
            np.testing.assert_array_equal(a, e)
            assert np.isfinite(a).all()
    context, log_probability, entropy, position, *gradients = clean
    assert (position[1] == -1).all()
    assert (position[0] < 4).all()
    for nothing in (context[1], log_probability[1], entropy[1], *(g[1] for g in gradients)):
        assert (nothing == 0).all()


def test_nan_shows_where_it_is_chosen():
    query, key, value = draw(*SIZES.arrays)
    clean = glimpse(query, key, value)
    dirty = glimpse(query, key, changed(value, np.s_[:, 2], np.nan))
    chosen = np.asarray(jnp.swapaxes(clean.position == 2, -1, -2))
    assert chosen.any()
    np.testing.assert_array_equal(np.isnan(dirty.context).all(-1), chosen)
    np.testing.assert_array_equal(dirty.context[~chosen], clean.context[~chosen])
    spoilt = glimpse(changed(query, np.s_[0, 1, 2], np.nan), key, value)
    for result in (spoilt.context[0, 1, 2], spoilt.log_probability[0, 2, 1], spoilt.entropy[0, 2, 1]):
        assert np.isnan(result).all()
    assert np.isfinite(spoilt.context[0, 0]).all()


def test_a_sure_row_has_finite_gradients():
    weights = jax.nn.softmax(jnp.array([[[0.0, -1e4, 1e4]]]))
    assert weights.tolist() == [[[0, 0, 1]]]

    def loss(weights):
        seen = hard.sample(weights, np.ones((3, 1, 1)), sample_key=KEY)
        return (seen.log_probability + seen.entropy).sum()

    assert np.isfinite(jax.grad(loss)(weights)).all()
    assert loss(weights) == 0


def test_batch_independence_vmap_and_eager():
    query, key, value = map(jnp.asarray, draw(*SIZES.arrays))
    whole = glimpse(query, key, value)
    others = glimpse(*(changed(x, np.s_[1:], 7.0) for x in (query, key, value)))
    for a, b in zip(others, whole, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    # Positions drawn for the whole batch, looked at one by one
    _, weights = attention.attend(query, key, value, return_weights=True)
    mapped = jax.vmap(hard.choose)(weights, value, whole.position)
    with jax.disable_jit():
        eager = hard.choose(weights, value, whole.position)
    for a, b, c in zip(mapped, whole, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(c, b, rtol=1e-6)


def test_equals_loops_in_float64(x64):
    query, key, value = draw(*SIZES.arrays, dtype=jnp.float64)
    _, weights = attention.attend(query, key, value, return_weights=True)
    seen = hard.sample(weights, value, sample_key=KEY)
    B, T, _, N, K, _, _ = SIZES
    for b, n, t in np.ndindex(B, N, T):
        s, row = int(seen.position[b, n, t]), np.asarray(weights)[b, n, t]
        np.testing.assert_array_equal(seen.context[b, t, n], value[b, s, n // (N // K)])
        np.testing.assert_allclose(seen.log_probability[b, n, t], np.log(row[s]), rtol=1e-12)
        np.testing.assert_allclose(seen.entropy[b, n, t], -sum(w * np.log(w) for w in row), rtol=1e-12)


def test_hessian_vector_product_is_symmetric(x64):
    arrays = tuple(draw((2, 1, 3), (4, 1, 3), (4, 1, 2), dtype=jnp.float64))
    one, other = (tuple(draw(*(x.shape for x in arrays), dtype=jnp.float64, seed=s)) for s in (6, 7))

    def gradients(*arrays):
        def loss(*arrays):
            seen = glimpse(*arrays)
            return jnp.sum(jnp.sin(seen.context)) + jnp.sum(seen.log_probability * seen.entropy)

        return jax.grad(loss, (0, 1, 2))(*arrays)

    @jax.jit
    def product(left, right):
        pairs = zip(left, jax.jvp(gradients, arrays, right)[1], strict=True)
        return sum(jnp.sum(a * b) for a, b in pairs)

    assert abs(product(one, other)) > 1e-3
    np.testing.assert_allclose(product(one, other), product(other, one), rtol=1e-9)


def test_half_precision_loses_nothing_and_sizes_of_zero_work():
    query, key, value = draw(*SIZES.arrays, dtype=jnp.bfloat16)
    seen = glimpse(query, key, value)
    assert seen.context.dtype == jnp.bfloat16
    assert seen.log_probability.dtype == seen.entropy.dtype == jnp.float32
    assert set(np.ravel(seen.context)) <= set(np.ravel(value))
    for T, S in ((0, 3), (3, 0)):
        seen = glimpse(*draw(*Sizes(T=T, S=S).arrays))
        assert seen.context.shape == (3, T, 4, 8)
        assert not seen.context.any()


def test_exports_for_accelerators():
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in draw(*SIZES.arrays)]
    exported = jax.export.export(jax.jit(glimpse), platforms=("cuda", "tpu"))(*shapes)
    assert exported.out_avals[0].shape == (3, 5, 4, 8)


def test_what_does_not_fit_is_refused(untyped):
    weights, value = np.ones((3, 4, 5, 7)), np.ones((3, 7, 2, 8))
    wrong = [(weights[:, :3], value), (weights[:2], value), (weights[..., :6], value), (weights[0], value)]
    for w, v in wrong:
        with pytest.raises(ValueError) as error:
            hard.sample(w, v, sample_key=KEY)
        assert str(w.shape) in str(error.value)
        assert str(v.shape) in str(error.value)
    with pytest.raises(ValueError, match=r"position .*\(3, 4, 5\).*float32 \(3, 4, 5\)"):
        hard.choose(weights, value, weights[..., 0])
    with pytest.raises(TypeError, match="int32"):
        hard.sample(weights.astype(int), value, sample_key=KEY)
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\).*scalar"):
        hard.variational_loss(np.ones(3), np.ones(2), np.ones(3), np.zeros(()))
    with pytest.raises(TypeError, match="mask must be boolean"):
        hard.doubly_stochastic(weights, mask=weights)
