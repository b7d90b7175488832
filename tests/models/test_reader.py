"""Readers: spans by trying them all, and what padding, company and empty texts change: nothing."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models import reader
from models.reader import Spans
from tests.models.parameters import filled, normal

B, T, S, D = 3, 7, 4, 6
WORDS, AFFIXES = 11, (5, 3)
MODELS = {
    "rnn": {"kind": "rnn", "self_matching": {"kind": "additive"}},
    "transformer": {
        "kind": "transformer",
        "num_layers": 1,
        "num_heads": 3,
        "positions": {"kind": "rotary"},
        "head": {"end": "independent"},
    },
}


def make(model, **fields):
    config = {"dim": D, **MODELS[model], **fields}
    return filled(reader.build, config, inputs={"words": WORDS, "affixes": AFFIXES})


def batch(passages, asked, garbage=0):
    """Lengths of passages and questions, as a batch padded to T and S with `garbage`."""
    draw = np.random.default_rng(0)
    found = {}
    for mask, words, affixes, lengths, size in (
        ("mask", "words", "affixes", passages, T),
        ("target_mask", "question", "question_affixes", asked, S),
    ):
        exists = np.arange(size) < np.asarray(lengths)[:, None]
        found[mask] = exists
        found[words] = np.where(exists, draw.integers(2, WORDS, exists.shape), garbage).astype(np.int32)
        kinds = draw.integers(1, AFFIXES, (*exists.shape, len(AFFIXES)))
        found[affixes] = np.where(exists[..., None], kinds, garbage).astype(np.int32)
    return jax.tree.map(jnp.asarray, found)


def cut(columns, row, length, asked):
    """One example alone, without padding."""
    sizes = {"mask": length, "words": length, "affixes": length}
    return {name: column[row : row + 1, : sizes.get(name, asked)] for name, column in columns.items()}


def test_the_best_span_is_found_among_all():
    spans = Spans(normal(B, T), normal(B, T, T, seed=2))
    mask = jnp.arange(T)[None] < jnp.array([[7], [4], [1]])
    for most in (1, 3, 9):
        start, end = jax.jit(lambda s, m, most=most: s.best(m, most))(spans, mask)
        for row, length in enumerate((7, 4, 1)):
            score = {
                (i, j): float(spans.start[row, i] + spans.end[row, i, j])
                for i, j in itertools.product(range(length), repeat=2)
                if i <= j < i + most
            }
            best = max(score, key=score.get)
            assert (int(start[row]), int(end[row])) == best
        found = spans.log_probability(start, end)
        assert found[2] == pytest.approx(float(spans.start[2, 0] + spans.end[2, 0, 0]))


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
        assert jnp.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    alone = forward(cut(batch(LENGTHS, ASKED), 1, 4, 4))
    np.testing.assert_allclose(alone.start[0], clean.start[1, :4], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(alone.end[0], clean.end[1, :4, :4], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model, depends", [("rnn", True), ("transformer", False)])
def test_the_end_is_looked_for_from_the_start_or_not(model, depends):
    spans, _ = runner(model)[0](batch(LENGTHS, ASKED))
    np.testing.assert_allclose(np.exp(spans.start).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(spans.end).sum(-1), 1, rtol=1e-5)
    assert np.exp(spans.start[1, 4:]).max() == np.exp(spans.end[1, :, 4:]).max() == 0
    assert np.allclose(spans.end[0, 0], spans.end[0, 1], atol=1e-6) != depends


def test_what_is_asked_decides():
    columns = batch(LENGTHS, ASKED)
    changed = columns | {"question": columns["question"].at[0, 1].set(1)}
    before, after = (runner("rnn")[0](each)[0].start for each in (columns, changed))
    assert np.abs(before - after)[0].max() > 1e-5
    np.testing.assert_array_equal(before[1:], after[1:])


def test_what_comes_of_self_matching_is_added():
    columns, model = batch(LENGTHS, ASKED), make("rnn")
    model.match.encoder = lambda x, mask, **_: jnp.zeros_like(x)  # nothing comes of it
    found = jax.jit(lambda columns: model(columns).start)(columns)
    model.match = model.match_attention = None
    without = jax.jit(lambda columns: model(columns).start)(columns)
    np.testing.assert_allclose(found, without, rtol=1e-6)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"head": {"end": "last"}}, r"config\.model\.head: end is 'last'; it must be one of"),
        ({"head": {"ends": "pointer"}}, "ends"),
        ({"self_matching": {"kind": "bandied"}}, "bandied"),
        ({"num_layer": 2}, "num_layer"),
        ({"dim": 0}, r"config\.model\.dim is 0"),
    ],
)
def test_mistakes_are_one_line(fields, said):
    with pytest.raises(UserError, match=said):
        make("rnn", **fields)
