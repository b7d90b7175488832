"""The state of a run, and the two compiled functions that advance and evaluate it."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from training.optimizer import Optimizer


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All arrays that a run carries from step to step.

    Attributes:
        step: updates made, int32.
        params: trained parameters.
        statistics: what the model carries besides, such as BatchNorm's averages.
        optimizer: the optimiser's moments.
    """

    step: jax.Array
    params: nnx.State
    statistics: nnx.State
    optimizer: Any


def split(model: nnx.Module) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    """A model's structure, its parameters, and the rest of its arrays."""
    structure, params, statistics = nnx.split(model, nnx.Param, ...)  # type: ignore[misc]
    return structure, params, statistics


def create(
    model: Callable[[nnx.Rngs], nnx.Module], key: jax.Array, optimizer: Optimizer
) -> tuple[nnx.GraphDef, TrainState]:
    """A model's structure and the state at step 0, made by one compiled program.

    Args:
        model: makes it.
        key: its streams begin with this.
        optimizer: whose moments the state holds.
    """
    structure: list[nnx.GraphDef] = []

    @jax.jit
    def initial(key: jax.Array) -> TrainState:
        graph, params, statistics = split(model(nnx.Rngs(params=key)))
        structure.append(graph)
        moments = optimizer.transformation().init(params)
        return TrainState(jnp.zeros((), jnp.int32), params, statistics, moments)

    state = initial(key)
    return structure[0], state


@functools.lru_cache(maxsize=16)
def train_step(task, structure: nnx.GraphDef, optimizer: Optimizer) -> Callable:
    """The compiled update `(state, batch, learning_rate, key) -> (state, metrics)`.

    The state is donated. Equal task, structure and optimiser give the same function, so that the runs
    of a study compile once.

    Sums over the slices of a batch are divided once, so `optimizer.accumulation` changes no update, with
    two exceptions: each slice has dropout of its own, and BatchNorm normalises by the slice and updates its
    averages once for each.
    """
    transformation = optimizer.transformation()

    def step(state: TrainState, batch, learning_rate, key):
        @functools.partial(jax.value_and_grad, has_aux=True)
        def loss(params, statistics, batch, key):
            model = nnx.merge(structure, params, statistics, copy=True)
            total, weight, sums = task.loss(model, batch, rngs=nnx.Rngs(dropout=key))
            return total, (split(model)[2], weight, sums)

        def sums_of(statistics, batch, key):
            (total, (statistics, weight, sums)), gradients = loss(state.params, statistics, batch, key)
            return statistics, (gradients, weight, {"loss": total, **sums})

        key = jax.random.fold_in(key, state.step)
        statistics, (gradients, weight, sums) = accumulated(
            sums_of, state.statistics, batch, key, slices=optimizer.accumulation
        )
        gradients, means = jax.tree.map(lambda s: s / weight, (gradients, sums))
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
            updates, moments = transformation.update(gradients, state.optimizer, state.params)
        params = jax.tree.map(lambda p, u: p - learning_rate * u, state.params, updates)
        metrics = {**means, "gradient_norm": optax.tree.norm(gradients)}
        return TrainState(state.step + 1, params, statistics, moments), metrics

    return jax.jit(step, donate_argnums=0)


def accumulated(function: Callable, statistics: Any, batch: Any, key: jax.Array, *, slices: int) -> Any:
    """`function` over the slices of a batch, one after the other, what it gives added up.

    Slices have the same number of examples, rounded up; what is left in the end is a smaller one of its own,
    so that no example is made up.

    Args:
        function: `(statistics, batch, key) -> (statistics, sums)`.
        statistics: those before the first slice.
        batch: arrays `[B, ...]`.
        key: each of several slices gets one made from it.
        slices: how many; at most B are made.

    Returns:
        The statistics after the last slice, and the sums over all.
    """
    length = len(jax.tree.leaves(batch)[0])
    size = -(-length // slices)
    count = length // size
    if size == length:
        return function(statistics, batch, key)

    def add(carry, part):
        statistics, total = carry
        batch, number = part
        statistics, sums = function(statistics, batch, jax.random.fold_in(key, number))
        return (statistics, jax.tree.map(jnp.add, total, sums)), None

    # Every count-th example, so that each slice lies on all the devices that the batch is spread over.
    parts = jax.tree.map(lambda x: x[: size * count].reshape(size, count, *x.shape[1:]).swapaxes(0, 1), batch)
    rest = jax.tree.map(lambda x: x[size * count :], batch)
    shapes = jax.eval_shape(function, statistics, jax.tree.map(lambda x: x[0], parts), key)[1]
    carry = statistics, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    carry, _ = jax.lax.scan(add, carry, (parts, jnp.arange(count)))
    return add(carry, (rest, count))[0] if length % size else carry


@functools.lru_cache(maxsize=16)
def evaluation_step(task, structure: nnx.GraphDef) -> jax.stages.Wrapped:
    """The compiled `(params, statistics, batch) -> what the task measures by`."""

    @jax.jit
    def step(params, statistics, batch):
        return task.evaluate(nnx.merge(structure, params, statistics), batch)

    return step


@functools.lru_cache(maxsize=16)
def prediction_step(task, structure: nnx.GraphDef) -> jax.stages.Wrapped:
    """The compiled `(params, statistics, batch) -> predictions`."""

    @jax.jit
    def step(params, statistics, batch):
        return task.predict(nnx.merge(structure, params, statistics), batch)

    return step
