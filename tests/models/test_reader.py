"""Readers: spans by trying them all, and what padding, company and empty texts change: nothing."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.reader import READER, Spans
from tests.models.parameters import filled, normal, paths, program, real, shaped

B, T, S, D = 3, 7, 4, 6
WORDS, AFFIXES = 11, (5, 3)
WINDOW = {"kind": "window_fc", "hidden_dim": 5}
MODELS = {
    "pointer": {"encoder": WINDOW, "self_matching": "additive"},
    "independent": {"encoder": WINDOW, "positions": "sinusoidal", "head": {"end": "independent"}},
}


def make(model, build=filled, **fields):
    block = {"dim": D, **MODELS[model], **fields}
    return build(READER.build, block, "config.model", columns={"words": WORDS, "affixes": AFFIXES})


def batch(passages, asked, garbage=0):
    """Lengths of passages and questions, as a batch padded to T and S with `garbage`."""
    draw = np.random.default_rng(0)
    found = {}
    for mask, words, affixes, lengths, size in (
        ("mask", "words", "affixes", passages, T),
        ("target_mask", "question", "question_affixes", asked, S),
    ):
        exists = real(*lengths, of=size)
        found[mask] = exists
        found[words] = np.where(exists, draw.integers(2, WORDS, exists.shape), garbage).astype(np.int32)
        kinds = draw.integers(1, AFFIXES, (*exists.shape, len(AFFIXES)))
        found[affixes] = np.where(exists[..., None], kinds, garbage).astype(np.int32)
    return found


def cut(columns, row, length, asked):
    """One example alone, without padding."""
    sizes = {"mask": length, "words": length, "affixes": length}
    return {name: column[row : row + 1, : sizes.get(name, asked)] for name, column in columns.items()}


def test_the_best_span_is_found_among_all():
    spans = Spans(normal(B, T), normal(B, T, T, seed=2))
    mask, longest = real(7, 4, 1, of=T), (1, 3, 9)

    @jax.jit
    def search(spans):
        best = [spans.best(mask, most) for most in longest]
        return [(start, end, spans.log_probability(start, end)) for start, end in best]

    for most, (start, end, found) in zip(longest, search(spans), strict=True):
        for row, length in enumerate((7, 4, 1)):
            score = {
                (i, j): float(spans.start[row, i] + spans.end[row, i, j])
                for i, j in itertools.product(range(length), repeat=2)
                if i <= j < i + most
            }
            best = max(score, key=score.get)
            assert (int(start[row]), int(end[row])) == best
            assert found[row] == pytest.approx(score[best], abs=1e-5)


LENGTHS, ASKED = (7, 4, 0), (3, 4, 0)


@functools.cache
def runner(model):
    """A compiled function from a batch to spans, and to gradients by a loss that feels both ends."""
    structure, params = nnx.split(make(model))

    @jax.jit
    def run(columns):
        def loss(params):
            spans = nnx.merge(structure, params)(columns)
            places = jnp.array([0, 3, 0], jnp.int32)
            return spans.log_probability(places, places)[:2].sum(), spans

        (_, spans), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        return spans, gradients

    return run, jax.jit(lambda columns: nnx.merge(structure, params)(columns))


@pytest.mark.parametrize("model", MODELS)
def test_padding_and_company_change_nothing(model):
    run, forward = runner(model)
    clean, gradients = run(batch(LENGTHS, ASKED))
    dirty, others = run(batch(LENGTHS, ASKED, garbage=99))  # beyond every table: NaN
    for row, length in enumerate(LENGTHS):
        np.testing.assert_array_equal(dirty.start[row, :length], clean.start[row, :length])
        np.testing.assert_array_equal(dirty.end[row, :length, :length], clean.end[row, :length, :length])
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(others), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    alone = forward(cut(batch(LENGTHS, ASKED), 1, 4, 4))
    np.testing.assert_allclose(alone.start[0], clean.start[1, :4], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(alone.end[0], clean.end[1, :4, :4], rtol=1e-5, atol=1e-5)

    # The end is looked for from the start or not, among what is real.
    np.testing.assert_allclose(np.exp(clean.start).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(clean.end).sum(-1), 1, rtol=1e-5)
    assert np.exp(clean.start[1, 4:]).max() == np.exp(clean.end[1, :, 4:]).max() == 0
    assert np.allclose(clean.end[0, 0], clean.end[0, 1], atol=1e-6) == (model == "independent")


@pytest.mark.parametrize("model", MODELS)
def test_what_is_asked_decides(model):
    columns = batch(LENGTHS, ASKED)
    question = columns["question"].copy()
    question[0, 1] = 1
    before, after = (runner(model)[0](each)[0].start for each in (columns, columns | {"question": question}))
    assert np.abs(before - after)[0].max() > 1e-5
    np.testing.assert_array_equal(before[1:], after[1:])


def test_what_comes_of_self_matching_is_added():
    @jax.jit
    def both(model, columns):
        model.match.encoder = lambda x, mask, **_: jnp.zeros_like(x)  # nothing comes of it
        found = model(columns).start
        model.match = model.match_attention = None
        return found, model(columns).start

    found, without = both(make("independent", self_matching="dot"), batch(LENGTHS, ASKED))
    np.testing.assert_allclose(found, without, rtol=1e-6)


def test_self_matching_has_one_head_as_wide_as_the_vectors():
    shapes = paths(make("pointer", shaped, self_matching="localness_fixed_window"))
    assert shapes["match_attention/mechanism/kernel"].shape == (1, D, D)
    assert not any(path.startswith("match") for path in paths(make("pointer", shaped, self_matching="none")))


def test_dropout_needs_rngs():
    dropping, sure = (make("pointer", shaped, dropout_rate=rate) for rate in (0.5, 0.0))
    columns = batch(LENGTHS, ASKED)
    assert program(dropping, columns) == program(sure, columns)
    assert "random_bits" in program(dropping, columns, seed=0)


@pytest.mark.parametrize(
    "fields, said",
    [
        (
            {"head": {"end": "last"}},
            "config.model.head.end is 'last'; it must be one of pointer, independent",
        ),
        ({"head": {"ends": "pointer"}}, "unknown field of config.model.head 'ends'. Did you mean 'end'?"),
        ({"self_matching": "bandied"}, "in config.model.self_matching 'bandied'. Did you mean 'banded'?"),
        ({"num_layer": 2}, "unknown field of config.model 'num_layer'"),
        ({"dim": 0}, "config.model.dim is 0"),
    ],
)
def test_mistakes_are_one_line(fields, said):
    with pytest.raises(UserError) as error:
        make("pointer", shaped, **fields)
    assert said in str(error.value)
