"""Recurrent cells, plain, GRU and LSTM, and a layer of them in one direction or both."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from models.layers.linear import Linear
from models.rngs import named

State = tuple[jax.Array, ...]  # the hidden state first


class Cell(NamedTuple):
    """What one step does.

    Attributes:
        gates: how many vectors of H numbers the input and the hidden state are mapped to.
        states: how many vectors of H numbers are carried from step to step.
        step: `(state, x W + b, h U) -> state`, both products `[..., gates H]`.
    """

    gates: int
    states: int
    step: Callable[[State, jax.Array, jax.Array], State]


def _plain(state: State, x: jax.Array, recurrent: jax.Array) -> State:
    """`h' = tanh(x W + h U)`."""
    return (jnp.tanh(x + recurrent),)


def _gru(state: State, x: jax.Array, recurrent: jax.Array) -> State:
    """`h' = z h + (1 - z) tanh(x W_n + r (h U_n))`, reset r, update z."""
    x_reset, x_update, x_new = jnp.split(x, 3, axis=-1)
    h_reset, h_update, h_new = jnp.split(recurrent, 3, axis=-1)
    reset, update = jax.nn.sigmoid(x_reset + h_reset), jax.nn.sigmoid(x_update + h_update)
    return (update * state[0] + (1 - update) * jnp.tanh(x_new + reset * h_new),)


def _lstm(state: State, x: jax.Array, recurrent: jax.Array) -> State:
    """`c' = f c + i g` and `h' = o tanh(c')`, gates i, f, o and candidate g."""
    gate_in, forget, candidate, gate_out = jnp.split(x + recurrent, 4, axis=-1)
    memory = jax.nn.sigmoid(forget) * state[1] + jax.nn.sigmoid(gate_in) * jnp.tanh(candidate)
    return jax.nn.sigmoid(gate_out) * jnp.tanh(memory), memory


CELLS = {"plain": Cell(1, 1, _plain), "gru": Cell(3, 1, _gru), "lstm": Cell(4, 2, _lstm)}


class RecurrentLayer(nnx.Module):
    """One recurrent layer: the states of every step, of one direction or of both side by side.

    The inputs of all steps and directions are mapped in one matrix product; the scan over steps holds the
    recurrent product alone, both directions in one batch. At padding a state stays as it is, so that the
    backward direction starts at the last real vector, and nothing else depends on where padding lies.

    Args:
        inputs: width of the vectors.
        hidden_dim: width H of a direction's state.
        cell: one of `CELLS`.
        directions: 1, forward, or 2.
        rngs: source of the initial parameters.
    """

    def __init__(self, inputs: int, hidden_dim: int, *, cell: str, directions: int, rngs: nnx.Rngs):
        self.cell, self.directions, self.hidden_dim = cell, directions, hidden_dim
        gates = CELLS[cell].gates
        self.input = Linear(inputs, directions * gates * hidden_dim, rngs=named(rngs, "input"))
        # An orthogonal matrix for each gate keeps the size of a state over many steps (Saxe et al. 2014).
        orthogonal = nnx.initializers.orthogonal()
        draws = named(rngs, "recurrent_kernel")
        kernels = [
            orthogonal(draws.params(), (hidden_dim, hidden_dim), jnp.float32)
            for _ in range(directions * gates)
        ]
        self.recurrent_kernel = nnx.Param(
            jnp.stack(kernels)
            .reshape(directions, gates, hidden_dim, hidden_dim)
            .transpose(0, 2, 1, 3)
            .reshape(directions, hidden_dim, gates * hidden_dim)
        )
        if cell == "lstm":
            # Remembering is where to start from: the bias of the forget gate is 1 (Jozefowicz et al. 2015).
            bias = jnp.zeros((directions, gates, hidden_dim)).at[:, 1].set(1.0)
            self.input.bias = nnx.Param(bias.reshape(-1))

    def __call__(self, x: Float[Array, "B T D"], mask: Bool[Array, "B T"]) -> Float[Array, "B T H"]:
        """Map `x [B, T, inputs]`, finite at padding, to states `[B, T, directions H]`."""
        batch, length, _ = x.shape
        cell, kernel = CELLS[self.cell], self.recurrent_kernel[...]
        gates = self.input(x.swapaxes(0, 1)).reshape(length, batch, self.directions, -1)

        def from_both_ends(y: jax.Array) -> jax.Array:
            """`[T, B, directions, ...] -> [T, directions, B, ...]`, in the order each direction reads."""
            return jnp.stack([y[:, :, 0], y[::-1, :, 1]][: self.directions], axis=1)

        real = jnp.broadcast_to(mask.T[:, :, None, None], (length, batch, self.directions, 1))

        def step(state: State, inputs: tuple[jax.Array, jax.Array]) -> tuple[State, jax.Array]:
            x, real = inputs
            new = cell.step(state, x, jnp.einsum("dbh,dhg->dbg", state[0], kernel))
            state = tuple(jnp.where(real, after, before) for after, before in zip(new, state, strict=True))
            return state, state[0]

        start = (jnp.zeros((self.directions, batch, self.hidden_dim), x.dtype),) * cell.states
        _, states = jax.lax.scan(step, start, (from_both_ends(gates), from_both_ends(real)))
        each = [states[:, 0], states[::-1, -1]][: self.directions]
        return jnp.concatenate(each, axis=-1).swapaxes(0, 1)
