"""What a config says of the training loop, whatever the task."""

import dataclasses
from typing import Annotated, Literal

from errors import UserError
from spec import Block, Natural, call
from training.optimizer import OPTIMIZERS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loop:
    """How a run goes.

    Attributes:
        seed: of the initial parameters, the order of examples, augmentation and dropout. What is held out is
            dataset.split_seed's.
        duration: how long to train, "N steps", "N epochs" or "N examples".
        optimizer: how parameters are updated.
        log_every: steps, epochs or examples between lines of training metrics.
        evaluate_every: the same between evaluations on validation, of which there is one at the end; None:
            that one alone.
        checkpoint_every: the same between checkpoints, of which there is one at the end; None: none at all.
        keep_checkpoints: newest ones that are kept; the best one is kept besides.
        patience: evaluations without a better one after which the run ends; None: it goes on.
        final: what is tested and used: "best" on validation, "last", or the "average" of those kept.
        test: measure the test split, once, at the end.
        num_devices: devices to train on; None: all that divide every batch.
        tensorboard: also write TensorBoard events (extra "tensorboard").
    """

    seed: Natural = 0
    duration: str
    optimizer: Annotated[Block, OPTIMIZERS]
    log_every: str | None = "100 steps"
    evaluate_every: str | None = "1 epoch"
    checkpoint_every: str | None = "1 epoch"
    keep_checkpoints: int = 3
    patience: int | None = None
    final: Literal["best", "last", "average"] = "best"
    test: bool = True
    num_devices: int | None = None
    tensorboard: bool = False

    def __post_init__(self):
        if self.final == "average" and self.checkpoint_every is None:
            raise UserError("config.final is 'average', which is of checkpoints; set config.checkpoint_every")
        if self.patience is not None and self.evaluate_every is None:
            raise UserError(
                f"config.patience is {self.patience} evaluations, but config.evaluate_every is None; set both"
            )


LOOP = call(Loop)
