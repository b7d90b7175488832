"""Intervals, laws and crossings against values one can work out with a pencil."""

import math

import numpy as np
import pytest

from experiments.framework import statistics
from experiments.framework.statistics import Curve, Law

SIZES = (100.0, 300.0, 1000.0, 3000.0, 10000.0, 60000.0)


def curve(*seeds, sizes=SIZES):
    """A curve from one tuple of values for each seed; None where a run is missing."""
    return Curve.of(
        (size, seed, value)
        for seed, values in enumerate(seeds)
        for size, value in zip(sizes, values, strict=True)
        if value is not None
    )


def follow(law, sizes=SIZES):
    return curve(tuple(law.accuracy(sizes)), sizes=sizes)


# --- curves ---


def test_a_curve_sorts_its_points_and_knows_its_gaps():
    made = Curve.of([(30, 7, 0.5), (10, 7, 0.2), (10, 3, 0.4)])
    np.testing.assert_array_equal(made.sizes, [10, 30])
    assert made.seeds == (3, 7)
    np.testing.assert_array_equal(made.values, [[0.4, 0.2], [math.nan, 0.5]])
    np.testing.assert_array_equal(made.counts, [2, 1])
    np.testing.assert_allclose(made.means(), [0.3, 0.5])
    np.testing.assert_allclose(made.deviations(), [math.sqrt(0.02), math.nan])


@pytest.mark.parametrize(
    "points, message",
    [([(10, 0, 0.1), (10, 0, 0.2)], "occurs twice"), ([(0, 0, 0.1)], "positive")],
)
def test_a_curve_refuses_points_it_cannot_hold(points, message):
    with pytest.raises(ValueError, match=message):
        Curve.of(points)


# --- the bootstrap ---


def test_two_seeds_have_three_resamples():
    draws, weights = statistics.resample(2)
    np.testing.assert_array_equal(draws, [[2, 0], [1, 1], [0, 2]])
    np.testing.assert_allclose(weights, [0.25, 0.5, 0.25])


@pytest.mark.parametrize("count, distinct", [(1, 1), (3, 10), (5, 126), (7, 1716)])
def test_few_seeds_are_enumerated(count, distinct):
    draws, weights = statistics.resample(count)
    assert len(draws) == distinct == len({tuple(row) for row in draws})
    np.testing.assert_array_equal(draws.sum(axis=1), count)
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose(weights @ draws, 1)  # every seed is drawn once on average


def test_many_seeds_are_sampled_the_same_way_every_time():
    first, second = (statistics.resample(9, resamples=50, seed=4)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (50, 9)
    assert (first != statistics.resample(9, resamples=50, seed=5)[0]).any()


def test_the_interval_of_three_seeds_is_their_range():
    interval = statistics.bootstrap_interval([0.7, 0.5, 0.9])
    assert interval.estimate == pytest.approx(0.7)
    assert (interval.low, interval.high) == pytest.approx((0.5, 0.9))
    assert interval.count == 3


def test_the_interval_of_five_by_hand():
    # The tail is Phi(-sqrt(5 / 4) 2.776) = 0.00096. Above, all five 8 have probability 1 / 5^5 =
    # 0.00032, too little; with four 8 and one 4 it is 6 / 5^5 = 0.0019, enough: 36 / 5. Below likewise.
    interval = statistics.bootstrap_interval([0, 1, 8, 4, 2])
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((3.0, 0.2, 7.2))


def test_the_interval_of_many_values_is_that_of_student():
    values = np.random.default_rng(0).normal(3.0, 2.0, 40)
    half = 2.0227 * values.std(ddof=1) / math.sqrt(40)
    interval = statistics.bootstrap_interval(values, resamples=20_000)
    assert interval.low == pytest.approx(values.mean() - half, abs=0.06 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.06 * half)


def test_intervals_of_five_seeds_cover_the_true_mean():
    rng = np.random.default_rng(1)
    intervals = [statistics.bootstrap_interval(rng.normal(size=5)) for _ in range(1000)]
    covered = np.mean([interval.low <= 0 <= interval.high for interval in intervals])
    assert 0.89 < covered < 0.97  # the plain percentile interval covers 0.84


def test_one_value_has_no_interval_and_equal_values_an_empty_one():
    one = statistics.bootstrap_interval([0.5, math.nan])
    assert (one.estimate, one.count, one.known, one.excludes_zero) == (0.5, 1, False, False)
    equal = statistics.bootstrap_interval([0.25] * 4)
    assert (equal.low, equal.estimate, equal.high) == (0.25, 0.25, 0.25)


def test_bad_arguments_of_the_bootstrap():
    with pytest.raises(ValueError, match="at least one seed"):
        statistics.bootstrap_interval([math.nan])
    with pytest.raises(ValueError, match="level"):
        statistics.bootstrap_interval([1.0, 2.0], level=95)


def test_differences_are_paired_by_seed():
    # Seeds differ by 0.5, the contenders by 0.1 in each: pairing removes what the seeds share.
    first, second = curve((0.2, 0.3), (0.7, 0.8), sizes=(1, 2)), curve((0.1, 0.2), (0.6, 0.7), sizes=(1, 2))
    for interval in statistics.paired_difference(first, second).values():
        assert (interval.low, interval.estimate, interval.high) == pytest.approx((0.1, 0.1, 0.1))
        assert interval.excludes_zero


def test_differences_leave_out_what_has_no_pair():
    first = curve((0.5, 0.6, 0.7), (0.9, None, None), sizes=(1, 2, 3))
    second = curve((0.4, None, 0.9), (0.5, 0.8, None), sizes=(1, 2, 3))
    found = statistics.paired_difference(first, second)
    assert list(found) == [1.0, 3.0]
    assert found[1.0].estimate == pytest.approx(0.25)
    assert (found[3.0].estimate, found[3.0].count) == (pytest.approx(-0.2), 1)


@pytest.mark.parametrize("count, says", [(1, "One seed"), (2, "50 %"), (3, "75 %"), (4, "88 %")])
def test_few_seeds_are_owned_up_to(count, says):
    assert says in statistics.seeds_note(count)
    assert statistics.seeds_note(5) == ""


# --- laws ---


def test_a_law_by_hand():
    law = Law(start=0.8, floor=0.2, half=500.0, exponent=1.0)
    # At half the size a third of the gap of 0.6 is closed, at the size itself half of it.
    np.testing.assert_allclose(law.error([250, 500, 1000]), [0.6, 0.5, 0.4])
    np.testing.assert_allclose(law.accuracy([250, 500, 1000]), [0.4, 0.5, 0.6])


def test_far_out_the_law_is_a_power_law():
    law = Law(start=0.9, floor=0.1, half=10.0, exponent=0.5)
    over = law.error([1e8, 4e8]) - law.floor
    assert over[0] / over[1] == pytest.approx(2.0, rel=1e-3)  # four times the data, 4^-0.5


@pytest.mark.parametrize(
    "floor, half, exponent",
    [(0.1, 300, 0.5), (0.0, 2000, 1.0), (0.3, 20, 0.3), (0.2, 5000, 2.0), (0.02, 5, 0.7)],
)
def test_a_law_without_noise_is_recovered(floor, half, exponent):
    fit = statistics.fit_law(follow(Law(0.8, floor, half, exponent)), chance=0.2)
    assert fit.law.exponent == pytest.approx(exponent, abs=1e-6)
    assert fit.law.floor == pytest.approx(floor, abs=1e-6)
    assert fit.law.half == pytest.approx(half, rel=1e-6)
    assert fit.residual < 1e-9
    assert fit.determined


def test_the_exponent_of_a_plain_power_law_is_recovered():
    accuracies = 1 - (0.05 + 0.4 * np.array(SIZES) ** -0.5)
    fit = statistics.fit_law(curve(tuple(accuracies)), chance=0.1)
    assert fit.law.exponent == pytest.approx(0.5, abs=0.03)
    assert fit.law.floor == pytest.approx(0.05, abs=0.005)


def test_intervals_of_a_law_hold_the_truth_behind_noise():
    truth, rng = Law(0.8, 0.1, 800.0, 0.9), np.random.default_rng(2)
    seeds = [tuple(truth.accuracy(SIZES) + rng.normal(0, 0.01, len(SIZES))) for _ in range(5)]
    fit = statistics.fit_law(curve(*seeds), chance=0.2)
    assert fit.exponent.low < truth.exponent < fit.exponent.high
    assert fit.floor.low < truth.floor < fit.floor.high
    assert fit.exponent.high - fit.exponent.low < 0.6
    assert "exponent 0.9" in fit.sentence("model") or "exponent 0.8" in fit.sentence("model")


def test_a_curve_that_reaches_accuracy_one():
    fit = statistics.fit_law(curve((0.5, 0.9, 1.0, 1.0, 1.0, 1.0)), chance=0.1)
    assert 0 <= fit.law.floor < 0.01
    assert np.isfinite(fit.law.error(SIZES)).all()


def test_a_step_is_not_determined():
    fit = statistics.fit_law(curve((0.2, 0.2, 0.2, 0.9, 0.9, 0.9)), chance=0.2)
    assert not fit.determined
    assert "at least 4" in fit.sentence("model")


@pytest.mark.parametrize("values", [(0.5,) * 6, (0.1, 0.2, 0.3, None, None, None)])
def test_no_law_for_flat_curves_and_few_sizes(values):
    assert statistics.fit_law(curve(values)) is None


def test_a_seed_with_few_sizes_does_not_spoil_the_fit():
    law = Law(0.8, 0.1, 800.0, 0.9)
    whole = tuple(law.accuracy(SIZES))
    fit = statistics.fit_law(curve(whole, (*whole[:2], *[None] * 4), whole), chance=0.2)
    assert np.isnan(fit.laws).any(axis=1).sum() == 1  # the resample of that seed alone
    assert fit.exponent.low == pytest.approx(0.9, abs=1e-4)
    assert fit.exponent.high == pytest.approx(0.9, abs=1e-4)


def test_chance_must_be_a_proportion():
    with pytest.raises(ValueError, match="chance"):
        statistics.fit_law(curve((0.1,) * 6), chance=20)


# --- crossings ---


def cross(first, second, sizes=(10, 1000), **how):
    first = [first] if isinstance(first[0], float) else first
    second = [second] if isinstance(second[0], float) else second
    return statistics.measured_crossing(curve(*first, sizes=sizes), curve(*second, sizes=sizes), **how)


def test_two_straight_lines_cross_half_way_over_log_n():
    crossing = cross((0.6, 0.6), (0.5, 0.7))
    assert crossing.size == pytest.approx(100)
    assert crossing.leader == 1
    assert crossing.sentence("A", "B", "images") == "B overtakes A at 100 images (one seed: no interval)"
    turned = cross((0.5, 0.7), (0.6, 0.6))
    assert (turned.leader, turned.size) == (0, pytest.approx(100))


def test_the_crossing_lies_where_the_differences_say():
    # The difference falls from 0.3 to -0.1: three quarters of the way, 10^(1 + 2 * 3/4).
    assert cross((0.8, 0.6), (0.5, 0.7)).size == pytest.approx(10**2.5)


def test_no_crossing_is_said_plainly():
    crossing = cross([(0.6, 0.9), (0.7, 0.8)], [(0.5, 0.7), (0.5, 0.7)], sizes=(100, 1200))
    assert crossing.size is None
    assert crossing.sentence("CNN", "ViT", "images") == (
        "no crossing within the data (100 to 1,200 images): CNN leads throughout"
    )


def test_a_crossing_in_some_resamples_only():
    # Seed 0 crosses a quarter of the way, the mean half way, seed 1 never. Of the three resamples the
    # one of seed 1 alone, with probability 1/4, does not cross.
    crossing = cross([(0.6, 0.4), (0.6, 0.8)], [(0.5, 0.7), (0.5, 0.7)])
    assert crossing.size == pytest.approx(100)
    assert crossing.share == pytest.approx(0.75)
    assert (crossing.low, crossing.high) == (pytest.approx(10**1.5), math.inf)
    assert crossing.sentence("A", "B") == (
        "B overtakes A at 100 examples (2 seeds: 32 to beyond 1,000; it does so in 75 % of resamples)"
    )


def test_a_crossing_the_other_way_does_not_count_for_it():
    # Seed 1 alone crosses too, but there the first takes the lead from the second.
    crossing = cross([(0.6, 0.4), (0.5, 0.7)], [(0.5, 0.7), (0.55, 0.65)])
    assert crossing.leader == 1
    assert crossing.share == pytest.approx(0.75)
    assert crossing.high == math.inf


def test_means_that_do_not_cross_while_a_seed_does():
    crossing = cross([(0.6, 0.6), (0.6, 0.9)], [(0.5, 0.7), (0.5, 0.7)])
    assert crossing.size is None
    assert crossing.share == pytest.approx(0.25)
    assert crossing.sentence("A", "B").endswith("A leads throughout, though 25 % of resamples cross")


def test_curves_that_cross_twice():
    crossing = cross((0.6, 0.5, 0.8), (0.5, 0.6, 0.7), sizes=(1, 100, 10000))
    assert crossing.changes == pytest.approx((10, 1000))
    assert (crossing.leader, crossing.size) == (0, pytest.approx(1000))
    assert "the lead changes twice, at 10 and 1,000" in crossing.sentence("A", "B")


def test_touching_is_not_crossing():
    crossing = cross((0.6, 0.6, 0.8), (0.5, 0.6, 0.7), sizes=(1, 100, 10000))
    assert crossing.changes == ()
    assert crossing.sentence("A", "B").endswith("A leads or ties throughout")


def test_after_a_stretch_of_ties_the_lead_changes_at_its_end():
    crossing = cross((0.6, 0.5, 0.5, 0.5), (0.5, 0.5, 0.5, 0.6), sizes=(1, 10, 100, 1000))
    assert crossing.changes == (pytest.approx(100),)


def test_equal_curves_have_no_leader_not_even_by_rounding():
    crossing = cross([(0.1 + 0.2, 0.5), (0.4, 0.5)], [(0.3, 0.5), (0.4, 0.5)])
    assert (crossing.leader, crossing.size, crossing.share) == (None, None, 0.0)
    assert "A and B are equal at every size" in crossing.sentence("A", "B")


def test_seeds_that_agree_have_an_interval_without_width():
    crossing = cross([(0.6, 0.6)] * 3, [(0.5, 0.7)] * 3)
    assert crossing.low == crossing.size == crossing.high
    assert crossing.share == 1


def test_one_common_size_tells_no_crossing():
    first, second = curve((0.5, 0.6), sizes=(1, 2)), curve((0.5, 0.6), sizes=(2, 3))
    assert statistics.measured_crossing(first, second) is None


def test_missing_cells_do_not_move_a_crossing_elsewhere():
    crossing = cross(
        [(0.6, 0.6, 0.6), (0.6, 0.6, None)], [(0.5, 0.7, 0.8), (None, 0.7, 0.8)], sizes=(10, 1000, 5000)
    )
    assert crossing.size == pytest.approx(100)
    assert crossing.low == pytest.approx(100)


def test_laws_of_equal_half_cross_there():
    # Same start, floor and half: (n / half)^b is 1 for both at n = half.
    slow, steep = (follow(Law(0.8, 0.1, 1000.0, exponent)) for exponent in (0.5, 1.5))
    result = statistics.compare(slow, steep, chance=0.2)
    assert result.fitted.leader == 1
    assert result.fitted.size == pytest.approx(1000, rel=1e-3)
    assert result.crossing.size == pytest.approx(1000, rel=1e-6)


def test_laws_that_cross_beyond_the_data_say_so():
    slow, steep = (follow(Law(0.8, 0.1, 90_000.0, exponent)) for exponent in (0.5, 1.5))
    result = statistics.compare(slow, steep, chance=0.2)
    assert result.crossing.size is None
    assert result.fitted.size == pytest.approx(90_000, rel=1e-2)
    assert "at 90,000 images, beyond the data" in result.fitted.sentence("A", "B", "images")


def test_laws_of_unlike_seeds_are_not_compared():
    law = Law(0.8, 0.1, 1000.0, 0.5)
    one, two = follow(law), curve(*[tuple(law.accuracy(SIZES))] * 2)
    with pytest.raises(ValueError, match="1 and 2 seeds"):
        statistics.fitted_crossing(statistics.fit_law(one), statistics.fit_law(two), SIZES)


def test_a_crossing_behind_noise_is_found_with_its_interval():
    # The numbers of the prototype: the mean curves meet at 3,950 images.
    sizes, rng = (300, 1000, 3000, 10000, 100000), np.random.default_rng(3)
    noisy = lambda means: [tuple(np.array(means) + rng.normal(0, 0.02, 5)) for _ in range(5)]  # noqa: E731
    first = curve(*noisy([0.30, 0.40, 0.52, 0.60, 0.60]), sizes=sizes)
    second = curve(*noisy([0.25, 0.31, 0.47, 0.77, 0.82]), sizes=sizes)
    result = statistics.compare(first, second, chance=0.2)
    assert result.crossing.low < 3000 * (10 / 3) ** (5 / 22) < result.crossing.high
    assert result.crossing.share == 1
    assert result.crossing.high / result.crossing.low < 1.5
    assert 2500 < result.fitted.low < result.fitted.size < result.fitted.high < 5000
    assert result.fitted.share == 1
    assert all(fit.determined for fit in result.fits)


def test_comparing_a_curve_with_nothing_yet():
    result = statistics.compare(curve((0.1, 0.2, 0.3, 0.4, 0.5, 0.6)), Curve.of([]), chance=0.05)
    assert (result.crossing, result.fitted, result.differences) == (None, None, {})
    assert result.fits[0] is not None
    assert result.fits[1] is None


@pytest.mark.parametrize(
    "size, text", [(3942.0, "3,900"), (100.0, "100"), (31.6, "32"), (9.96, "10"), (3.14, "3.1")]
)
def test_sizes_are_given_to_two_digits(size, text):
    assert statistics.format_size(size) == text
