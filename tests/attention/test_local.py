import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import local, masks, scores
from tests.attention import oracle

B, T, S, N, K, H, V, A = 3, 5, 7, 4, 2, 6, 8, 9


def draw(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def test_local_m_by_hand():
    # Equal scores: the mean of the values 1 2 4 8 16 within one step of t.
    zeros, value = jnp.zeros((5, 1, 1)), 2.0 ** jnp.arange(5.0).reshape(5, 1, 1)
    out = local.local_m(zeros, zeros, value, radius=1)
    np.testing.assert_allclose(out[:, 0, 0], [3 / 2, 7 / 3, 14 / 3, 28 / 3, 12], rtol=1e-6)
    # In a row of true length 3 the last window lies outside.
    out = local.local_m(zeros, zeros, value, radius=1, lengths=jnp.array(3))
    np.testing.assert_allclose(out[:, 0, 0], [3 / 2, 7 / 3, 3, 4, 0], rtol=1e-6)
    # Step 2 of a decoder, and centres that are given.
    out = local.local_m(zeros[:1], zeros, value, radius=1, query_offset=2)
    np.testing.assert_allclose(out[:, 0, 0], [14 / 3], rtol=1e-6)
    out = local.local_m(zeros[:2], zeros, value, radius=1, centre=jnp.array([[0, 4]]))
    np.testing.assert_allclose(out[:, 0, 0], [3 / 2, 12], rtol=1e-6)


def test_local_m_is_attend_with_a_band():
    query, key, value = (jnp.asarray(x, jnp.float32) for x in draw((B, S, N, H), (B, S, K, H), (B, S, K, V)))
    mask = masks.causal(S) & masks.padding(jnp.array([7, 0, 4]), S)
    np.testing.assert_array_equal(
        local.local_m(query, key, value, radius=2, lengths=jnp.array([7, 0, 4]), mask=masks.causal(S)),
        attention.attend(query, key, value, mask=mask & masks.band(S, S, (2, 2))),
    )


def test_local_p_by_hand():
    # v . tanh(W q) = 0, so p = 5 / 2; D = 2 shows the keys 1 to 4, each with weight 1/4 before
    # exp(-(s - p)^2 / 2), sigma being 1.
    zeros, value = jnp.zeros((1, 1, 1)), jnp.eye(5).reshape(5, 1, 5)
    options = {"radius": 2, "kernel": jnp.ones((1, 1, 1)), "vector": jnp.ones((1, 1))}
    far, near = np.exp(-(1.5**2) / 2), np.exp(-(0.5**2) / 2)
    out, weights = local.local_p(zeros, jnp.zeros((5, 1, 1)), value, return_weights=True, **options)
    expected = np.array([0, far, near, near, far]) / 4
    np.testing.assert_allclose(out[0, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(weights[0, 0], expected, rtol=1e-6)
    out = local.local_p(zeros, jnp.zeros((5, 1, 1)), value, renormalize=True, **options)
    np.testing.assert_allclose(out[0, 0], expected / expected.sum(), rtol=1e-6)
    # A row of true length 3 has its p at 3 / 2, and shows the keys 0 to 2.
    out = local.local_p(zeros, jnp.zeros((5, 1, 1)), value, lengths=jnp.array(3), **options)
    np.testing.assert_allclose(out[0, 0], np.array([far, near, near, 0, 0]) / 3, rtol=1e-6)


@pytest.mark.parametrize("radius", [1, 2])
def test_local_p_equals_its_definition(radius, x64):
    query, key, value, kernel, vector = draw((B, T, N, H), (B, S, K, H), (B, S, K, V), (N, H, A), (N, A))
    lengths, general = [S, 4, 0], draw((N, H, H), seed=1)[0]
    mask = np.random.default_rng(2).random((B, N, T, S)) < 0.7

    favour, inside = np.zeros((B, N, T, S)), np.zeros((B, N, T, S), bool)
    for b, n, t, s in np.ndindex(B, N, T, S):
        p = lengths[b] / (1 + np.exp(-vector[n] @ np.tanh(query[b, t, n] @ kernel[n])))
        favour[b, n, t, s] = np.exp(-((s - p) ** 2) / (2 * (radius / 2) ** 2))
        inside[b, n, t, s] = abs(s - p) <= radius and s < lengths[b]
    assert (inside.sum(-1) < S).any()
    aligned = oracle.attend(query, key, value, score=oracle.general(general), mask=mask & inside)[1]
    expected = aligned * favour

    out, weights = local.local_p(
        *(jnp.asarray(x) for x in (query, key, value)),
        radius=radius,
        kernel=jnp.asarray(kernel),
        vector=jnp.asarray(vector),
        score=Partial(scores.general, kernel=jnp.asarray(general)),
        lengths=jnp.array(lengths),
        mask=jnp.asarray(mask),
        return_weights=True,
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-11, atol=1e-14)
    summed = np.einsum("bnts,bsnv->btnv", expected, np.repeat(value, N // K, axis=2))
    np.testing.assert_allclose(out, summed, rtol=1e-11, atol=1e-14)


def test_gradients_flow_through_the_centre(x64):
    # All scores are 0 and the window shows all, so the output depends on W and v by p alone.
    query, value, kernel, vector = (jnp.asarray(x) for x in draw((T, 1, H), (S, 1, 1), (1, H, A), (1, A)))

    def loss(kernel, vector):
        out = local.local_p(query, jnp.zeros((S, 1, H)), value, radius=20, kernel=kernel, vector=vector)
        return jnp.sum(out**2)

    for argument in (0, 1):
        gradient = jax.grad(loss, argument)(kernel, vector)
        step = 1e-6 * jnp.sign(gradient)
        ends = [[kernel, vector], [kernel, vector]]
        ends[0][argument], ends[1][argument] = ends[0][argument] - step, ends[1][argument] + step
        slope = (loss(*ends[1]) - loss(*ends[0])) / 2e-6
        np.testing.assert_allclose(slope, jnp.abs(gradient).sum(), rtol=1e-6)
        assert slope > 1e-3


def test_padding_does_not_move_the_centre():
    query, key, value, kernel, vector = (
        jnp.asarray(x, jnp.float32) for x in draw((2, T, N, H), (2, S, K, H), (2, S, K, V), (N, H, A), (N, A))
    )
    options = {"radius": 2, "kernel": kernel, "vector": vector}
    alone = local.local_p(query, key[:, :4], value[:, :4], **options)
    dirty = [x.at[:, 4:].set(jnp.nan) for x in (key, value)]
    padded = local.local_p(query, *dirty, lengths=jnp.array([4, 4]), **options)
    np.testing.assert_allclose(padded, alone, rtol=1e-5, atol=1e-6)


def test_errors(untyped):
    query, key, value = jnp.ones((2, 3, 4, 6)), jnp.ones((2, 5, 2, 6)), jnp.ones((2, 5, 2, 8))
    predict = {"kernel": jnp.ones((4, 6, 7)), "vector": jnp.ones((4, 7))}
    with pytest.raises(ValueError, match="radius must not be negative, got -1"):
        local.local_m(query, key, value, radius=-1)
    with pytest.raises(TypeError):
        local.local_m(query, key, value, radius=(1, 1))
    with pytest.raises(ValueError, match="give one"):
        local.local_m(query, key, value, radius=1, centre=jnp.ones((1, 1, 1)), query_offset=1)
    for wrong in (jnp.ones(3), jnp.ones((2, 4, 2))):
        with pytest.raises(ValueError, match=r"does not broadcast to \[\*B N T\] \(2, 4, 3\)"):
            local.local_m(query, key, value, radius=1, centre=wrong)
    with pytest.raises(ValueError, match=r"one per batch element \(2,\), got \(3,\)"):
        local.local_m(query, key, value, radius=1, query_offset=jnp.zeros(3, int))
    with pytest.raises(ValueError, match=r"radius must be at least 1, .*got 0"):
        local.local_p(query, key, value, radius=0, **predict)
    with pytest.raises(ValueError, match=r"vector \[N A\] must be \(4, 7\)"):
        local.local_p(query, key, value, radius=1, **predict | {"vector": jnp.ones((2, 7))})
    with pytest.raises(ValueError, match=r"lengths must be one per batch element \(2,\)"):
        local.local_p(query, key, value, radius=1, lengths=jnp.array(3), **predict)
    with pytest.raises(ValueError, match="needs a dropout_key"):
        local.local_p(query, key, value, radius=1, dropout_rate=0.5, **predict)
