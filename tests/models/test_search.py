"""Decoding against enumeration, by hand where stopping early is wrong, and on a Transformer."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from errors import UserError
from models.decoders.decoder import Cache, Memory
from models.encoder_decoder import ENCODER_DECODER, END, PADDING, START, UNKNOWN
from models.search import Search, decode
from spec import call
from tests.models.parameters import filled, real

STATES, TOKENS = 8, 6  # of all automata by hand, so that a program serves several
STEPS: list[int] = []


class Automaton:
    """A model of Q states: a token leads from one to the next, and a state gives the next token's logits.

    Args:
        successor: `[Q, V]`.
        logits: `[Q, V]`.
    """

    def __init__(self, successor, logits):
        self.successor, self.logits = successor, logits

    def encode(self, batch):
        vectors = batch["mask"][..., None].astype(jnp.float32)
        return Memory(vectors, batch["mask"], vectors * batch["state"].astype(jnp.float32)[:, None, None])

    def start(self, memory, length):
        return Cache((), memory.inputs.max(axis=(1, 2)).astype(jnp.int32))

    def step(self, cache, token):
        jax.debug.callback(lambda: STEPS.append(1))
        state = jnp.where(token == START, cache.past, self.successor[cache.past, token])
        return self.logits[state], Cache((), state)


def batch_of(states, lengths, size):
    return {"state": np.asarray(states), "mask": real(*lengths, of=size)}


@functools.partial(jax.jit, static_argnames="search")
def _decoded(successor, logits, batch, search, keys):
    return decode(Automaton(successor, logits), batch, search, keys=keys)


def decoded(model, batch, search, keys=None):
    """What is found, by one compiled program."""
    return _decoded(model.successor, model.logits, batch, search, keys)


def automaton(*rows):
    """Of literal probabilities: each row gives the next state and the probability by token."""
    successor = np.zeros((STATES, TOKENS), np.int32)
    logits = np.full((STATES, TOKENS), -np.inf, np.float32)
    for state, row in enumerate(rows):
        for token, (following, probability) in row.items():
            successor[state, token], logits[state, token] = following, np.log(probability)
    return Automaton(successor, logits)


def enumerated(model, state, limit):
    """All sequences with their log-probabilities, in float64: those that end, and those that do not."""
    successor, logits = np.asarray(model.successor), np.asarray(model.logits, np.float64)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ended, live = {}, {(): (0.0, state)}
    for place in range(limit):
        longer = {}
        for tokens, (total, q) in live.items():
            for token in range(END if place else END + 1, logits.shape[1]):
                made, value = (*tokens, token), total + log_p[q, token]
                if token == END:
                    ended[made] = value
                else:
                    longer[made] = value, int(successor[q, token])
        live = longer
    return ended, {tokens: total for tokens, (total, _) in live.items()}


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_a_beam_that_holds_everything_finds_what_enumeration_finds(alpha):
    """Three words and at most four tokens: 3 + 9 + 27 = 39 sequences that end and 81 that do not."""
    draw = np.random.default_rng(0)
    states, vocab_size, limit, beam = 997, 7, 4, 120
    successor = (np.arange(states)[:, None] * 5 + np.arange(vocab_size)) % states
    logits = 2 * draw.standard_normal((states, vocab_size))
    model = Automaton(successor.astype(np.int32), logits.astype(np.float32))
    batch = batch_of([3, 8], [1, 1], 1)
    search = Search(beam=beam, length_penalty=alpha, num_best=beam, max_ratio=1.0, max_extra=3)
    all_of_them = decoded(model, batch, search)
    for row, state in enumerate([3, 8]):
        ended, live = enumerated(model, state, limit)
        assert (len(ended), len(live)) == (39, 81)
        expected = []
        for group in (ended, live):
            scored = [(total / ((5 + len(t)) / 6) ** alpha, total, t) for t, total in group.items()]
            expected += sorted(scored, reverse=True)
        found = all_of_them.tokens[row].tolist()
        assert [tuple(t for t in tokens if t) for tokens in found] == [tokens for *_, tokens in expected]
        np.testing.assert_allclose(all_of_them.score[row], [score for score, *_ in expected], rtol=1e-5)
        np.testing.assert_allclose(all_of_them.log_probability[row], [e[1] for e in expected], rtol=1e-5)
        assert all_of_them.finished[row].tolist() == [True] * 39 + [False] * 81


# `4 END` has probability 0.5. `5`, of 0.45, goes on for sure: to 5 5 5 5 5 END.
LATER = automaton(
    {4: (1, 0.55), 5: (2, 0.45)},
    {END: (0, 10 / 11), 4: (1, 1 / 11)},
    *({5: (state, 1.0)} for state in (3, 4, 5, 6)),
    {END: (0, 1.0)},
)


@pytest.mark.parametrize(
    "limit, alpha, tokens, score, steps",
    [
        # log 0.5 / (7/6) = -0.594 beats log 0.45 / (7/6) = -0.684, and yet loses to log 0.45 / (11/6)
        (6, 1.0, [5, 5, 5, 5, 5, END], np.log(0.45) / (11 / 6), 6),
        # within three tokens nothing can come of it: log 0.45 / (8/6) = -0.599
        (3, 1.0, [4, END, 0], np.log(0.5) / (7 / 6), 2),
        # by probability alone, 0.5 it is, at once
        (6, 0.0, [4, END, 0, 0, 0, 0], np.log(0.5), 2),
    ],
)
def test_what_has_ended_wins_when_no_live_one_can_beat_it(limit, alpha, tokens, score, steps):
    STEPS.clear()
    search = Search(beam=2, length_penalty=alpha, max_ratio=1.0, max_extra=limit - 1)
    found = decoded(LATER, batch_of([0], [1], 1), search)
    jax.effects_barrier()
    assert found.tokens.tolist() == [[tokens]]
    np.testing.assert_allclose(found.score, [[score]], rtol=1e-6)
    assert found.finished.all()
    assert len(STEPS) == steps


ANY = (Search(), Search(beam=3), Search(temperature=0.01))


def test_a_beam_of_one_is_greedy():
    """It takes 4 END, of 0.5, though 5 would lead further."""
    found = decoded(LATER, batch_of([0], [2], 2), Search())
    assert found.tokens[0, 0].tolist() == [4, END] + 12 * [0]


def test_no_result_is_empty_and_none_holds_what_is_no_text():
    """`PADDING`, `UNKNOWN`, `START` and an early `END` are likeliest by far, and never come."""
    model = automaton(
        {PADDING: (0, 0.3), UNKNOWN: (0, 0.2), START: (0, 0.2), END: (0, 0.2), 4: (1, 0.1)},
        {UNKNOWN: (1, 0.9), END: (1, 0.06), 4: (0, 0.04)},
    )
    for search in ANY:
        keys = jax.random.split(jax.random.key(0), 1) if search.temperature else None
        found = decoded(model, batch_of([0], [2], 2), search, keys)
        assert set(found.tokens[0, 0].tolist()) <= {0, END, 4}
        assert found.tokens[0, 0, 0] == 4
        if search == Search():
            np.testing.assert_allclose(found.log_probability, np.log(0.006), rtol=1e-6)


def test_at_its_limit_the_best_unfinished_is_returned_and_flagged():
    """Limits are round(1.5 x length) + 2: 2, 4 (3.5 rounded up) and 5; the room is that of 3 vectors, 7."""
    endless = automaton({4: (0, 0.75), 5: (0, 0.25)})
    for beam in (1, 3):
        search = Search(beam=beam, max_ratio=1.5, max_extra=2)
        found = decoded(endless, batch_of([0, 0, 0], [0, 1, 2], 3), search)
        expected = [2 * [4] + 5 * [0], 4 * [4] + 3 * [0], 5 * [4] + 2 * [0]]
        assert found.tokens[:, 0].tolist() == expected
        np.testing.assert_allclose(found.log_probability[:, 0], np.array([2, 4, 5]) * np.log(0.75), rtol=1e-6)
        assert not found.finished.any()


def test_where_logits_end_so_does_the_row():
    """After three tokens there is no number any more, as beyond a table of positions."""
    model = automaton(*({4: (state, 0.75), 5: (state, 0.25)} for state in (1, 2, 3)), {4: (3, np.nan)})
    for search in ANY:
        keys = jax.random.split(jax.random.key(0), 1) if search.temperature else None
        found = decoded(model, batch_of([0], [2], 2), search, keys)
        assert found.tokens[0, 0].tolist() == [4, 4, 4] + 11 * [0]
        np.testing.assert_allclose(found.log_probability, 3 * np.log(0.75), rtol=1e-6)
        assert not found.finished.any()


def test_samples_come_as_often_as_they_should():
    """At temperature 2 of 0.64 and 0.36: 0.8 and 0.6, that is 4/7 and 3/7; likelihoods stay the model's."""
    model, rows = automaton({4: (1, 0.64), 5: (1, 0.36)}, {END: (0, 1.0)}), 1000
    keys = jax.random.split(jax.random.key(1), rows)
    search = Search(temperature=2.0, num_best=3, length_penalty=0.0)
    found = decoded(model, batch_of(rows * [0], rows * [1], 1), search, keys)
    first = np.asarray(found.tokens[:, :, 0])
    assert abs((first == 4).mean() - 4 / 7) < 3 * (4 / 7 * 3 / 7 / (3 * rows)) ** 0.5
    np.testing.assert_allclose(found.score, np.log(np.where(first == 4, 0.64, 0.36)), rtol=1e-5)
    # The samples of a row are independent: all alike with (4/7)^3 + (3/7)^3.
    alike = (first == first[:, :1]).all(axis=1).mean()
    assert abs(alike - 91 / 343) < 3 * (91 / 343 * 252 / 343 / rows) ** 0.5
    assert len({tuple(row) for row in first}) == 4  # of each row in order of score


@pytest.fixture(scope="module")
def translator():
    """A Transformer that ends some of its sentences before their limit."""
    block = {"kind": "transformer", "num_layers": 1, "num_heads": 2, "hidden_dim": 5}
    model = filled(
        ENCODER_DECODER.build,
        {
            "dim": 8,
            "positions": "sinusoidal",
            "encoder": "gated_cnn",
            "decoder": block,
            "tokens": {"positions": "sinusoidal"},
        },
        columns={"words": 13},
        vocab_size=11,
        seed=10,
    )
    model.tokens.bias[...] = np.where(np.arange(11) == END, 0.3, 0).astype(np.float32)
    return model


@pytest.mark.parametrize(
    "search",
    [Search(max_extra=3), Search(beam=4, num_best=4, max_extra=3), Search(temperature=0.7, max_extra=3)],
    ids=["greedy", "beam", "sampled"],
)
def test_a_row_is_decoded_as_if_it_were_alone_and_its_best_as_if_asked_for_alone(translator, search):
    draw, lengths = np.random.default_rng(1), np.array([5, 3, 4])
    mask = np.arange(7)[None] < lengths[:, None]
    batch = {"words": draw.integers(4, 13, (3, 7)).astype(np.int32), "mask": mask}
    keys = jax.random.split(jax.random.key(5), 3) if search.temperature else None
    run = jax.jit(lambda batch, keys, search: decode(translator, batch, search, keys=keys), static_argnums=2)
    found = run(batch, keys, search)
    assert (found.tokens[0] != found.tokens[1]).any()

    alone = run(
        {name: column[1:2, :3] for name, column in batch.items()},
        None if keys is None else keys[1:2],
        dataclasses.replace(search, num_best=1),
    )
    room = alone.tokens.shape[2]
    np.testing.assert_array_equal(alone.tokens[0, 0], found.tokens[1, 0, :room])
    np.testing.assert_array_equal(alone.finished[0, 0], found.finished[1, 0])
    np.testing.assert_allclose(alone.score[0, 0], found.score[1, 0], rtol=1e-5)
    assert (found.tokens[1, :, room:] == 0).all()

    # The cached steps have seen what the parallel call sees; and greedy takes what that says is likeliest.
    parallel = jax.jit(lambda batch: jax.nn.log_softmax(translator(batch).logits))
    for best in range(search.num_best):
        tokens = np.asarray(found.tokens[:, best])
        log_p = np.array(parallel({**batch, "tokens": tokens}))
        of_tokens = np.take_along_axis(log_p, tokens[..., None], axis=2)[..., 0]
        total = np.where(tokens != 0, of_tokens, 0).sum(axis=1)
        np.testing.assert_allclose(found.log_probability[:, best], total, rtol=1e-5)
        if search == Search(max_extra=3):
            log_p[..., :END] = -np.inf
            log_p[:, 0, END] = -np.inf
            np.testing.assert_array_equal(np.where(tokens != 0, log_p.argmax(axis=2), 0), tokens)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"beam": 0}, "beam is 0; it must be an integer, at least 1"),
        ({"length_penalty": -0.1}, "length_penalty is -0.1; it must be a number, at least 0"),
        ({"max_ratio": float("inf")}, "max_ratio is inf"),
        ({"beam": 4, "num_best": 5}, "num_best is 5; a beam of 4 holds no more"),
        ({"beam": 4, "temperature": 1.0}, "samples need no beam"),
    ],
)
def test_a_search_that_cannot_be_is_refused(fields, message):
    with pytest.raises(UserError, match=message):
        call(Search).build(fields)


def test_keys_are_for_samples():
    for search, keys in ((Search(), jax.random.split(jax.random.key(0), 1)), (Search(temperature=1.0), None)):
        with pytest.raises(ValueError, match="keys are for sampling"):
            decode(LATER, batch_of([0], [1], 1), search, keys=keys)
