"""Where one learning curve overtakes another, by the measured means and by fitted laws."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from experiments.framework.statistics.intervals import (
    Array,
    Curve,
    Interval,
    aligned,
    interval_ends,
    interval_name,
    paired_difference,
    resample,
    resampled_means,
)
from experiments.framework.statistics.laws import Fit, fit_law, remaining_gap

EXTRAPOLATION = 10.0  # how far beyond the largest size fitted laws may be followed


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
    first, second = aligned(first, second)
    both = (first.counts > 0) & (second.counts > 0)
    if both.sum() < 2:
        return None
    sizes = first.sizes[both]
    one, two = first.values[both], second.values[both]
    draws, weights = resample(len(first.seeds), resamples, seed)
    measured = first.means()[both] - second.means()[both]
    drawn = resampled_means(one, draws) - resampled_means(two, draws)
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
        drawn += sign * (floor + (fit.law.start - floor) * remaining_gap(followed, half, exponent))
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
    low, high = interval_ends(takeovers, weights, level, count)
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


def format_size(size: float) -> str:
    """An estimated size to two digits, "3,900"; sizes of runs are given exactly instead."""
    rounded = float(f"{size:.1e}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.1f}"


def _share(share: float) -> str:
    """A share in percent that never rounds to all or none."""
    return "under 1 %" if share < 0.01 else f"{min(99, round(100 * share))} %"
