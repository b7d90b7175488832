"""The optimiser and the learning-rate schedule that a config names."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from ml_collections import ConfigDict

from errors import UserError, unknown

# Each maker gives the update for a learning rate of 1, weight decay apart.
RULES: dict[str, Callable[["Optimizer"], optax.GradientTransformation]] = {
    "adamw": lambda o: optax.scale_by_adam(b1=o.momentum, b2=o.second_momentum),
    "lion": lambda o: optax.scale_by_lion(b1=o.momentum, b2=o.second_momentum),
    "sgd": lambda o: optax.trace(decay=o.momentum, nesterov=True),
}
SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An optimiser without its learning rate, hashable, so that equal ones share a compiled step.

    Attributes:
        name: one of `RULES`.
        momentum: decay of the first moment.
        second_momentum: decay of the second moment (adamw, lion).
        weight_decay: decoupled: each update also subtracts `learning_rate * weight_decay * parameter`
            (Loshchilov and Hutter 2019), for parameters named `kernel` alone, not for biases,
            normalisations, positions and tokens.
        clip_norm: gradients are scaled down to this global norm; 0 turns clipping off.
        accumulation: slices that a batch is cut into, whose gradients are added up before one update:
            the update of the whole batch in the memory of a slice.
    """

    name: str
    momentum: float
    second_momentum: float
    weight_decay: float
    clip_norm: float
    accumulation: int = 1

    @classmethod
    def from_config(cls, config: ConfigDict) -> "Optimizer":
        """The optimiser of a config block; raises UserError on an unknown name or a number out of range."""
        if config.name not in RULES:
            raise unknown("optimizer", config.name, RULES)
        for name in ("momentum", "second_momentum"):
            if not 0 <= config[name] < 1:
                raise UserError(f"config.optimizer.{name} is {config[name]}; it must be in [0, 1)")
        for name in ("learning_rate", "weight_decay", "clip_norm"):
            if not 0 <= config[name] < math.inf:
                raise UserError(
                    f"config.optimizer.{name} is {config[name]}; it must be finite and not negative"
                )
        # A run from before there was a field has its default.
        given = {f.name: config[f.name] for f in dataclasses.fields(cls) if f.name in config}
        made = cls(**given)
        if not isinstance(made.accumulation, int) or made.accumulation < 1:
            raise UserError(f"config.optimizer.accumulation is {made.accumulation}; it must be at least 1")
        return made

    def transformation(self) -> optax.GradientTransformation:
        """Gradients to updates, for a learning rate of 1 (the step multiplies)."""
        clip = optax.clip_by_global_norm(self.clip_norm) if self.clip_norm else optax.identity()
        decay = optax.add_decayed_weights(self.weight_decay, mask=decayed)
        return optax.chain(clip, RULES[self.name](self), decay)


def decayed(parameters: Any) -> Any:
    """True for the parameters that weight decay applies to: the kernels."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: "kernel" in jax.tree_util.keystr(path), parameters
    )


def learning_rates(config: ConfigDict, num_steps: int) -> np.ndarray:
    """The learning rate of every step, float32 `[num_steps]`.

    Warm-up is linear over `warmup` of all steps; then the schedule falls towards 0, which the step after the
    last would have (linear, cosine), stays (constant), or falls as one over the square root of the step
    (inverse_sqrt; Vaswani et al. 2017).

    Raises:
        UserError: on an unknown schedule or a warm-up outside [0, 1].
    """
    if config.schedule not in SCHEDULES:
        raise unknown("optimizer schedule", config.schedule, SCHEDULES)
    if not 0 <= config.warmup <= 1:
        raise UserError(f"config.optimizer.warmup is {config.warmup}; it is a fraction in [0, 1]")
    step = np.arange(num_steps, dtype=np.float64)
    warmup = round(config.warmup * num_steps)
    rising = np.minimum(1.0, (step + 1) / (warmup + 1))
    progress = np.clip((step - warmup) / max(num_steps - warmup, 1), 0, 1)
    falling = {
        "constant": np.ones_like(step),
        "linear": 1 - progress,
        "cosine": 0.5 * (1 + np.cos(np.pi * progress)),
        "inverse_sqrt": np.sqrt((warmup + 1) / np.maximum(step + 1, warmup + 1)),
    }[config.schedule]
    return (config.learning_rate * rising * falling).astype(np.float32)
