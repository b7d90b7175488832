"""The law of a learning curve: a power law that saturates at both ends, fitted with intervals."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from experiments.framework.statistics.intervals import (
    Array,
    Curve,
    Interval,
    interval_ends,
    interval_name,
    resample,
    resampled_means,
)

EXPONENTS = (0.05, 4.0)  # beyond them a law over few sizes is a constant or an exponential
SIZES_FOR_A_LAW = 4  # one more than the law has parameters


@dataclass(frozen=True)
class Law:
    """A power law of error over size that saturates at both ends.

    error(n) = floor + (start - floor) / (1 + (n / half)^b)

    It starts at `start`, the error of guessing, has closed half of the gap at `half`, and far
    beyond is the usual `floor + a n^-b` with a = (start - floor) half^b. That plain law has as many
    parameters, but at small n it exceeds the error of guessing, where curves in fact bend over.

    Attributes:
        start: Error at size 0.
        floor: Error at infinite size.
        half: Size at which half of `start - floor` is gone.
        exponent: b.
    """

    start: float
    floor: float
    half: float
    exponent: float

    def error(self, sizes: ArrayLike) -> Array:
        """Errors at `sizes`, of their shape."""
        gap = remaining_gap(np.asarray(sizes, float), np.array(self.half), np.array(self.exponent))
        return self.floor + (self.start - self.floor) * gap

    def accuracy(self, sizes: ArrayLike) -> Array:
        """1 - error."""
        return 1.0 - self.error(sizes)


@dataclass(frozen=True, eq=False)
class Fit:
    """A law fitted to the means of a curve, with intervals from refitting every resample.

    Attributes:
        law: The law of the measured means.
        exponent: b with its interval, which is cut at the bounds of the search, `EXPONENTS`.
        floor: Remaining error with its interval.
        residual: Root mean square of measured minus fitted mean error.
        laws: `[R, 3]` half, exponent and floor of each resample, NaN where too few sizes were left.
        weights: `[R]` probabilities of the resamples.
    """

    law: Law
    exponent: Interval
    floor: Interval
    residual: float
    laws: Array = field(repr=False)
    weights: Array = field(repr=False)

    @property
    def determined(self) -> bool:
        """Whether the exponent and its interval lie clear of the bounds of the search."""
        ends = [self.exponent.estimate]
        if self.exponent.known:
            ends += [self.exponent.low, self.exponent.high]
        return all(EXPONENTS[0] * 1.01 < end < EXPONENTS[1] / 1.01 for end in ends)

    def sentence(self, name: str) -> str:
        """The fit in words, for the contender called `name`."""
        least, most = EXPONENTS
        b = self.exponent
        if not self.determined and b.known and b.low <= least * 1.01 and b.high >= most / 1.01:
            power = "exponent not determined by these sizes"
        else:
            power = f"exponent {_bounded(b.estimate)}"
            if b.known:
                power += f" ({interval_name(b.level, b.count)}: {_bounded(b.low)} to {_bounded(b.high)})"
        floor = f"remaining error {100 * self.floor.estimate:.1f} %"
        if self.floor.known:
            ends = f"{100 * self.floor.low:.1f} to {100 * self.floor.high:.1f} %"
            floor += f" ({interval_name(b.level, b.count)}: {ends})"
        return f"{name}: {power}, {floor}; off the means by {100 * self.residual:.1f} points"


def fit_law(
    curve: Curve, chance: float = 0.0, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Fit | None:
    """The saturating power law of a curve of accuracies.

    Least squares on the mean errors e, each residual divided by sqrt(e (1 - e)), to which the
    deviation of a proportion is proportional, so that 2 % error still counts beside 60 %. Given
    half and b the floor is linear, so the search has two dimensions: a grid over the whole box,
    then shrinking grids around its best point, which needs no start value.

    Args:
        curve: Accuracies, in 0..1.
        chance: Accuracy of guessing, in [0, 1).
        level: Nominal coverage of the intervals.
        resamples: Draws where there are too many seeds to enumerate.
        seed: Root of the draws.

    Returns:
        The fit; None where fewer than four sizes were measured or their means are all equal.

    Raises:
        ValueError: chance outside [0, 1).

    Paper: Hestness et al. 2017, Deep Learning Scaling is Predictable, Empirically.
    """
    if not 0 <= chance < 1:
        raise ValueError(f"chance must lie in [0, 1), got {chance}")
    errors = 1.0 - curve.means()
    told = errors[np.isfinite(errors)]
    if len(told) < SIZES_FOR_A_LAW or np.ptp(told) < 1e-9:
        return None
    start = 1.0 - chance
    best = _search(curve.sizes, errors[None], start)[0]
    draws, weights = resample(len(curve.seeds), resamples, seed)
    laws = _search(curve.sizes, 1.0 - resampled_means(curve.values, draws), start)
    law = Law(start, floor=float(best[2]), half=float(best[0]), exponent=float(best[1]))
    count = len(curve.seeds)
    exponent = Interval(law.exponent, *interval_ends(laws[:, 1], weights, level, count), level, count)
    floor = Interval(law.floor, *interval_ends(laws[:, 2], weights, level, count), level, count)
    residual = float(np.sqrt(np.nanmean((errors - law.error(curve.sizes)) ** 2)))
    return Fit(law, exponent, floor, residual, laws, weights)


def remaining_gap(sizes: Array, half: Array, exponent: Array) -> Array:
    """The part of `start - floor` that is left at `sizes`; the arguments broadcast."""
    return 1.0 / (1.0 + (sizes / half) ** exponent)


def _search(sizes: Array, errors: Array, start: float) -> Array:
    """Best half, exponent and floor `[R, 3]` of mean errors `[R, P]`, NaN where too few known."""
    found = np.full((len(errors), 3), math.nan)
    enough = np.flatnonzero(np.isfinite(errors).sum(axis=1) >= SIZES_FOR_A_LAW)
    for rows in np.array_split(enough, math.ceil(len(enough) / 256)) if len(enough) else ():
        found[rows] = _search_rows(sizes, errors[rows], start)
    return found


def _search_rows(sizes: Array, errors: Array, start: float) -> Array:
    known = np.isfinite(errors)
    errors = np.where(known, errors, 0.0)
    # 0.001 keeps an error of exactly 0 from outweighing everything else: half a mistake in 500.
    precision = np.where(known, 1.0 / (errors * (1.0 - errors) + 1e-3), 0.0)[:, None]
    errors = errors[:, None]

    def solve(log_half: Array, log_exponent: Array) -> tuple[Array, Array]:
        """Loss and floor `[R, G]` at grid points `[R or 1, G]`."""
        gap = remaining_gap(sizes, np.exp(log_half)[..., None], np.exp(log_exponent)[..., None])
        closed, rest = 1.0 - gap, errors - start * gap
        slope = (precision * closed * closed).sum(-1)
        floor = (precision * rest * closed).sum(-1) / np.maximum(slope, 1e-300)
        floor = floor.clip(0.0, start)
        return (precision * (rest - floor[..., None] * closed) ** 2).sum(-1), floor

    lowest = np.array([math.log(sizes.min() / 1e4), math.log(EXPONENTS[0])])
    highest = np.array([math.log(sizes.max() * 1e2), math.log(EXPONENTS[1])])
    halves, exponents = (np.linspace(lowest[i], highest[i], n) for i, n in ((0, 48), (1, 24)))
    grid = np.stack(np.meshgrid(halves, exponents, indexing="ij")).reshape(2, 1, -1)
    loss, _ = solve(*grid)
    best = grid[:, 0, loss.argmin(axis=1)]  # [2, R]
    step = np.array([[halves[1] - halves[0]], [exponents[1] - exponents[0]]])  # [2, R or 1]
    around = np.stack(np.meshgrid(*[np.linspace(-1, 1, 5)] * 2, indexing="ij")).reshape(2, 1, -1)
    for _ in range(150):
        near = best[..., None] + step[..., None] * around
        near = near.clip(lowest[:, None, None], highest[:, None, None])
        loss, _ = solve(*near)
        nearest = loss.argmin(axis=1)
        best = np.take_along_axis(near, nearest[None, :, None], axis=2)[..., 0]
        # Walk at full step along a valley, and look closer only where the middle is best.
        step = np.where(nearest == around.shape[-1] // 2, 0.5 * step, step)
    _, floor = solve(best[0][:, None], best[1][:, None])
    return np.stack([*np.exp(best), floor[:, 0]], axis=1)


def _bounded(exponent: float) -> str:
    if exponent <= EXPONENTS[0] * 1.01:
        return f"at most {EXPONENTS[0]:g}"
    if exponent >= EXPONENTS[1] / 1.01:
        return f"at least {EXPONENTS[1]:g}"
    return f"{exponent:.2f}"
