"""Which parameters a run ends with: what is tested at its end, and what predicts from then on."""

import dataclasses
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp

from training.checkpoints import Best, Checkpoints
from training.state import TrainState


def choose(
    final: str,
    last: TrainState,
    best: Best | None,
    checkpoints: Checkpoints | None,
    say: Callable[[str], None] = print,
) -> TrainState:
    """The state that `config.final` names.

    Args:
        final: "best", by validation, or the last where no evaluation is kept; "last"; or "average", of the
            newest checkpoints, all that are kept.
        last: the last state.
        best: the best evaluation.
        checkpoints: those of the run.
        say: called with one line for each damaged checkpoint that is left out of an average.

    Raises:
        RunError: every checkpoint is damaged.
    """
    if final == "average":
        assert checkpoints is not None
        return average(checkpoints.newest(last, say))
    return best.state if final == "best" and best is not None else last


def average(states: Iterable[TrainState]) -> TrainState:
    """The first state, with the mean of the parameters of all (Vaswani et al. 2017, section 6.1).

    The statistics of normalisation are averaged as well. That is near those of the averaged parameters
    where the states are near each other, as they are at the end of a run.
    """
    waiting = iter(states)
    first, count = next(waiting), 1
    total = first.params, first.statistics
    for state in waiting:
        total = jax.tree.map(jnp.add, total, (state.params, state.statistics))
        count += 1
    params, statistics = jax.tree.map(lambda x: x / count, total)
    return dataclasses.replace(first, params=params, statistics=statistics)
