"""The smallest task there is: fit a line to numbers."""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from training import randomness
from training.optimizer import Optimizer
from training.state import TrainState, create


class Line(nnx.Module):
    """`a x + b`, normalised over the batch or not, with dropout or not."""

    def __init__(self, *, normalise: bool = False, dropout_rate: float = 0.0):
        self.kernel = nnx.Param(jnp.array([2.0]))
        self.bias = nnx.Param(jnp.array([1.0]))
        self.norm = nnx.BatchNorm(1, momentum=0.9, rngs=nnx.Rngs(0)) if normalise else None
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, x, *, train, rngs=None):
        y = self.dropout(x, deterministic=rngs is None, rngs=rngs)[:, None]
        y = y * self.kernel[...][None] + self.bias[...][None]
        if self.norm is not None:
            y = self.norm(y, use_running_average=not train)
        return y[:, 0]


def made(optimizer: Optimizer, **fields) -> tuple[nnx.GraphDef, TrainState]:
    """The structure and the first state of a line."""
    return create(lambda rngs: Line(**fields), randomness.key(0, "init"), optimizer)


@dataclasses.dataclass(frozen=True)
class SquaredError:
    """The loss is `weight * (model(x) - y)^2`."""

    scale: float = 1.0

    def loss(self, model, batch, *, rngs):
        squares = self.scale * (model(batch["x"], train=True, rngs=rngs) - batch["y"]) ** 2
        return (squares * batch["weight"]).sum(), batch["weight"].sum(), {"sum": batch["y"].sum()}

    def evaluate(self, model, batch):
        return {"squares": ((model(batch["x"], train=False) - batch["y"]) ** 2 * batch["weight"]).sum()}


def batch(size: int = 4) -> dict:
    """Numbers of which the last has weight 0."""
    x = jnp.arange(1.0, size + 1)
    return {"x": x, "y": x**2, "weight": (x < size).astype(jnp.float32)}
