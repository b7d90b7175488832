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


def create(model: nnx.Module, optimizer: Optimizer) -> tuple[nnx.GraphDef, TrainState]:
    """Split a model, once, into its structure and the state at step 0."""
    structure, params, statistics = split(model)
    moments = optimizer.transformation().init(params)
    return structure, TrainState(jnp.zeros((), jnp.int32), params, statistics, moments)


@functools.lru_cache(maxsize=16)
def train_step(task, structure: nnx.GraphDef, optimizer: Optimizer) -> Callable:
    """The compiled update `(state, batch, learning_rate, key) -> (state, metrics)`.

    The state is donated. Equal task, structure and optimiser give the same function, so that the runs
    of a study compile once.
    """
    transformation = optimizer.transformation()

    def step(state: TrainState, batch, learning_rate, key):
        def mean_loss(params):
            model = nnx.merge(structure, params, state.statistics, copy=True)
            rngs = nnx.Rngs(dropout=jax.random.fold_in(key, state.step))
            total, weight, sums = task.loss(model, batch, rngs=rngs)
            statistics = split(model)[2]
            means = jax.tree.map(lambda s: s / weight, sums)
            return total / weight, (statistics, means)

        (loss, (statistics, means)), gradients = jax.value_and_grad(mean_loss, has_aux=True)(state.params)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
            updates, moments = transformation.update(gradients, state.optimizer, state.params)
        params = jax.tree.map(lambda p, u: p - learning_rate * u, state.params, updates)
        metrics = {"loss": loss, **means, "gradient_norm": optax.tree.norm(gradients)}
        return TrainState(state.step + 1, params, statistics, moments), metrics

    return jax.jit(step, donate_argnums=0)


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
