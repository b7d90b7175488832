"""One file per experiment family, each with `get_config(argument)`; and what a whole config is.

A config has the fields of its task and those of the training loop, side by side: every argument of
`tasks.TASKS[task]` and of `training.loop.Loop`.
"""

from collections.abc import Callable
from typing import Any

from ml_collections import ConfigDict

from spec import Field, Registry, row_of
from tasks import TASKS
from training.loop import LOOP, Loop


class Experiment(Registry):
    """The registry of whole configs."""

    def fields(self, word: str) -> dict[str, Field]:
        """Those of the task, and those of the loop."""
        return {**super().fields(word), **LOOP.fields(next(iter(LOOP)))}


EXPERIMENT = Experiment("task", TASKS.rows, key=TASKS.key)


def experiment(task: Callable[..., Any], **fields: Any) -> ConfigDict:
    """A config: every field of a task and of the loop, at its default but for those given.

    Args:
        task: a row of `tasks.TASKS`.
        fields: the numbers of the experiment.

    Raises:
        UserError: there is no such field, or the value is not allowed.
    """
    return EXPERIMENT.block(row_of(task)[1], **fields)


def loop_of(config: ConfigDict) -> Loop:
    """What a config says of the training loop."""
    return LOOP.build({name: config[name] for name in LOOP.fields(next(iter(LOOP)))}, "config")
