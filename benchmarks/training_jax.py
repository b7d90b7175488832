"""Our side of the training benchmark: the step that train.py makes from configs/image.py."""

import math
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import nnx

import tasks
from benchmarks import image_problem
from models import variants
from training import randomness, sharding
from training.optimizer import Optimizer, learning_rates
from training.state import create, train_step


def prepare(model: str) -> tuple[Callable[[int], float], dict[str, int]]:
    """A function that makes so many updates and returns the seconds they took, and the parameters."""
    config = image_problem.config(model)
    batches = image_problem.batches(config.batch_size)
    network = variants.build(
        config.model,
        image_shape=image_problem.IMAGE_SHAPE,
        num_classes=image_problem.NUM_CLASSES,
        rngs=nnx.Rngs(params=randomness.key(config.seed, "init")),
    )
    optimizer = Optimizer.from_config(config.optimizer)
    structure, state = create(network, optimizer)
    devices = sharding.DataParallel(1, [config.batch_size])
    state = devices.replicate(state)
    update = train_step(tasks.build(config), structure, optimizer)
    rates = learning_rates(config.optimizer, 1000)
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
