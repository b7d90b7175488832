"""Update rules, by the word that a config names each by, and the learning-rate schedule."""

import dataclasses
from typing import Annotated, Any, Literal

import jax
import numpy as np
import optax

from spec import Fraction, NonNegative, Positive, Range, Registry

Decay = Annotated[float, Range(0, 1, "most")]
Schedule = Literal["cosine", "linear", "constant", "inverse_sqrt"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimizer:
    """An update rule, hashable, so that equal ones share a compiled step.

    Attributes:
        learning_rate: at its peak.
        schedule: what follows the warm-up: the rate falls towards 0, which the step after the last would have
            (linear, cosine), stays (constant), or falls as one over the square root of the step
            (inverse_sqrt; Vaswani et al. 2017).
        warmup: fraction of the duration over which the rate rises, linearly.
        weight_decay: decoupled: each update also subtracts `learning_rate * weight_decay * parameter`
            (Loshchilov and Hutter 2019), for parameters named `kernel` alone, not for biases,
            normalisations, positions and tokens.
        clip_norm: gradients are scaled down to this global norm; None: no clipping.
        accumulation: slices that a batch is cut into, whose gradients are added up before one update: the
            update of the whole batch in the memory of a slice.
    """

    learning_rate: NonNegative = dataclasses.field(default=1e-3, compare=False)
    schedule: Schedule = dataclasses.field(default="cosine", compare=False)
    warmup: Fraction = dataclasses.field(default=0.1, compare=False)
    weight_decay: NonNegative = 0.05
    clip_norm: Positive | None = 1.0
    accumulation: int = 1

    def rule(self) -> optax.GradientTransformation:
        """Gradients to updates for a learning rate of 1, clipping and weight decay apart."""
        raise NotImplementedError

    def transformation(self) -> optax.GradientTransformation:
        """Gradients to updates, for a learning rate of 1 (the step multiplies)."""
        clip = optax.identity() if self.clip_norm is None else optax.clip_by_global_norm(self.clip_norm)
        return optax.chain(clip, self.rule(), optax.add_decayed_weights(self.weight_decay, mask=decayed))

    def learning_rates(self, num_steps: int) -> np.ndarray:
        """The learning rate of every step, float32 `[num_steps]`."""
        step = np.arange(num_steps, dtype=np.float64)
        warmup = round(self.warmup * num_steps)
        rising = np.minimum(1.0, (step + 1) / (warmup + 1))
        progress = np.clip((step - warmup) / max(num_steps - warmup, 1), 0, 1)
        falling = {
            "constant": np.ones_like(step),
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + np.cos(np.pi * progress)),
            "inverse_sqrt": np.sqrt((warmup + 1) / np.maximum(step + 1, warmup + 1)),
        }[self.schedule]
        return (self.learning_rate * rising * falling).astype(np.float32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Attributes:
        momentum: decay of the first moment.
        second_momentum: decay of the second moment.
    """

    momentum: Decay = 0.9
    second_momentum: Decay = 0.99

    def rule(self) -> optax.GradientTransformation:
        """Adam's."""
        return optax.scale_by_adam(b1=self.momentum, b2=self.second_momentum)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lion(Optimizer):
    """The sign of a moment (Chen et al. 2023).

    Attributes:
        momentum: share of the moment in what the sign is taken of.
        second_momentum: decay of the moment.
    """

    momentum: Decay = 0.9
    second_momentum: Decay = 0.99

    def rule(self) -> optax.GradientTransformation:
        """Lion's."""
        return optax.scale_by_lion(b1=self.momentum, b2=self.second_momentum)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent with Nesterov's momentum.

    Attributes:
        momentum: decay of the moment.
    """

    momentum: Decay = 0.9

    def rule(self) -> optax.GradientTransformation:
        """The moment's."""
        return optax.trace(decay=self.momentum, nesterov=True)


OPTIMIZERS = Registry("optimizer", {"adamw": AdamW, "lion": Lion, "sgd": SGD})


def decayed(parameters: Any) -> Any:
    """True for the parameters that weight decay applies to: the kernels."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: "kernel" in jax.tree_util.keystr(path), parameters
    )
