"""Modules for tests: no parameter is left at 0 or 1, where a wrong use of it would not show."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def filled(kind: Callable[..., nnx.Module], *args, seed: int = 0, positive: bool = False, **kwargs):
    """The module `kind(*args, **kwargs)` with random parameters and statistics, about 0.3 in size.

    It is made without running its own initialisers, each of which would be compiled.
    """
    module = nnx.eval_shape(lambda: kind(*args, **kwargs, rngs=nnx.Rngs(0)))
    draw = np.random.default_rng(seed)

    def new(path, variable):
        values = 0.3 * draw.standard_normal(variable.shape)
        variance = "var" in jax.tree_util.keystr(path)
        return jnp.asarray(np.abs(values) if positive or variance else values, variable.dtype)

    nnx.update(module, jax.tree_util.tree_map_with_path(new, nnx.state(module)))
    return module


def arrays(module: nnx.Module) -> dict:
    """The parameters of a module as nested dicts of float64 NumPy arrays."""
    pure = nnx.to_pure_dict(nnx.state(module, nnx.Param))
    return jax.tree.map(lambda array: np.asarray(array, np.float64), pure)


def normal(*shape: int, seed: int = 1) -> jax.Array:
    """Standard normal numbers, float32."""
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32)
