import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import attend, dot_product_attention, masks, normalizers, scores
from tests.attention import oracle
from tests.attention.mechanism import changed

B, T, S, N, K, H, V = 3, 5, 7, 4, 2, 6, 8
both = pytest.mark.parametrize("call", [attend, dot_product_attention], ids=["attend", "dot_product"])


def draw(*shapes, dtype=jnp.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def inputs(dtype=jnp.float32):
    return draw((B, T, N, H), (B, S, K, H), (B, S, K, V), dtype=dtype)


@both
def test_by_hand(call):
    # Scores log 1 and log 3, and one key hidden: weights 1/4 and 3/4.
    query = np.ones((1, 1, 1, 1))
    key = jnp.log(jnp.array([1.0, 3.0, 9.0])).reshape(1, 3, 1, 1)
    value = jnp.array([[4.0, 0.0], [0.0, 8.0], [np.nan, 5.0]]).reshape(1, 3, 1, 2)
    mask = jnp.array([True, True, False]).reshape(1, 1, 1, 3)
    out, weights = call(query, key, value, mask=mask, return_weights=True)
    np.testing.assert_allclose(weights, [[[[0.25, 0.75, 0.0]]]], rtol=1e-6)
    np.testing.assert_allclose(out, [[[[1.0, 6.0]]]], rtol=1e-6)


def test_the_line_of_the_readme():
    q, k, v = draw((B, T, N, H), (B, T, K, H), (B, T, K, V))
    out, w = attention.attend(q, k, v, mask=attention.masks.causal(T, T), return_weights=True)
    assert out.shape == (B, T, N, V)
    assert w.shape == (B, N, T, T)
    assert (np.triu(w, 1) == 0).all()


@both
def test_weights_equal_oracle(call, x64):
    arrays = inputs(jnp.float64)
    mask = jnp.asarray(np.random.default_rng(1).random((B, N, T, S)) < 0.3)
    out, weights = call(*arrays, mask=mask, return_weights=True)
    expected, expected_weights = oracle.attend(*arrays, mask=mask)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    assert (weights[~mask] == 0).all()


@both
def test_asking_for_weights_does_not_move_the_output(call):
    arrays = inputs()
    np.testing.assert_array_equal(call(*arrays), call(*arrays, return_weights=True)[0])


@both
def test_several_batch_axes_and_none(call):
    query, key, value = draw((2, 3, T, N, H), (2, 3, S, K, H), (2, 3, S, K, V))
    mask = masks.causal(T, S, 1, batch_dims=2)
    whole = call(query, key, value, mask=mask)
    one = call(query[1, 2], key[1, 2], value[1, 2], mask=masks.causal(T, S, 1, batch_dims=0))
    np.testing.assert_allclose(whole[1, 2], one, rtol=1e-5, atol=1e-6)


@both
def test_nan_in_a_visible_key_shows_in_its_weights(call):
    query, key, value = inputs()
    mask = masks.padding(jnp.array([3, 7, 7]), S)
    _, weights = call(query, changed(key, np.s_[0, 1], np.nan), value, mask=mask, return_weights=True)
    assert np.isnan(weights[0, :, :, :3]).all()
    assert (weights[0, :, :, 3:] == 0).all()
    assert np.isfinite(weights[1:]).all()


@both
def test_dropout(call):
    query, key, value = draw((2, 50, 2, H), (2, 60, 2, H), (2, 60, 2, 60))
    rate, chosen = 0.25, jax.random.key(0)
    # With the identity as values the output shows the weights after dropout.
    eye = np.broadcast_to(np.eye(60)[None, :, None], (2, 60, 2, 60))
    shown, weights = call(query, key, eye, dropout_rate=rate, dropout_key=chosen, return_weights=True)
    dropped, weights = np.swapaxes(shown, 1, 2), np.asarray(weights)
    np.testing.assert_allclose(weights.sum(-1), np.ones((2, 2, 50)), rtol=1e-5)
    np.testing.assert_allclose(dropped, np.where(dropped == 0, 0, weights / (1 - rate)), rtol=1e-5)
    np.testing.assert_allclose((dropped == 0).mean((-1, -2)), np.full((2, 2), rate), atol=0.05)
    # Independent: any two heads or batch elements drop in common what chance would.
    gone = (dropped == 0).reshape(4, -1)
    for i in range(4):
        for j in range(i):
            np.testing.assert_allclose((gone[i] & gone[j]).mean(), rate**2, atol=0.03)

    options = {"dropout_rate": rate, "dropout_key": chosen}
    out = call(query, key, value, **options)
    np.testing.assert_array_equal(out, call(query, key, value, **options))
    assert not np.allclose(out, call(query, key, value, **options | {"dropout_key": jax.random.key(1)}))
    np.testing.assert_array_equal(call(query, key, value), call(query, key, value, dropout_key=chosen))


@both
def test_dropout_needs_a_key(call):
    with pytest.raises(ValueError, match=r"dropout_rate 0.5 needs a dropout_key"):
        call(*inputs(), dropout_rate=0.5)


@both
def test_a_bias_is_checked_and_may_be_narrower_than_the_scores(call, untyped):
    with pytest.raises(ValueError, match=r"bias \(5, 7\) has rank 2 but scores"):
        call(*inputs(), bias=np.ones((T, S), np.float32))
    half = np.full((1, 1, 1, 1), 2.0, jnp.bfloat16)
    np.testing.assert_allclose(call(*inputs(), bias=half), call(*inputs()), rtol=1e-5, atol=1e-6)


def test_parameters_of_a_partial_are_traced_and_differentiated(x64):
    query, key, value, kernel = draw((T, N, H), (S, K, H), (S, K, V), (N, H, H), dtype=jnp.float64)

    def loss(score):
        return jnp.sum(attend(query, key, value, score=score) ** 2)

    score = Partial(scores.general, kernel=kernel)
    (gradient,) = jax.tree.leaves(jax.jit(jax.grad(loss))(score))
    step = 1e-6 * draw(kernel.shape, dtype=jnp.float64, seed=7)[0]
    ahead, behind = (loss(Partial(scores.general, kernel=kernel + s * step)) for s in (1, -1))
    np.testing.assert_allclose(jnp.sum(gradient * step), (ahead - behind) / 2, rtol=1e-5)


def test_compiles_once():
    traces = []

    def score(query, key, temperature=1.0):
        traces.append(None)
        return scores.dot(query, key) * temperature

    arrays = inputs()
    for _ in range(3):
        attend(*arrays, score=score)
    assert len(traces) == 1
    # New values of a parameter are no new program, whichever partial binds them.
    outs = [attend(*arrays, score=Partial(score, temperature=t)) for t in (0.5, 2.0)]
    outs += [attend(*arrays, score=functools.partial(score, temperature=t)) for t in (0.5, 2.0)]
    assert len(traces) == 2
    np.testing.assert_array_equal(outs[0], outs[2])
    assert not np.allclose(outs[0], outs[1])


def test_options_are_compiled_in_and_equal_ones_share_a_program():
    traces = []

    def normalize(scores, mask, power: int, divide: bool):
        traces.append((power, divide))
        return normalizers.relu(scores, mask, divide=divide) ** power

    arrays = inputs()
    for power, divide in [(1, True), (1, True), (2, True), (1, False)]:
        attend(*arrays, normalize=Partial(normalize, power=power, divide=divide))
    assert traces == [(1, True), (2, True), (1, False)]


def test_a_score_of_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"score returned \(3, 5, 4, 7\), .* \(3, 4, 5, 7\)"):
        attend(*inputs(), score=lambda q, k: jnp.swapaxes(scores.dot(q, k), 1, 2))
    with pytest.raises(ValueError, match=r"normalize returned \(3, 4, 5\)"):
        attend(*inputs(), normalize=lambda s, mask: s.sum(-1))


def test_inside_an_outer_jit_nothing_is_added():
    """The lowered program has no call to one of ours: newer JAX inlines when it lowers, not before."""
    for call in (attend, dot_product_attention):
        mask = np.ones((1, 1, 1, S), bool)
        text = jax.jit(functools.partial(call, mask=mask)).lower(*inputs()).as_text()
        assert "dot_general" in text
        for name in ("attend", "scaled_dot", "softmax", "dot_product_attention"):
            assert f"call @{name}" not in text
            assert f"call @_{name}" not in text


def test_without_a_mask_there_is_no_selection():
    """The common case pays for none of the care that masks need."""
    for call in (attend, dot_product_attention):
        text = str(jax.make_jaxpr(call)(*inputs()))
        assert "exp" in text
        assert not any(word in text for word in ("select_n", "is_finite", "where"))
