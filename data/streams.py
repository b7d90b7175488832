"""Random numbers that are a pure function of (seed, purpose, counters).

A generator that is passed around and drawn from makes every number depend on every draw before it:
add a module and all the others see new data. Here each use opens its own Philox counter-based
stream under a key of its own, so order of use, threads and restarts cannot change a number.

Only the raw 64-bit words of the bit generator are used. NumPy promises to keep these forever, but
not what `Generator.integers` or `Generator.permutation` make of them (NEP 19), and a data set
that is *defined* by its seed must not change with the version of NumPy.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import hashlib
import operator
from collections.abc import Sequence

import numpy as np

import errors


def check_seed(seed: int, argument: str = "seed") -> int:
    """Returns `seed` as an int, or raises a one-line UserError if it is no non-negative integer.

    Args:
        seed: the number.
        argument: what the caller was given it as.
    """
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if value < 0:
        raise errors.UserError(f"{argument} {seed!r} is not allowed: a whole number >= 0 is needed")
    return value


class Stream:
    """An endless stream of random numbers, fully determined by what it is opened with.

    Args:
        seed: non-negative int of any size.
        purpose: what the numbers are for; streams of different purposes are independent.
        *counters: further ints, such as the epoch or the step.
    """

    def __init__(self, seed: int, purpose: str, *counters: int):
        text = repr((check_seed(seed), purpose, *map(operator.index, counters)))
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self._bits = np.random.Philox(key=int.from_bytes(key, "little"))

    def words(self, size: int) -> np.ndarray:
        """The next `size` words, uint64 [size], uniform over all 64 bits."""
        return self._bits.random_raw(size)

    def octets(self, size: int) -> np.ndarray:
        """The next `size` bytes, uint8 [size], uniform; the rest of the last word is dropped."""
        return self.words(-(-size // 8)).astype("<u8", copy=False).view(np.uint8)[:size]

    def integers(self, high: int | np.ndarray, size: int | Sequence[int]) -> np.ndarray:
        """Uniform integers in [0, high), int64 of shape `size`.

        Args:
            high: exclusive upper end, at most 2**32; an array of the shape `size` gives each number
                its own. The bias of taking the top of a 32-bit product is below high / 2**32.
            size: the shape.
        """
        shape = (size,) if isinstance(size, int) else tuple(size)
        top = self.words(int(np.prod(shape, dtype=np.int64))).reshape(shape) >> np.uint64(32)
        return (top * np.asarray(high, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)

    def permutation(self, size: int) -> np.ndarray:
        """A uniform permutation of 0..size-1, int64 [size] (the order of as many random words)."""
        return np.argsort(self.words(size), kind="stable")
