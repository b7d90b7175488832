"""Few shapes for examples of many lengths: which sizes to pad to, and how many examples fit a batch."""

import dataclasses

import numpy as np

import errors
from data.examples import Size

GRAIN = 8  # sizes are multiples of it, so that data sets of nearly the same lengths share programs
PAIR_GRAIN = 4  # the same for pairs of sequences, most of which are sentences and short


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A shape of batches.

    Attributes:
        size: vectors and edges, or vectors and targets, that every example is padded to.
        batch_size: examples.
    """

    size: Size
    batch_size: int


def choose(
    sizes: np.ndarray,
    *,
    batch_vectors: int,
    count: int = 4,
    most: int = 1024,
    longest: int = 0,
    by_both: bool = False,
) -> tuple[Bucket, ...]:
    """The buckets that waste least on padding.

    Args:
        sizes: vectors and edges of each example, int `[n, 2]`, as `Examples.sizes` gives them.
        batch_vectors: vectors per batch, padding included; a longer example is a batch alone.
        count: number of buckets at most.
        most: examples per batch at most.
        longest: no example is padded to more vectors than that; 0 for no limit.
        by_both: divide examples by the longer of their two sides, as suits pairs of sequences, and count the
            longer side for `batch_vectors`; else by their vectors alone.

    Returns:
        Buckets by rising size, the last one large enough for all. The batch sizes are multiples of 8
        where they are above 8.

    Raises:
        errors.UserError: batch_vectors or count is below 1.
    """
    for name, value in (("batch_vectors", batch_vectors), ("count", count)):
        if value < 1:
            raise errors.UserError(f"{name} is {value}; it must be at least 1")
    sizes = _rounded(np.asarray(sizes).reshape(-1, 2), PAIR_GRAIN if by_both else GRAIN)
    if longest:
        sizes[:, 0] = np.minimum(sizes[:, 0], longest)
    keys = sizes.max(axis=1) if by_both else sizes[:, 0]
    buckets: list[Bucket] = []
    before = -1
    for length in _lengths(keys, count):
        inside = sizes[(keys > before) & (keys <= length)]
        # A bucket holds whatever the one before it holds.
        vectors, others = np.maximum(inside.max(axis=0), buckets[-1].size if buckets else 0).tolist()
        fit = max(1, min(batch_vectors // max(length, 1), most))
        buckets.append(Bucket((vectors, others), fit if fit < 8 else fit // 8 * 8))
        before = length
    return tuple(buckets)


def assign(sizes: np.ndarray, buckets: tuple[Bucket, ...]) -> np.ndarray:
    """The first bucket that each example fits in, int64 `[n]`.

    Raises:
        ValueError: an example fits in none.
    """
    fits = np.stack([(sizes <= np.asarray(bucket.size)).all(axis=1) for bucket in buckets], axis=1)
    lost = np.flatnonzero(~fits.any(axis=1))
    if len(lost):
        raise ValueError(
            f"example {lost[0]} of size {tuple(sizes[lost[0]].tolist())} is larger than every bucket"
        )
    return fits.argmax(axis=1)


def _rounded(sizes: np.ndarray, least: int) -> np.ndarray:
    """Up to a multiple of `least`, of an eighth of the largest power of two in it if that is more."""
    powers = np.floor(np.log2(np.maximum(sizes, GRAIN))).astype(np.int64)
    grain = np.maximum(1 << (powers - 3), least)
    rounded = -(-sizes // grain) * grain
    rounded[:, 0] = np.maximum(rounded[:, 0], least)
    return rounded


def _lengths(lengths: np.ndarray, count: int) -> list[int]:
    """At most `count` lengths to pad to, of those there are, with the least padding in all."""
    distinct, numbers = np.unique(lengths, return_counts=True)
    below = np.cumsum(numbers)
    # best[i]: the least sum of padded lengths of all up to length i, with as many buckets as rounds so far.
    best = below * distinct
    cuts: list[np.ndarray] = []
    for _ in range(min(count, len(distinct)) - 1):
        # Up to length j with one bucket less, and from there to i padded to length i.
        rest = (below[None, :] - below[:, None]) * distinct[None, :]
        total = np.where(
            np.tri(len(distinct), k=-1, dtype=bool).T, best[:, None] + rest, np.iinfo(np.int64).max
        )
        cut = total.argmin(axis=0)
        better = total[cut, np.arange(len(distinct))] < best
        cuts.append(np.where(better, cut, -1))
        best = np.where(better, total[cut, np.arange(len(distinct))], best)
    chosen, place = [], len(distinct) - 1
    for cut in [*reversed(cuts), None]:
        chosen.append(int(distinct[place]))
        if cut is None or cut[place] < 0:
            break
        place = int(cut[place])
    return sorted(set(chosen))
