"""What a few seeds can say: intervals, learning curves, and where one curve overtakes another.

Everything is the bootstrap over *seeds*. A seed is drawn with all its sizes and both contenders,
because its subsets are nested and both contenders saw the same ones; points drawn one by one would
pass for independent.
"""

from experiments.framework.statistics.crossings import (
    Comparison,
    Crossing,
    compare,
    fitted_crossing,
    format_size,
    measured_crossing,
)
from experiments.framework.statistics.intervals import (
    Curve,
    Interval,
    bootstrap_interval,
    interval_name,
    paired_difference,
    resample,
    seeds_note,
)
from experiments.framework.statistics.laws import Fit, Law, fit_law

__all__ = [
    "Comparison",
    "Crossing",
    "Curve",
    "Fit",
    "Interval",
    "Law",
    "bootstrap_interval",
    "compare",
    "fit_law",
    "fitted_crossing",
    "format_size",
    "interval_name",
    "measured_crossing",
    "paired_difference",
    "resample",
    "seeds_note",
]
