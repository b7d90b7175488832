"""Decoding: from a model and an input to the sequences of tokens it finds most likely, or draws.

One loop serves every decoder of `models.decoders`. It keeps K hypotheses for each row of the batch, and at
each place either goes on with the K most probable continuations (beam search; greedy with K = 1) or draws one
for each (sampling). A hypothesis that has ended keeps its place among the K and is left as it is, so fewer
and fewer are live.

What becomes of a row depends on that row alone: neither the rest of the batch, nor how far the input is
padded, nor how many of the best are asked for, changes a token.
"""

import dataclasses
import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from models.decoders.decoder import Cache, Memory
from models.encoder_decoder import END, PADDING, START, UNKNOWN
from models.inputs import Batch
from spec import Natural, NonNegative


class Model(Protocol):
    """What decoding needs of a model; `models.encoder_decoder.EncoderDecoder` is one."""

    def encode(self, batch: Batch) -> Memory:
        """The memory of a batch."""

    def start(self, memory: Memory, length: int) -> Cache:
        """The cache before the first token, with room for `length` of them."""

    def step(self, cache: Cache, token: Int[Array, "B"]) -> tuple[Float[Array, "B V"], Cache]:
        """Logits of the next token after `token` (`START` at first), and the cache then."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """How to look for hypotheses.

    A row may be as long as `max_ratio` times its memory, rounded, plus `max_extra` tokens, its end counted;
    two at least.

    Attributes:
        beam: hypotheses that are kept, K; 1 is greedy.
        length_penalty: alpha of `score = log p / ((5 + length) / 6)^alpha`, where the end counts in the
            length; 0 ranks by probability, which favours short ones.
        temperature: above 0, tokens are drawn from `softmax(logits / temperature)` instead of searched for.
        num_best: hypotheses that are given: the best of the beam, or as many independent samples.
        max_ratio: tokens for each vector of the input, at most,
        max_extra: and so many more.

    Raises:
        ValueError: on more best ones than the beam holds, or a beam of samples.

    Source: length penalty from Wu et al. 2016, section 7.
    """

    beam: int = 1
    length_penalty: NonNegative = 1.0
    temperature: NonNegative = 0.0
    num_best: int = 1
    max_ratio: NonNegative = 2.0
    max_extra: Natural = 10

    def __post_init__(self):
        if self.temperature > 0 and self.beam > 1:
            raise ValueError(
                f"beam is {self.beam} and temperature {self.temperature}: samples need no beam; "
                "num_best is how many to draw"
            )
        if self.temperature == 0 and self.num_best > self.beam:
            raise ValueError(f"num_best is {self.num_best}; a beam of {self.beam} holds no more than it has")

    @property
    def width(self) -> int:
        """Hypotheses that are kept of each row, K."""
        return self.num_best if self.temperature > 0 else self.beam

    def room(self, length: int) -> int:
        """The most tokens, the end counted, that a memory of `length` vectors may be turned into."""
        return max(2, math.floor(self.max_ratio * length + 0.5) + self.max_extra)

    def score(self, log_probability: Float[Array, "*B"], length: Int[Array, "*B"]) -> Float[Array, "*B"]:
        """What hypotheses are ranked by; -inf of none stays -inf."""
        return log_probability / ((5.0 + length.astype(jnp.float32)) / 6.0) ** self.length_penalty


class Hypotheses(NamedTuple):
    """The best of each row, best first; those that have ended come before those that have not.

    Attributes:
        tokens: int32 `[B, n, L]`, with `END` where it ended, and 0 after.
        score: what it is ranked by, `[B, n]`.
        log_probability: of its tokens, the end included, `[B, n]`, in nats; -inf where a vocabulary is so
            small that there are not as many hypotheses.
        finished: `[B, n]`, False where the limit was reached before the end.
    """

    tokens: Int[Array, "B n L"]
    score: Float[Array, "B n"]
    log_probability: Float[Array, "B n"]
    finished: Bool[Array, "B n"]


class _State(NamedTuple):
    """What goes round the loop.

    Attributes:
        place: how many tokens there are of each live hypothesis.
        tokens: `[B, K, L]`, 0 where there is none.
        log_probability: `[B, K]`; -inf where there is no hypothesis.
        finished: `[B, K]`, which have ended.
        done: `[B]`, rows that nothing more can change.
        cache: of the `B K` hypotheses, row by row.
    """

    place: Int[Array, ""]
    tokens: Int[Array, "B K L"]
    log_probability: Float[Array, "B K"]
    finished: Bool[Array, "B K"]
    done: Bool[Array, "B"]
    cache: Cache


class _Choice(NamedTuple):
    """The next K hypotheses: which one each comes from, by which token, and how probable it is then."""

    parent: Int[Array, "B K"]
    token: Int[Array, "B K"]
    log_probability: Float[Array, "B K"]


def decode(model: Model, batch: Batch, search: Search, *, keys: PRNGKeyArray | None = None) -> Hypotheses:
    """The best hypotheses of each row of a batch.

    It can be compiled, `search` being static, once for each shape of the batch. `PADDING`, `UNKNOWN` and
    `START` are never made, and `END` not as the first token. A row stops when none of its live hypotheses can
    still beat what has ended, or at its limit; and where a model has no finite logits any more, such as
    beyond a table of learned positions.

    Args:
        model: anything with `encode`, `start` and `step`.
        batch: the columns of its inputs.
        search: how to look.
        keys: where it samples, a random key for each row, `[B]`: what is drawn for a row depends on its key
            alone.

    Raises:
        ValueError: keys without sampling, or none with it.
    """
    if (keys is not None) != (search.temperature > 0):
        raise ValueError("keys are for sampling, temperature > 0, and needed then")
    memory = model.encode(batch)
    batch_size, size = memory.mask.shape
    shape, room = (batch_size, search.width), search.room(size)
    limits = jnp.asarray([search.room(length) for length in range(size + 1)], jnp.int32)
    limits = limits[jnp.sum(memory.mask, axis=1)]
    repeated = jax.tree.map(lambda x: jnp.repeat(x, search.width, axis=0), memory)

    def go_on(state: _State) -> jax.Array:
        return (state.place < room) & ~jnp.all(state.done)

    def extend(state: _State) -> _State:
        last = jnp.where(state.place == 0, START, _at(state.tokens, state.place - 1))
        logits, cache = model.step(state.cache, last.reshape(-1))
        logits = logits.astype(jnp.float32).reshape(*shape, -1)
        continuations = _continuations(logits, state)
        # A row without any stays as it is.
        live = jnp.isfinite(continuations).any(axis=(1, 2))
        held = state.finished | (state.done | ~live)[:, None]
        if keys is None:
            choice = _most_probable(continuations, held, state.log_probability)
        else:
            choice = _drawn(logits / search.temperature, continuations, held, state, keys)

        finished = _rows(state.finished, choice.parent) | (choice.token == END)
        finished &= jnp.isfinite(choice.log_probability)
        tokens = _rows(state.tokens, choice.parent).at[:, :, state.place].set(choice.token)
        place = state.place + 1
        done = state.done | ~live | (place >= limits)
        done |= _settled(search, tokens, choice.log_probability, finished, place, limits)
        if search.beam > 1:
            flat = (jnp.arange(batch_size)[:, None] * search.width + choice.parent).reshape(-1)
            cache = Cache(cache.memory, jax.tree.map(lambda leaf: leaf[flat], cache.past))
        return _State(place, tokens, choice.log_probability, finished, done, cache)

    first = jnp.where(jnp.arange(search.width) == 0, 0.0, -jnp.inf) if keys is None else 0.0
    state = jax.lax.while_loop(
        go_on,
        extend,
        _State(
            place=jnp.zeros((), jnp.int32),
            tokens=jnp.zeros((*shape, room), jnp.int32),
            log_probability=jnp.broadcast_to(jnp.asarray(first, jnp.float32), shape),
            finished=jnp.zeros(shape, bool),
            done=jnp.zeros(batch_size, bool),
            cache=model.start(repeated, room),
        ),
    )
    return _ranked(search, state)


def _at(tokens: Int[Array, "B K L"], place: Int[Array, ""]) -> Int[Array, "B K"]:
    return jax.lax.dynamic_index_in_dim(tokens, jnp.maximum(place, 0), axis=2, keepdims=False)


def _continuations(logits: Float[Array, "B K V"], state: _State) -> Float[Array, "B K V"]:
    """Log-probabilities of all hypotheses with one token more, -inf where that may not be."""
    vocabulary = jnp.arange(logits.shape[-1])
    never = (vocabulary == PADDING) | (vocabulary == UNKNOWN) | (vocabulary == START)
    never |= (vocabulary == END) & (state.place == 0)
    longer = state.log_probability[..., None] + jax.nn.log_softmax(logits)
    return jnp.where(never[None, None] | jnp.isnan(longer), -jnp.inf, longer)


def _most_probable(
    continuations: Float[Array, "B K V"], held: Bool[Array, "B K"], log_probability: Float[Array, "B K"]
) -> _Choice:
    """What is held, as it is, and the most probable continuations of the rest; of equals, the first."""
    batch_size, width, vocab_size = continuations.shape
    candidates = jnp.where(held[..., None], -jnp.inf, continuations)
    candidates = candidates.at[..., PADDING].set(jnp.where(held, jnp.inf, -jnp.inf))
    best, index = jax.lax.top_k(candidates.reshape(batch_size, -1), width)
    parent = index // vocab_size
    kept = _rows(log_probability, parent)
    return _Choice(parent, index % vocab_size, jnp.where(best == jnp.inf, kept, best))


def _drawn(
    logits: Float[Array, "B K V"],
    continuations: Float[Array, "B K V"],
    held: Bool[Array, "B K"],
    state: _State,
    keys: PRNGKeyArray,
) -> _Choice:
    """What is held, as it is, and one drawn continuation of each of the rest."""
    batch_size, width, _ = continuations.shape

    def key_of(key: jax.Array, sample: jax.Array) -> jax.Array:
        return jax.random.fold_in(jax.random.fold_in(key, sample), state.place)

    samples = jnp.arange(width)
    each = jax.vmap(lambda key: jax.vmap(lambda sample: key_of(key, sample))(samples))(keys)
    allowed = jnp.where(jnp.isfinite(continuations), logits, -jnp.inf)
    token = jax.vmap(jax.vmap(jax.random.categorical))(each, allowed).astype(jnp.int32)
    longer = jnp.take_along_axis(continuations, token[..., None], axis=2)[..., 0]
    return _Choice(
        jnp.broadcast_to(samples[None], (batch_size, width)),
        jnp.where(held, PADDING, token),
        jnp.where(held, state.log_probability, longer),
    )


def _rows(x: Array, parent: Int[Array, "B K"]) -> Array:
    """`x [B, K, ...]` of the parents."""
    return jnp.take_along_axis(x, parent.reshape(parent.shape + (1,) * (x.ndim - 2)), axis=1)


def _settled(
    search: Search,
    tokens: Int[Array, "B K L"],
    log_probability: Float[Array, "B K"],
    finished: Bool[Array, "B K"],
    place: Int[Array, ""],
    limits: Int[Array, "B"],
) -> Bool[Array, "B"]:
    """Which rows have as many ended hypotheses as are asked for that no live one can beat any more.

    A live one can do no better than to lose no probability until its limit, where the penalty divides it by
    most.
    """
    reach = jnp.where(finished, -jnp.inf, search.score(log_probability, limits[:, None])).max(axis=1)
    score = search.score(log_probability, _lengths(tokens))
    beyond_reach = finished & (score >= reach[:, None])
    return jnp.isneginf(reach) | (beyond_reach.sum(axis=1) >= search.num_best)


def _lengths(tokens: Int[Array, "B K L"]) -> Int[Array, "B K"]:
    return jnp.sum(tokens != PADDING, axis=2, dtype=jnp.int32)


def _ranked(search: Search, state: _State) -> Hypotheses:
    """The best, of equals the one that ended first."""
    score = search.score(state.log_probability, _lengths(state.tokens))
    order = jnp.lexsort((-score, ~state.finished), axis=1)[:, : search.num_best]
    kept = _rows(state.log_probability, order)
    tokens = jnp.where(jnp.isneginf(kept)[..., None], PADDING, _rows(state.tokens, order))
    return Hypotheses(tokens, _rows(score, order), kept, _rows(state.finished, order))
