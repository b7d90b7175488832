"""Recurrent decoders, from the one that reads a summary to those that attend at every step.

What depends on no state is computed for all places at once: the inputs' part of the gates, the keys' part
of the scores, and, where nothing feeds on it, the attention and the output too. The scan over places holds
what is left.
"""

from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import hard
from errors import UserError
from models.decoders.decoder import Cache, Decoded, Draws, Memory
from models.layers.linear import Linear
from models.layers.recurrent import CELLS, RecurrentLayer, State
from models.mechanisms import MECHANISMS
from models.rngs import named
from spec import Block, Natural, Rate, derived, nothing

# One head asks from a state at a time, without knowing what other queries there are.
ATTENTION = MECHANISMS.where(
    lambda make: make is nothing or make.in_recurrent, "of a recurrent decoder", head_dim=lambda dim: dim
)


class Seen(NamedTuple):
    """What attention sees of a memory at every place.

    Attributes:
        keys: as the mechanism takes them, `[B, S, 1, A]`.
        values: `[B, S, 1, D]`.
        mask: `[B, 1, 1, S]`.
    """

    keys: Float[Array, "B S 1 A"]
    values: Float[Array, "B S 1 D"]
    mask: Bool[Array, "B 1 1 S"]


class Past(NamedTuple):
    """What a decoder remembers.

    Attributes:
        states: those of each cell, each `[B, H]`.
        fed: the last vector, `[B, D]`, where the next step reads it.
        place: how many steps there were, `[B]`.
    """

    states: tuple[State, ...]
    fed: Float[Array, "B D"] | None
    place: Int[Array, "B"]


class Look(NamedTuple):
    """What attention finds.

    Attributes:
        context: `[B, T, D]`.
        weights: `[B, 1, T, S]`; None without attention.
        draws: of hard attention.
    """

    context: Float[Array, "B T D"]
    weights: Float[Array, "B 1 T S"] | None = None
    draws: Draws | None = None


class Made(NamedTuple):
    """What a step makes.

    Attributes:
        state: of the last cell, `[B, H]`.
        look: without its axis T; None where nothing feeds on it, and all places can attend at once.
        vector: the output, `[B, D]`; None likewise.
    """

    state: Float[Array, "B H"]
    look: Look | None
    vector: Float[Array, "B D"] | None


class Steps(nnx.Variable):
    """How many steps of training there were; a float, since a final average takes its mean."""


class Noise(NamedTuple):
    """What is random in training, drawn for all places before the scan; None where nothing is.

    Attributes:
        between: factors of the vectors that go from cell to cell, `[T, cells - 1, B, H]`.
        features: factors of what the output reads, `[T, B, F]`.
        looks: keys for draws of hard attention, `[T]`.
        soft: whether hard attention takes the expectation instead of a draw, bool `[T]`, all alike.
    """

    between: jax.Array | None = None
    features: jax.Array | None = None
    looks: jax.Array | None = None
    soft: jax.Array | None = None


class RecurrentDecoder(nnx.Module):
    """Recurrent cells that see a memory as a summary or by attention with one head.

    With y the embedded token before a place, s the state of the last cell and c the context:

        order "bahdanau"    c = attend(s_before);  s = cells(s_before, [y; c]);  out = maxout(W [s; y; c])
        order "luong"       s = cells(s_before, [y; out_before]);  c = attend(s);  out = tanh(W [s; c])

    The first state is `tanh(W summary)`. Queries are states, keys and values are the memory's vectors; a
    linear map makes states as wide as these where they are not.

    Args:
        dim: width D of the vectors.
        cell: what a step does.
        num_layers: cells on top of each other; the context goes into the first, the last one's state asks.
        hidden_dim: width H of a state.
        attention: how it attends to the memory; "none" has a linear map of the summary in place of every
            context.
        map_keys: map the memory linearly before it is compared, so that a dot product is Luong's score
            "general".
        order: "bahdanau", attention before the cells; or "luong", after them.
        input_feeding: the vector of a place goes into the cells at the next (order "luong"). Without, all
            places attend at once.
        gate: the context times a sigmoid of a linear map of the query, a scalar.
        choice: "soft", the context is the mean of the values under the weights; or "hard", it is one of them,
            drawn in training, the likeliest else. Its weights learn by `attention.hard.variational_loss`.
        soft_steps: for how many steps of training, the first ones, hard attention takes the mean instead. A
            draw from weights that do not know yet where to look does harm, and all that they learn from that
            is to look where nothing is.
        summary: what the first state is made of: "ends", the last and the first real vector of the memory, in
            which an encoder that reads from both ends says most; or "mean", of all.
        dropout_rate: dropout on what goes from cell to cell and into the output layer.
        rngs: source of the initial parameters.

    Raises:
        ValueError: where the arguments contradict each other.
        UserError: on a block of attention that does not work.

    Source: Cho et al. 2014 (a summary at every step); Bahdanau et al. 2015; Luong et al. 2015 (the scores,
    local attention, input feeding); Xu et al. 2015 (hard choice, gate, a mean as summary).
    """

    def __init__(
        self,
        dim: int,
        *,
        cell: Literal["gru", "lstm", "plain"] = "gru",
        num_layers: int = 1,
        hidden_dim: Annotated[int, derived(lambda dim: dim)],
        attention: Annotated[Block, ATTENTION] | str = "additive",
        map_keys: bool = False,
        order: Literal["bahdanau", "luong"] = "bahdanau",
        input_feeding: bool = True,
        gate: bool = False,
        choice: Literal["soft", "hard"] = "soft",
        soft_steps: Natural = 0,
        summary: Literal["ends", "mean"] = "ends",
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        if order == "bahdanau" and not input_feeding:
            raise ValueError("order 'bahdanau' feeds the context to the cells; input_feeding must be True")
        if soft_steps and choice != "hard":
            raise ValueError(f"soft_steps is {soft_steps} and choice {choice!r}; it is of 'hard'")
        kind = ATTENTION.chosen(attention, "attention")
        if kind == "none" and (map_keys or gate or choice == "hard"):
            raise ValueError("attention kind 'none' has no keys to map, no gate and no hard choice")
        self.cell, self.order, self.choice, self.summary = cell, order, choice, summary
        self.dropout_rate, self.soft_steps, self.kind = dropout_rate, soft_steps, kind
        self.steps = Steps(jnp.zeros(())) if soft_steps else None
        self.feeds = order == "luong" and input_feeding
        fed = dim if input_feeding else 0
        self.cells = nnx.List(
            RecurrentLayer(
                hidden_dim if layer else dim + fed,
                hidden_dim,
                cell=cell,
                directions=1,
                rngs=named(rngs, f"cells.{layer}"),
            )
            for layer in range(num_layers)
        )

        def linear(name: str, inputs: int, outputs: int, *, use_bias: bool = True) -> Linear:
            return Linear(inputs, outputs, use_bias=use_bias, rngs=named(rngs, name))

        width = dim if summary == "mean" else 2 * dim
        self.first = linear("first", width, num_layers * CELLS[cell].states * hidden_dim)
        self.context = linear("context", width, dim) if kind == "none" else None
        self.key = linear("key", dim, dim, use_bias=False) if map_keys else None
        self.query = None if kind == "none" or hidden_dim == dim else linear("query", hidden_dim, dim)
        self.mechanism = ATTENTION.build(
            attention,
            "attention",
            num_heads=1,
            num_kv_heads=1,
            head_dim=dim,
            rngs=named(rngs, "mechanism"),
        )
        if choice == "hard" and not self.mechanism.sums_to_1:
            raise UserError(
                f"choice 'hard' draws from weights that sum to 1, and those of attention {kind!r} need not; "
                "choose another normalize, or renormalize=True"
            )
        self.gate = linear("gate", hidden_dim, 1) if gate else None
        features = hidden_dim + dim + (dim if order == "bahdanau" else 0)
        self.output = linear("output", features, 2 * dim if order == "bahdanau" else dim)

    def __call__(
        self,
        y: Float[Array, "B T D"],
        memory: Memory,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Decoded:
        """The vectors after each place of a known sequence; see `models.decoders.decoder.Decoder`."""
        batch, length, _ = y.shape
        seen, past = self.start(memory, length)
        noise = self._noise(batch, length, train, rngs)

        def step(past: Past, inputs: tuple[jax.Array, Noise]) -> tuple[Past, Made]:
            return self._step(seen, past, *inputs)

        _, made = jax.lax.scan(step, past, (self._gates(y.swapaxes(0, 1)), noise))
        # The axis of places, which the scan puts first, to where it belongs.
        made = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1 if x.ndim == 2 else -2), made)
        look = made.look or self._look(seen, made.state, past.place, jax.tree.map(lambda x: x[0], noise))
        vectors = made.vector
        if vectors is None:
            factors = None if noise.features is None else noise.features.swapaxes(0, 1)
            vectors = self._output(made.state, y, look.context, factors)
        weights = (look.weights,) if return_weights and look.weights is not None else ()
        return Decoded(vectors, weights, look.draws)

    def start(self, memory: Memory, length: int) -> Cache:
        """The cache before the first place; its size is the same for any length."""
        values = jnp.where(memory.mask[..., None], memory.vectors, 0)
        summary = _summary(values, memory.mask, self.summary)
        seen: Seen | jax.Array
        if self.mechanism is None:
            assert self.context is not None
            seen = self.context(summary)
        else:
            keys = values if self.key is None else self.key(values)
            mask = memory.mask[:, None, None]
            seen = Seen(self.mechanism.prepare(keys[:, :, None]), values[:, :, None], mask)
        first = jnp.split(jnp.tanh(self.first(summary)), len(self.cells) * CELLS[self.cell].states, axis=-1)
        each = CELLS[self.cell].states
        states = tuple(tuple(first[i : i + each]) for i in range(0, len(first), each))
        fed = jnp.zeros_like(values[:, 0]) if self.feeds else None
        return Cache(seen, Past(states, fed, jnp.zeros(len(values), jnp.int32)))

    def step(self, cache: Cache, y: Float[Array, "B D"]) -> tuple[Float[Array, "B D"], Cache]:
        """The vector after one more place, and the cache then."""
        seen, before = cache
        past, made = self._step(seen, before, self._gates(y), Noise())
        vector = made.vector
        if vector is None:
            look = made.look or self._look_once(seen, made.state, before.place, Noise())
            vector = self._output(made.state, y, look.context, None)
        return vector, Cache(seen, past)

    def _gates(self, y: Float[Array, "*B D"]) -> Float[Array, "*B G"]:
        """The inputs' part of the first cell's gates."""
        layer = self.cells[0].input
        assert layer.bias is not None
        rows = y.reshape(-1, y.shape[-1]) @ layer.kernel[: y.shape[-1]] + layer.bias[...][None]
        return rows.reshape(*y.shape[:-1], -1)

    def _step(self, seen: Seen | jax.Array, past: Past, gates: jax.Array, noise: Noise) -> tuple[Past, Made]:
        """One place; what can wait until all states are known is left out."""
        look = vector = None
        fed = past.fed
        if self.order == "bahdanau":
            look = self._look_once(seen, past.states[-1][0], past.place, noise)
            fed = look.context
        if fed is not None:
            gates = gates + fed @ self.cells[0].input.kernel[-fed.shape[-1] :]
        states: list[State] = []
        for index, (layer, before) in enumerate(zip(self.cells, past.states, strict=True)):
            if index:
                below = states[-1][0]
                gates = layer.input(below if noise.between is None else below * noise.between[index - 1])
            states.append(CELLS[self.cell].step(before, gates, before[0] @ layer.recurrent_kernel[0]))
        state = states[-1][0]
        if self.feeds:
            look = self._look_once(seen, state, past.place, noise)
            vector = self._output(state, None, look.context, noise.features)
        return Past(tuple(states), vector, past.place + 1), Made(state, look, vector)

    def _look_once(
        self,
        seen: Seen | jax.Array,
        state: Float[Array, "B H"],
        place: Int[Array, "B"],
        noise: Noise,
    ) -> Look:
        """What attention finds at one place, without an axis of places."""
        look = self._look(seen, state[:, None], place, noise)
        return jax.tree.map(lambda x: jnp.squeeze(x, -1 if x.ndim == 2 else -2), look)

    def _look(
        self,
        seen: Seen | jax.Array,
        state: Float[Array, "B T H"],
        place: Int[Array, "B"],
        noise: Noise,
    ) -> Look:
        """What attention finds from some states, the first of which is that of `place`."""
        if isinstance(seen, jax.Array):
            return Look(jnp.broadcast_to(seen[:, None], (*state.shape[:2], seen.shape[-1])))
        assert self.mechanism is not None
        query = state if self.query is None else self.query(state)
        context, weights = self.mechanism(
            query[:, :, None],
            seen.keys,
            seen.values,
            mask=seen.mask,
            return_weights=True,
            query_offset=place if "query_offset" in self.mechanism.takes else None,
            prepared=True,
        )
        draws = None
        if self.choice == "hard":
            if noise.looks is None:
                glimpse = hard.choose(weights, seen.values, jnp.argmax(weights, axis=-1))
            else:
                glimpse = hard.sample(weights, seen.values, sample_key=noise.looks)
            log_probability, mean, context = glimpse.log_probability[:, 0], context, glimpse.context
            if noise.soft is not None:
                context = jnp.where(noise.soft, mean, context)
                log_probability = jnp.where(noise.soft, 0, log_probability)  # nothing was drawn
            draws = Draws(log_probability, glimpse.entropy[:, 0])
        context = context[:, :, 0]
        if self.gate is not None:
            context = jax.nn.sigmoid(self.gate(state)) * context
        return Look(context, weights, draws)

    def _output(
        self,
        state: Float[Array, "*B H"],
        y: Float[Array, "*B D"] | None,
        context: Float[Array, "*B D"],
        factors: Float[Array, "*B F"] | None,
    ) -> Float[Array, "*B D"]:
        """The vectors that come out."""
        parts = (state, context) if self.order == "luong" or y is None else (state, y, context)
        features = jnp.concatenate(parts, axis=-1)
        out = self.output(features if factors is None else features * factors)
        if self.order == "luong":
            return jnp.tanh(out)
        return jnp.max(out.reshape(*out.shape[:-1], -1, 2), axis=-1)

    def _noise(self, batch: int, length: int, train: bool, rngs: nnx.Rngs | None) -> Noise:
        """What is random at all places."""
        if rngs is None:
            return Noise()
        looks = between = features = soft = None
        if self.choice == "hard" and train:
            looks = jax.random.split(rngs.dropout(), length)
            if self.steps is not None:
                soft = jnp.broadcast_to(self.steps[...] < self.soft_steps, (length,))
                self.steps[...] += 1
        if self.dropout_rate > 0:
            keep = 1 - self.dropout_rate

            def factors(*shape: int) -> jax.Array:
                return jax.random.bernoulli(rngs.dropout(), keep, shape).astype(jnp.float32) / keep

            features = factors(length, batch, self.output.in_features)
            if len(self.cells) > 1:
                between = factors(length, len(self.cells) - 1, batch, self.cells[0].hidden_dim)
        return Noise(between, features, looks, soft)


def _summary(vectors: Float[Array, "B S D"], mask: Bool[Array, "B S"], kind: str) -> Float[Array, "B F"]:
    """The last and the first real vector, or the mean of all; 0 where none is."""
    if kind == "mean":
        count = jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1).astype(vectors.dtype)
        return jnp.sum(vectors, axis=1) / count
    last = mask.shape[1] - 1 - jnp.argmax(mask[:, ::-1], axis=1)
    ends = jnp.stack([last, jnp.argmax(mask, axis=1)], axis=1)
    return jnp.take_along_axis(vectors, ends[..., None], axis=1).reshape(len(vectors), -1)
