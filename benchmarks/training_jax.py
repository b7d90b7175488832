"""Our side of the training benchmark: the step that train.py makes from configs/image.py."""

import functools
import math
import time
from collections.abc import Callable

import jax
import numpy as np

import tasks
from benchmarks import image_problem
from models.images import IMAGE_MODELS
from training import randomness, sharding
from training.optimizer import OPTIMIZERS
from training.state import create, train_step


def prepare(model: str) -> tuple[Callable[[int], float], dict[str, int]]:
    """A function that makes so many updates and returns the seconds they took, and the parameters."""
    config = image_problem.config(model)
    batches = image_problem.batches(config.batch_size)
    network = functools.partial(
        IMAGE_MODELS.build,
        config.model,
        image_shape=image_problem.IMAGE_SHAPE,
        num_classes=image_problem.NUM_CLASSES,
    )
    optimizer = OPTIMIZERS.build(config.optimizer, "config.optimizer")
    structure, state = create(lambda rngs: network(rngs=rngs), randomness.key(config.seed, "init"), optimizer)
    devices = sharding.DataParallel(1, [config.batch_size])
    state = devices.replicate(state)
    update = train_step(tasks.build(config), structure, optimizer)
    rates = optimizer.learning_rates(1000)
    key = randomness.key(config.seed, "dropout")
    done = 0

    def run(steps: int) -> float:
        nonlocal state, done
        start = time.perf_counter()
        for step in range(done, done + steps):
            batch = devices.split(batches[step % len(batches)])
            state, metrics = update(state, batch, rates[step % len(rates)], key)
        jax.block_until_ready((state, metrics))
        seconds = time.perf_counter() - start
        done += steps
        assert np.isfinite(metrics["loss"])
        return seconds

    return run, {"parameters": sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state.params))}
