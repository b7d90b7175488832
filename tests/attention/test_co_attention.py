from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import masks, scores
from attention.co_attention import co_attention, gate
from tests.attention.mechanism import Sizes, changed, draw, parameter, random_mask

SIZES = Sizes()


def transposed(x):
    return jnp.swapaxes(x, -1, -2)


def test_by_hand():
    # The affinity, passage by question, is [[log 2, 0], [log 3, log 3]].
    L = np.log([[2.0, 1.0], [3.0, 3.0]])
    passage = jnp.array([[10.0, 0.0], [0.0, 10.0]])[:, None]
    values = jnp.array([[30.0], [60.0]])[:, None]
    fixed = Partial(lambda affinity, q, k: affinity, jnp.asarray(L, jnp.float32)[None])
    of_question, of_passage = co_attention(passage, passage, values, score=fixed)
    np.testing.assert_allclose(of_question[:, 0], [[40], [45]], rtol=1e-6)  # rows: (2/3, 1/3), (1/2, 1/2)
    np.testing.assert_allclose(of_passage[:, 0], [[4, 6], [2.5, 7.5]], rtol=1e-6)  # columns: (2, 3), (1, 3)


def general(query, key):
    kernel = parameter("W", query.shape[-2], query.shape[-1], key.shape[-1])
    return scores.general(query, key, jnp.asarray(kernel, query.dtype))


@pytest.mark.parametrize("K", [1, 2, 4])
def test_the_question_reads_the_passage_by_the_same_affinity(K, x64):
    sizes = SIZES._replace(K=K)
    query, key, value, bias = draw(*sizes.arrays, (1, *sizes.scores[1:]), dtype=jnp.float64)
    mask = random_mask(sizes)
    mask[:, :, :, 5] = False  # a question position that sees nothing
    out = co_attention(query, key, value, score=general, mask=jnp.asarray(mask), bias=bias).question
    affinity = np.asarray(general(query, key) + bias)
    expected = np.zeros((3, 7, 4, 6))
    for b, s, n in np.ndindex(3, 7, 4):
        seen = mask[b, n, :, s]
        powers = np.exp(affinity[b, n, seen, s])
        expected[b, s, n] = powers @ np.asarray(query)[b, seen, n] / max(powers.sum(), 1e-300)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    assert (np.asarray(out)[:, 5] == 0).all()


def test_padding_of_both_sides_is_unseen():
    query, key, value = draw(*SIZES.arrays)
    of_passage = masks.padding(jnp.array([5, 3, 0]), SIZES.T)
    of_question = masks.padding(jnp.array([4, 0, 7]), SIZES.S)
    mask = transposed(of_passage) & of_question

    @jax.jit
    def everything(query, key, value):
        def loss(*arrays):
            out = co_attention(*arrays, mask=mask)
            return sum(jnp.sum(jnp.sin(x)) for x in out), out

        gradients, out = jax.grad(loss, (0, 1, 2), has_aux=True)(query, key, value)
        return [*out, *gradients]

    clean = everything(query, key, value)
    shown = [m[:, 0, 0, :, None, None] for m in (of_passage, of_question, of_question)]
    for garbage in (np.nan, np.inf, 1e9):
        dirty = [jnp.where(s, x, garbage) for s, x in zip(shown, (query, key, value), strict=True)]
        for a, e in zip(everything(*dirty), clean, strict=True):
            np.testing.assert_array_equal(a, e)
            assert np.isfinite(a).all()
    assert not clean[0][1:].any()  # question 1 and passage 2 are empty: neither side reads anything
    assert not clean[1][1:].any()


def test_exports_and_half_precision():
    arrays = draw(*SIZES.arrays, dtype=jnp.bfloat16)
    passage, question = co_attention(*arrays)
    assert passage.dtype == question.dtype == jnp.bfloat16
    wide = co_attention(*(x.astype(jnp.float32) for x in arrays)).question
    np.testing.assert_allclose(question.astype(jnp.float32), wide, rtol=0.02, atol=0.01)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    exported = jax.export.export(jax.jit(co_attention), platforms=("cuda", "tpu"))(*shapes)
    assert [x.shape for x in exported.out_avals] == [(3, 5, 4, 8), (3, 7, 4, 6)]


def test_a_learned_score_is_differentiated(x64):
    query, key, value = draw((5, 1, 3), (4, 1, 2), (4, 1, 2), dtype=jnp.float64)
    kernel = jnp.asarray(parameter("W", 1, 3, 2))

    @jax.jit
    def loss(kernel):
        passage, question = co_attention(query, key, value, score=Partial(scores.general, kernel=kernel))
        return jnp.sum(passage**2) + jnp.sum(question**2)

    step = 1e-6 * parameter("step", 1, 3, 2)
    difference = loss(kernel + step) - loss(kernel - step)
    np.testing.assert_allclose(jnp.sum(jax.grad(loss)(kernel) * step), difference / 2, rtol=1e-6)


def test_gate_by_hand():
    # W = 0 opens every gate by half; a large diagonal opens or shuts it.
    passage, context = jnp.array([[2.0]]), jnp.array([[4.0, -6.0]])
    assert gate(passage, context, np.zeros((3, 3))).tolist() == [[1, 2, -3]]
    assert gate(passage, context, 100 * np.eye(3)).tolist() == [[2, 4, 0]]
    # Row i of W is what input i says to every gate: only the passage opens the last one here.
    kernel = changed(np.zeros((3, 3)), np.s_[0, 2], np.log(3.0) / 2)
    np.testing.assert_allclose(gate(passage, context, kernel), [[1, 2, -4.5]], rtol=1e-6)


def test_gate_equals_its_formula(x64):
    passage, context, kernel = draw((2, 5, 3), (2, 5, 4), (7, 7), dtype=jnp.float64)
    both = np.concatenate([passage, context], -1)
    expected = both / (1 + np.exp(-both @ np.asarray(kernel)))
    np.testing.assert_allclose(gate(passage, context, kernel), expected, rtol=1e-12)
    dirty = gate(changed(passage, np.s_[0], np.nan), context, kernel)  # a position's gate is its own
    np.testing.assert_array_equal(dirty[1], gate(passage, context, kernel)[1])
    half = [x.astype(jnp.bfloat16) for x in (passage, context, kernel)]
    exact = gate(*(x.astype(jnp.float64) for x in half))
    np.testing.assert_allclose(gate(*half).astype(jnp.float64), exact, rtol=2**-8)


def test_r_net_reads_the_question_and_gates_it():
    # The whole of it is three lines: additive attention, one head, and the gate.
    passage, question = draw((2, 5, 6), (2, 7, 6))
    score = Partial(
        scores.additive,
        query_kernel=np.ones((1, 6, 3)),
        key_kernel=np.ones((1, 6, 3)),
        bias=np.zeros((1, 3)),
        vector=np.ones((1, 3)),
    )
    keys = question[:, :, None]
    context = attention.attend(passage[:, :, None], keys, keys, score=score)[:, :, 0]
    out = gate(passage, context, np.eye(12))
    assert out.shape == (2, 5, 12)
    np.testing.assert_allclose(out[..., 6:], context * jax.nn.sigmoid(context), rtol=1e-6)


def test_what_does_not_fit_is_refused(untyped):
    passage, context = np.ones((2, 5, 3)), np.ones((2, 5, 4))
    with pytest.raises(ValueError, match=r"\(2, 5, 3\).*\(2, 4, 4\)"):
        gate(passage, context[:, :4], np.ones((7, 7)))
    with pytest.raises(ValueError, match=r"kernel .*\(7, 7\).*\(3, 7\)"):
        gate(passage, context, np.ones((3, 7)))
    with pytest.raises(TypeError, match="bfloat16"):
        gate(passage, context.astype(jnp.bfloat16), np.ones((7, 7)))
    call = partial(co_attention, *draw(*SIZES.arrays))
    with pytest.raises(TypeError, match="mask must be boolean"):
        call(mask=np.ones((3, 1, 5, 7)))
