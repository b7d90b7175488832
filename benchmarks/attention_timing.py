"""Programs timed by turns in one process, on the same threads: A B C A B C ...

Times on a shared machine drift by more than the differences one wants to see. A ratio is therefore taken
within each round, from neighbours in time, and its quartiles over the rounds say how sure it is.
"""

import functools
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import ShapeDtypeStruct
from jax.stages import Compiled

Shape = tuple[int, int, int, int]  # B, T, N, H
Key = TypeVar("Key")
FORWARD, BOTH = "forward", "forward + backward"
DIRECTIONS = (FORWARD, BOTH)

TURN = 0.04  # seconds that a turn lasts at least, so that the clock and the dispatch don't count
FEWEST_ROUNDS = 3

_compiled: dict[str, Compiled] = {}


def random(name: str, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Normal random numbers, the same ones whenever the name and the shape are the same."""
    seed = int.from_bytes(hashlib.sha256(f"{name} {shape}".encode()).digest()[:8])
    return np.float32(scale) * np.random.default_rng(seed).standard_normal(shape, np.float32)


class Program:
    """An attention function compiled for one shape and direction.

    "forward + backward" is the loss and its gradients in query, key and value. The loss is the sum of the
    output times fixed random numbers: under the plain sum every row of the output has the same gradient, 1,
    of which a compiler can make use and a training step can't.

    Args:
        function: `(query, key, value, **arrays) -> output`.
        shape: of query, key and value, `(B, T, N, H)`.
        direction: one of `DIRECTIONS`.
        arrays: what the function takes besides; no gradients are taken in these.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        shape: Shape,
        direction: str,
        arrays: Mapping[str, jax.Array] | None = None,
    ):
        self.shape, self.direction, self.arrays = shape, direction, dict(arrays or {})
        inputs = [ShapeDtypeStruct(shape, jnp.float32)] * (3 if direction == FORWARD else 4)
        given = {name: ShapeDtypeStruct(a.shape, a.dtype) for name, a in self.arrays.items()}
        # Programs are told apart by what they compute, so both kinds of them have one name.
        program = _forward(function) if direction == FORWARD else _both(function)
        self._lowered = jax.jit(program).lower(*inputs, given)
        self.identity = hashlib.sha256(self._lowered.as_text().encode()).hexdigest()

    @property
    def compiled(self) -> Compiled:
        """The machine's program, compiled when it is first asked for."""
        if self.identity not in _compiled:
            _compiled[self.identity] = self._lowered.compile()
        return _compiled[self.identity]

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of what it returns."""
        return self._lowered.out_info

    @functools.cached_property
    def temporary_bytes(self) -> int:
        """The most memory that its temporaries take at once, inputs and outputs apart."""
        compiled = self.compiled
        if "__ynn_fusion" in (compiled.as_text() or ""):
            # This library of XLA's takes several steps of a program at once, and its own memory, such as
            # all scores of dense attention, is not counted. So count that of the same steps without it.
            compiled = self._lowered.compile(compiler_options={"xla_cpu_experimental_ynn_fusion_type": ""})
        analysis = compiled.memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes

    def bind(self) -> Callable[[], Any]:
        """The program as a function without arguments, which returns when the result is there."""
        inputs = [jnp.asarray(x) for x in draw(self.shape)[: 3 if self.direction == FORWARD else 4]]
        program = self.compiled
        return lambda: jax.block_until_ready(program(*inputs, self.arrays))


@functools.lru_cache(maxsize=2)
def draw(shape: Shape) -> tuple[np.ndarray, ...]:
    """Query, key, value and the factors of the output in the loss, standard normal."""
    return tuple(random(name, shape) for name in ("query", "key", "value", "cotangent"))


def _forward(function: Callable[..., Any]) -> Callable[..., Any]:
    def program(query, key, value, arrays):
        return function(query, key, value, **arrays)

    return program


def _both(function: Callable[..., Any]) -> Callable[..., Any]:
    def program(query, key, value, cotangent, arrays):
        def loss(query, key, value):
            return jnp.sum(function(query, key, value, **arrays) * cotangent)

        return jax.value_and_grad(loss, argnums=(0, 1, 2))(query, key, value)

    return program


def by_turns(
    sides: Mapping[Key, Callable[[], Any]],
    *,
    rounds: int,
    seconds: float,
    within: float | None = None,
) -> dict[Key, list[float]]:
    """Seconds per call of each side, by round.

    Args:
        sides: what to call, by name.
        rounds: turns of each, where they fit in the time.
        seconds: time for all rounds; three are made in any case.
        within: sides that take more than so many times the quickest's time are called once or twice and
            then left out, with one time: they can't become the quickest.
    """
    first = {name: _first_time(run) for name, run in sides.items()}
    limit = (within or float("inf")) * min(first.values())
    going = {name: run for name, run in sides.items() if first[name] <= limit}
    calls = {name: max(1, round(TURN / first[name])) for name in going}
    turn = sum(first[name] * (calls[name] + (calls[name] > 1)) for name in going)
    rounds = max(min(rounds, int(seconds / turn)), min(rounds, FEWEST_ROUNDS))
    times: dict[Key, list[float]] = {name: [] if name in going else [first[name]] for name in sides}
    for _ in range(rounds):
        for name, run in going.items():
            times[name].append(_turn(run, calls[name]))
    return times


def _turn(run: Callable[[], Any], calls: int) -> float:
    if calls > 1:
        run()  # the threads of another library may still be spinning, and its data fill the cache
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def _first_time(run: Callable[[], Any]) -> float:
    """The time of one call; where that costs little, the least of several, as the first sets things up."""
    seconds = _turn(run, 1)
    return seconds if seconds > 1.0 else min(_turn(run, 1) for _ in range(3 if seconds < 0.1 else 1))


def slope(lengths: list[int], values: list[float]) -> float:
    """The exponent p of the least-squares fit `value ~ length^p`."""
    return float(np.polyfit(np.log(lengths), np.log(np.maximum(values, 1)), 1)[0])
