"""What a few seeds can say: intervals, learning curves, and where one curve overtakes another.

Everything is the bootstrap over *seeds*. A seed is drawn with all its sizes and both contenders,
because its subsets are nested and both contenders saw the same ones; points drawn one by one would
pass for independent.

Up to seven seeds the bootstrap distribution is enumerated, not sampled: five seeds have only 126
distinct resamples. Intervals are then exact and cost next to nothing.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

Array = NDArray[np.float64]

ENUMERATED_SEEDS = 7  # 1,716 distinct resamples; eight seeds would have 6,435
EXPONENTS = (0.05, 4.0)  # beyond them a law over few sizes is a constant or an exponential
SEEDS_FOR_A_LEVEL = 5  # with fewer, a 95 % interval is the range of the seeds; see seeds_note
SIZES_FOR_A_LAW = 4  # one more than the law has parameters
EXTRAPOLATION = 10.0  # how far beyond the largest size fitted laws may be followed


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap interval.

    Attributes:
        estimate: The statistic of the measured values.
        low: Lower end; NaN where there was a single seed.
        high: Upper end; NaN where there was a single seed.
        level: Nominal coverage, 0.95 for 95 %.
        count: Seeds it rests on.
    """

    estimate: float
    low: float
    high: float
    level: float
    count: int

    @property
    def known(self) -> bool:
        """Whether there is an interval at all, which takes two seeds."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.known and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, eq=False)
class Curve:
    """Values of one contender over sizes and seeds.

    Attributes:
        sizes: `[P]` sizes, ascending.
        seeds: The S seeds, ascending.
        values: `[P, S]` values, NaN where a run is missing.
    """

    sizes: Array
    seeds: tuple[int, ...]
    values: Array

    @classmethod
    def of(cls, points: Iterable[tuple[float, int, float]]) -> "Curve":
        """The curve of `(size, seed, value)` triples, in any order.

        Args:
            points: At most one triple for each size and seed.

        Raises:
            ValueError: A size and seed occur twice, or a size is not positive.
        """
        cells: dict[tuple[float, int], float] = {}
        for size, seed, value in points:
            if not size > 0:
                raise ValueError(f"sizes must be positive, got {size}")
            if (size, seed) in cells:
                raise ValueError(f"size {size} with seed {seed} occurs twice")
            cells[size, seed] = value
        sizes = sorted({size for size, _ in cells})
        seeds = sorted({seed for _, seed in cells})
        values = [[cells.get((size, seed), math.nan) for seed in seeds] for size in sizes]
        shape = (len(sizes), len(seeds))
        return cls(np.array(sizes, float), tuple(seeds), np.array(values, float).reshape(shape))

    def at(self, sizes: ArrayLike, seeds: Sequence[int]) -> "Curve":
        """The same values laid out on other sizes and seeds, NaN where there is none."""
        wanted = np.asarray(sizes, float)
        values = np.full((len(wanted), len(seeds)), math.nan)
        rows = {size: row for row, size in enumerate(self.sizes)}
        columns = {seed: column for column, seed in enumerate(self.seeds)}
        for row, size in enumerate(wanted):
            for column, seed in enumerate(seeds):
                if size in rows and seed in columns:
                    values[row, column] = self.values[rows[size], columns[seed]]
        return Curve(wanted, tuple(seeds), values)

    @property
    def counts(self) -> NDArray[np.intp]:
        """`[P]` measured seeds at each size."""
        return np.isfinite(self.values).sum(axis=1)

    def means(self) -> Array:
        """`[P]` means over the measured seeds."""
        return _resampled_means(self.values, np.ones((1, len(self.seeds))))[0]

    def deviations(self) -> Array:
        """`[P]` standard deviations over seeds (n - 1), NaN where there is one seed."""
        rows = [row[np.isfinite(row)] for row in self.values]
        return np.array([row.std(ddof=1) if len(row) > 1 else math.nan for row in rows])

    def intervals(self, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> list[Interval]:
        """The bootstrap interval of the mean at each of the P sizes."""
        return [bootstrap_interval(row, level, resamples, seed) for row in self.values]


# --- the bootstrap ---------------------------------------------------------------------------


def resample(count: int, resamples: int = 2000, seed: int = 0) -> tuple[Array, Array]:
    """Bootstrap resamples of `count` seeds, as how often each seed was drawn.

    Args:
        count: Seeds, S.
        resamples: How many to draw where there are too many to enumerate.
        seed: Root of the random draws (of no effect where the resamples are enumerated).

    Returns:
        draws `[R, S]`, whose rows sum to S, and their probabilities `[R]`.
    """
    if count < 1:
        raise ValueError(f"resampling takes at least one seed, got {count}")
    if count > ENUMERATED_SEEDS:
        rng = np.random.default_rng(seed)
        sampled = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
        return sampled.astype(float), np.full(resamples, 1 / resamples)
    picks = itertools.combinations_with_replacement(range(count), count)
    draws = [[pick.count(index) for index in range(count)] for pick in picks]
    # The multinomial probability count! / (k_1! ... k_S!) / count^count of each row.
    ways = [math.factorial(count) / math.prod(map(math.factorial, row)) for row in draws]
    return np.array(draws, float), np.array(ways) / count**count


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """The mean of `values` with its expanded percentile bootstrap interval.

    The plain percentile interval of n values is too narrow: by sqrt((n - 1) / n), and because it
    stands on the normal instead of the t quantile. The expanded interval takes the percentile
    Phi(-sqrt(n / (n - 1)) t) instead of (1 - level) / 2. For 95 % asked of five normal values the
    plain one covers 84 %, the expanded one 92 %.
    No resample leaves the range of the values, so under five seeds 95 % stays out of reach; see
    `seeds_note`.

    Args:
        values: `[S]` one value for each seed; NaN (a missing run) is left out.
        level: Nominal coverage, in (0, 1).
        resamples: Draws where there are too many seeds to enumerate.
        seed: Root of the draws.

    Raises:
        ValueError: No value, or a level outside (0, 1).

    Paper: Hesterberg 2015, What Teachers Should Know About the Bootstrap.
    """
    measured = np.asarray(values, float).ravel()
    measured = measured[np.isfinite(measured)]
    draws, weights = resample(len(measured), resamples, seed)
    means = draws @ measured / len(measured)
    low, high = _ends(means, weights, level, len(measured))
    return Interval(float(measured.mean()), low, high, level, len(measured))


def paired_difference(
    first: Curve, second: Curve, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> dict[float, Interval]:
    """The mean of `first - second` at each size, over the seeds that have both.

    Returns:
        One interval for each size with at least one pair; sizes without are left out.
    """
    first, second = _aligned(first, second)
    differences = first.values - second.values
    return {
        float(size): bootstrap_interval(row, level, resamples, seed)
        for size, row in zip(first.sizes, differences, strict=True)
        if np.isfinite(row).any()
    }


def seeds_note(count: int) -> str:
    """What must be said of intervals from `count` seeds; empty from five seeds on.

    With fewer than five the expanded interval is the range of the values, and n values straddle the
    centre of a symmetric distribution with probability 1 - 2^(1 - n): no interval inside it does
    better.
    """
    if count == 1:
        return "One seed: no interval can be given."
    if 1 < count < SEEDS_FOR_A_LEVEL:
        cap = 100 * (1 - 2 ** (1 - count))
        return (
            f"{count} seeds: the intervals run from the lowest to the highest seed, which covers "
            f"the true mean in about {cap:.0f} % of studies, not in 95 %; that takes five seeds."
        )
    return ""


def _ends(samples: Array, weights: Array, level: float, count: int) -> tuple[float, float]:
    """Both ends of the expanded percentile interval of weighted samples (infinite ones count)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    told = ~np.isnan(samples)
    if count < 2 or not told.any():
        return math.nan, math.nan
    tail = float(ndtr(-math.sqrt(count / (count - 1)) * -stdtrit(count - 1, (1 - level) / 2)))
    samples, weights = samples[told], weights[told]
    # The upper end by mirroring: a tail of 1e-20, as two seeds have it, would be lost in 1 - tail.
    return _percentile(samples, weights, tail), -_percentile(-samples, weights, tail)


def _percentile(samples: Array, weights: Array, share: float) -> float:
    order = np.argsort(samples, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(samples[order][np.searchsorted(reached, share).clip(max=len(order) - 1)])


def _aligned(first: Curve, second: Curve) -> tuple[Curve, Curve]:
    """Both curves on the sizes they share and on all seeds of either."""
    sizes = np.intersect1d(first.sizes, second.sizes)
    seeds = sorted({*first.seeds, *second.seeds})
    return first.at(sizes, seeds), second.at(sizes, seeds)


def _resampled_means(values: Array, draws: Array) -> Array:
    """Means `[R, P]` of values `[P, S]` under draws `[R, S]`; NaN where none drawn was measured."""
    measured = np.isfinite(values)
    total = draws @ np.where(measured, values, 0.0).T
    count = draws @ measured.astype(float).T
    return np.divide(total, count, out=np.full_like(total, math.nan), where=count > 0)


# --- the law of a learning curve -------------------------------------------------------------


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
        gap = _gap(np.asarray(sizes, float), np.array(self.half), np.array(self.exponent))
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
    laws = _search(curve.sizes, 1.0 - _resampled_means(curve.values, draws), start)
    law = Law(start, floor=float(best[2]), half=float(best[0]), exponent=float(best[1]))
    count = len(curve.seeds)
    exponent = Interval(law.exponent, *_ends(laws[:, 1], weights, level, count), level, count)
    floor = Interval(law.floor, *_ends(laws[:, 2], weights, level, count), level, count)
    residual = float(np.sqrt(np.nanmean((errors - law.error(curve.sizes)) ** 2)))
    return Fit(law, exponent, floor, residual, laws, weights)


def _gap(sizes: Array, half: Array, exponent: Array) -> Array:
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
        gap = _gap(sizes, np.exp(log_half)[..., None], np.exp(log_exponent)[..., None])
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


# --- where one overtakes the other -----------------------------------------------------------


@dataclass(frozen=True)
class Crossing:
    """Where, over size, the lead passes from one of two contenders to the other.

    Attributes:
        leader: Who leads at the largest size: 0 the first, 1 the second, None if always equal.
        size: Size from which the leader leads to the end; None where the lead never changes.
        changes: Every size at which the lead changes.
        low: Lower end of the interval of `size`: 0 means before the first size, NaN no interval.
        high: Upper end: infinity means beyond the last size.
        share: Share of resamples in which the same leader takes the lead within the span; where
            `size` is None, in which the lead changes at all.
        span: First and last size looked at.
        measured: Largest size with data: beyond it, `size` is extrapolated.
        ties: Whether the two are equal at some size.
        level: Nominal coverage.
        count: Seeds.
    """

    leader: int | None
    size: float | None
    changes: tuple[float, ...]
    low: float
    high: float
    share: float
    span: tuple[float, float]
    measured: float
    ties: bool
    level: float
    count: int

    def sentence(self, first: str, second: str, unit: str = "examples") -> str:
        """The crossing in words, such as "B overtakes A at 3,900 images (95 %: 2,800 to 5,200)"."""
        span = f"{self.span[0]:,.0f} to {self.span[1]:,.0f} {unit}"
        inside = self.span[1] <= self.measured
        none = f"no crossing within the data ({span})" if inside else f"no crossing from {span}"
        if self.leader is None:
            return f"{none}: {first} and {second} are equal at every size"
        winner, loser = (first, second) if self.leader == 0 else (second, first)
        if self.size is None:
            text = f"{none}: {winner} leads"
            text += " or ties throughout" if self.ties else " throughout"
            if self.count > 1 and self.share > 0:
                text += f", though {_share(self.share)} of resamples cross"
            return text
        text = f"{winner} overtakes {loser} at {format_size(self.size)} {unit}"
        if self.size > self.measured:
            text += ", beyond the data"
        notes = [self.interval_text()]
        if self.count > 1 and self.share < 1:
            notes.append(f"it does so in {_share(self.share)} of resamples")
        if len(self.changes) > 1:
            times = "twice" if len(self.changes) == 2 else f"{len(self.changes)} times"
            notes.append(f"the lead changes {times}, at {' and '.join(map(format_size, self.changes))}")
        return f"{text} ({'; '.join(notes)})"

    def interval_text(self) -> str:
        """The interval of `size` in words, such as "95 %: 2,800 to 5,200"."""
        if math.isnan(self.low):
            return "one seed: no interval" if self.count < 2 else "no interval"
        if self.low == 0 and math.isinf(self.high):
            return f"{interval_name(self.level, self.count)}: anywhere"
        low = f"below {self.span[0]:,.0f}" if self.low == 0 else format_size(self.low)
        high = f"beyond {self.span[1]:,.0f}" if math.isinf(self.high) else format_size(self.high)
        return f"{interval_name(self.level, self.count)}: {low} to {high}"


def measured_crossing(
    first: Curve, second: Curve, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Crossing | None:
    """Where the mean curves cross, each taken as straight between its sizes over log n.

    A resample in which the leader does not lead in the end counts as a crossing beyond the last
    size, one in which it always leads as a crossing before the first: the interval says so instead
    of dropping them.

    Args:
        first: Values of the first contender, higher is better.
        second: Values of the second.
        level: Nominal coverage.
        resamples: Draws where there are too many seeds to enumerate.
        seed: Root of the draws.

    Returns:
        The crossing, or None where fewer than two sizes have values of both.
    """
    first, second = _aligned(first, second)
    both = (first.counts > 0) & (second.counts > 0)
    if both.sum() < 2:
        return None
    sizes = first.sizes[both]
    one, two = first.values[both], second.values[both]
    draws, weights = resample(len(first.seeds), resamples, seed)
    measured = first.means()[both] - second.means()[both]
    drawn = _resampled_means(one, draws) - _resampled_means(two, draws)
    # Differences at the level of rounding are ties; 0.1 + 0.2 and 0.3 must not cross.
    measured, drawn = (np.where(np.abs(d) < 1e-12, 0.0, d) for d in (measured, drawn))
    return _crossing(sizes, measured, drawn, weights, level, len(first.seeds), float(sizes[-1]))


def fitted_crossing(first: Fit | None, second: Fit | None, sizes: ArrayLike) -> Crossing | None:
    """Where two fitted laws cross, followed to ten times the largest size.

    Args:
        first: Fit of the first contender, from the same number of seeds as the second.
        second: Fit of the second contender.
        sizes: `[P]` the measured sizes.

    Returns:
        The crossing, or None where one of the laws could not be fitted.

    Raises:
        ValueError: The fits rest on different numbers of seeds, so their resamples are not paired.
    """
    if first is None or second is None:
        return None
    if first.laws.shape != second.laws.shape:
        raise ValueError(
            f"fits must share their seeds: {first.exponent.count} and {second.exponent.count} seeds"
        )
    known = np.asarray(sizes, float)
    followed = np.geomspace(known.min(), known.max() * EXTRAPOLATION, 600)
    drawn = np.zeros((len(first.laws), len(followed)))
    for fit, sign in ((first, -1.0), (second, 1.0)):  # a higher error is a lower accuracy
        half, exponent, floor = (column[:, None] for column in fit.laws.T)
        drawn += sign * (floor + (fit.law.start - floor) * _gap(followed, half, exponent))
    fitted = second.law.error(followed) - first.law.error(followed)
    count, level = first.exponent.count, first.exponent.level
    return _crossing(followed, fitted, drawn, first.weights, level, count, float(known.max()))


def _crossing(
    sizes: Array,
    difference: Array,
    drawn: Array,
    weights: Array,
    level: float,
    count: int,
    measured: float,
) -> Crossing:
    """The crossing of `difference` `[P]`, first minus second, with its interval from `drawn`."""
    changes, lead = _changes(sizes, difference)
    takeovers = np.full(len(drawn), math.nan)  # when the leader took the lead for good
    counted = np.zeros(len(drawn), bool)
    for index, row in enumerate(drawn):
        if lead and np.isfinite(row).all():  # a resample without some size tells nothing
            drawn_changes, drawn_lead = _changes(sizes, row)
            last = drawn_changes[-1] if drawn_changes else 0.0
            takeovers[index] = last if drawn_lead == lead else math.inf
            counted[index] = bool(drawn_changes) and (drawn_lead == lead or not changes)
    told = ~np.isnan(takeovers)
    share = float(weights[counted].sum() / weights[told].sum()) if told.any() else 0.0
    low, high = _ends(takeovers, weights, level, count)
    return Crossing(
        leader=None if lead == 0 else (0 if lead > 0 else 1),
        size=changes[-1] if changes else None,
        changes=changes,
        low=low,
        high=high,
        share=share,
        span=(float(sizes[0]), float(sizes[-1])),
        measured=measured,
        ties=bool((difference == 0).any()),
        level=level,
        count=count,
    )


def _changes(sizes: Array, difference: Array) -> tuple[tuple[float, ...], int]:
    """Sizes at which the sign changes, straight over log n in between, and the last sign.

    The last sign is 0 where all are equal. Touching zero and turning back is no change. Where the
    two are equal over a stretch the change is at its end, beyond which the new leader leads.
    """
    led = np.flatnonzero(np.isfinite(difference) & (difference != 0))
    if not len(led):
        return (), 0
    signs = np.sign(difference[led])
    changes = []
    for at in np.flatnonzero(signs[1:] != signs[:-1]):
        left, right = led[at], led[at + 1]
        level = np.flatnonzero(difference[left:right] == 0)
        if len(level):
            changes.append(float(sizes[left + level[-1]]))
            continue
        part = difference[left] / (difference[left] - difference[right])
        step = math.log(sizes[right] / sizes[left])
        changes.append(float(sizes[left] * math.exp(part * step)))
    return tuple(changes), int(signs[-1])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything one panel says of two contenders.

    Attributes:
        first: Curve of the first, on its own sizes and the seeds of both.
        second: Curve of the second.
        differences: First minus second, paired by seed, at each size that has a pair.
        fits: The laws of both, None where there is none.
        crossing: Of the measured means (the headline); None where it cannot be told.
        fitted: Of the fitted laws (the second opinion).
    """

    first: Curve
    second: Curve
    differences: dict[float, Interval]
    fits: tuple[Fit | None, Fit | None]
    crossing: Crossing | None
    fitted: Crossing | None


def compare(
    first: Curve,
    second: Curve,
    chance: float = 0.0,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Two curves of accuracies compared: differences, laws and crossings, from the same resamples.

    Args:
        first: Accuracies of the first contender, in 0..1.
        second: Accuracies of the second.
        chance: Accuracy of guessing.
        level: Nominal coverage of every interval.
        resamples: Draws where there are too many seeds to enumerate.
        seed: Root of the draws.
    """
    seeds = sorted({*first.seeds, *second.seeds})
    first, second = first.at(first.sizes, seeds), second.at(second.sizes, seeds)
    how = (level, resamples, seed)
    fits = (fit_law(first, chance, *how), fit_law(second, chance, *how))
    return Comparison(
        first,
        second,
        paired_difference(first, second, *how),
        fits,
        measured_crossing(first, second, *how),
        fitted_crossing(*fits, np.union1d(first.sizes, second.sizes)),
    )


# --- words -----------------------------------------------------------------------------------


def format_size(size: float) -> str:
    """An estimated size to two digits, "3,900"; sizes of runs are given exactly instead."""
    rounded = float(f"{size:.1e}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.1f}"


def interval_name(level: float, count: int) -> str:
    """What to call an interval from `count` seeds: "95 %", or "3 seeds" where it can't be that."""
    return f"{100 * level:g} %" if count >= SEEDS_FOR_A_LEVEL else f"{count} seeds"


def _bounded(exponent: float) -> str:
    if exponent <= EXPONENTS[0] * 1.01:
        return f"at most {EXPONENTS[0]:g}"
    if exponent >= EXPONENTS[1] / 1.01:
        return f"at least {EXPONENTS[1]:g}"
    return f"{exponent:.2f}"


def _share(share: float) -> str:
    """A share in percent that never rounds to all or none."""
    return "under 1 %" if share < 0.01 else f"{min(99, round(100 * share))} %"
