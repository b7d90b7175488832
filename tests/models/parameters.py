"""Modules for tests: no parameter is left at 0 or 1, where a wrong use of it would not show."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def shaped(make: Callable[..., nnx.Module], *args, **kwargs) -> Any:
    """The module `make(*args, **kwargs)` with shapes in place of arrays, which costs no compiling."""
    return nnx.eval_shape(lambda: make(*args, **kwargs, rngs=nnx.Rngs(0)))


def filled(make: Callable[..., nnx.Module], *args, seed: int = 0, positive: bool = False, **kwargs) -> Any:
    """The module `make(*args, **kwargs)` with random parameters and statistics, about 0.3 in size.

    It is made without running its own initialisers, each of which would be compiled.
    """
    module = shaped(make, *args, **kwargs)
    draw = np.random.default_rng(seed)

    def new(path, variable):
        values = 0.3 * draw.standard_normal(variable.shape)
        variance = "var" in jax.tree_util.keystr(path)
        return jnp.asarray(np.abs(values) if positive or variance else values, variable.dtype)

    nnx.update(module, jax.tree_util.tree_map_with_path(new, nnx.state(module)))
    return module


def run(module: nnx.Module, *args, **kwargs) -> Any:
    """`module(*args, **kwargs)` as one compiled program, rather than one for every operation in it."""
    return jax.jit(lambda module, args: module(*args, **kwargs))(module, args)


def program(module: nnx.Module, *args, seed: int | None = None, **kwargs) -> str:
    """What `module(*args, **kwargs)` computes, unread and uncompiled; of a module of shapes too.

    With a seed, `rngs` has it, so that what is dropped is part of it.
    """
    structure, state = nnx.split(module)

    def call(state, args):
        dropout = {} if seed is None else {"rngs": nnx.Rngs(dropout=seed)}
        return jax.tree.leaves(nnx.merge(structure, state)(*args, **kwargs, **dropout))

    made = jax.make_jaxpr(call)(state, args)
    return f"{made} {[np.asarray(constant).tobytes() for constant in made.consts]}"


def arrays(module: nnx.Module) -> dict:
    """The parameters of a module as nested dicts of float64 NumPy arrays."""
    pure = nnx.to_pure_dict(nnx.state(module, nnx.Param))
    return jax.tree.map(lambda array: np.asarray(array, np.float64), pure)


def paths(module: nnx.Module) -> dict[str, Any]:
    """The arrays of a module, or their shapes, by path, such as `blocks/0/attention/query/kernel`."""
    leaves = jax.tree_util.tree_leaves_with_path(nnx.to_pure_dict(nnx.state(module)))
    return {"/".join(str(part.key) for part in path): leaf for path, leaf in leaves}


def normal(*shape: int, seed: int = 1) -> jax.Array:
    """Standard normal numbers, float32."""
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32)


def real(*lengths: int, of: int) -> np.ndarray:
    """A mask `[B, of]`, True where each sequence of some length has its vectors."""
    return np.arange(of)[None] < np.asarray(lengths)[:, None]
