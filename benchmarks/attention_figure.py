"""The figure of the benchmark of the mechanisms, drawn from its measurements alone."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.attention_cases import FAMILIES, MECHANISMS
from benchmarks.attention_results import BYTES, ERROR, SECONDS, Results
from benchmarks.attention_timing import FORWARD
from experiments.framework import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the palette of Okabe and Ito, which readers with any colour vision tell apart.
# The last is darker than theirs, which is too pale for text.
COLOURS = dict(zip(FAMILIES, ("#222222", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B"), strict=True))
MARKERS = "osD^vP"  # within a family
PEER_COLOUR = "#9A9A9A"
_INK, _GREY = "#222222", "#6B6B6B"
_WIDTH, _HEIGHT = 9.6, 8.6  # of the figure, in inches
_LABEL = 9.0  # height of a line's name, in points


class Look(NamedTuple):
    """How a side is drawn."""

    colour: str
    marker: str


def look(side: str) -> Look:
    """The same in every panel."""
    for family in FAMILIES:
        names = [found.name for found in MECHANISMS if found.family == family]
        if side in names:
            return Look(COLOURS[family], MARKERS[names.index(side) % len(MARKERS)])
    return Look(PEER_COLOUR, "x")


def draw(results: Results, out: Path) -> list[Path]:
    """Draw time and memory over the length, error against time, and ours against libraries.

    Args:
        results: of a whole run.
        out: path of the files, without suffix.

    Returns:
        The files, PNG and SVG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with figures.style_of_all():
        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(
            2, 2, left=0.075, right=0.855, top=0.93, bottom=0.105, wspace=0.72, hspace=0.36
        )
        time, memory, error, libraries = (
            figure.add_subplot(cell) for cell in (grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1])
        )
        _over_length(time, results, SECONDS, 1e3, "Time", "milliseconds, forward")
        _over_length(memory, results, BYTES, 2.0**-20, "Memory", "MiB of temporaries, forward")
        _errors(error, results)
        _libraries(libraries, results)
        _families(figure)
        return figures.save(figure, out)


def _over_length(axes: "Axes", results: Results, quantity: str, unit: float, title: str, label: str) -> None:
    """One line for each mechanism and peer; both axes are logarithmic, so that slopes are exponents."""
    where: dict[str, Any] = {"part": "lengths", "direction": FORWARD, "quantity": quantity}
    ends: list[tuple[float, float, str]] = []
    for side in results.sides(**where):
        if side.endswith(", causal"):  # hardly to be told from the form that is not
            continue
        records = results.select(side=side, **where)
        lengths = sorted({record.T for record in records})
        values = [unit * statistics.median(r.value for r in records if r.T == T) for T in lengths]
        colour, marker = look(side)
        axes.plot(lengths, values, color=colour, marker=marker, markersize=3.6, linewidth=1.2)
        ends.append((lengths[-1], values[-1], side))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [f"{T:,}" for T in lengths])
    axes.set_xlabel("length T")
    _plain_numbers(axes.yaxis)
    shape = results.select(**where)[0].shape
    _title(axes, title, f"{label}; B = {shape[0]}, N = {shape[2]}, H = {shape[3]}")
    _name(axes, ends)


def _errors(axes: "Axes", results: Results) -> None:
    """A curve for each approximation: what its cost parameter buys."""
    ends: list[tuple[float, float, str]] = []
    for side in results.sides(part="errors", quantity=ERROR):
        points = [found for found in results.approximations() if found.side == side]
        times, values = [found.time for found in points], [found.error for found in points]
        colour, marker = look(side)
        axes.plot(times, values, color=colour, marker=marker, markersize=4.5, linewidth=1.2)
        ends.append((times[-1], values[-1], side))
    axes.axhline(1, color=_GREY, linewidth=0.8, linestyle=(0, (5, 3)), zorder=1)
    level = axes.get_yaxis_transform()
    axes.text(
        0.99, 1, "an output of zero", transform=level, ha="right", va="bottom", fontsize=7.5, color=_GREY
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("time, as a multiple of dense's")
    _plain_numbers(axes.xaxis)
    _plain_numbers(axes.yaxis)
    T = results.select(part="errors")[0].T
    _title(axes, "Error against cost", f"relative to dense, on random inputs; T = {T:,}")
    _name(axes, ends)


def _libraries(axes: "Axes", results: Results) -> None:
    """How many times faster ours is than each library; ours is named on the right, in its colour."""
    comparisons = results.comparisons()
    rows = list(dict.fromkeys((c.ours, c.peer) for c in comparisons))
    for comparison in comparisons:
        forward = comparison.direction == FORWARD
        height = (0.15 if forward else -0.15) - rows.index((comparison.ours, comparison.peer))
        lower, median, upper = comparison.faster
        colour = look(comparison.ours).colour
        axes.plot([lower, upper], [height] * 2, color=colour, linewidth=1.2)
        axes.plot(
            median, height, "o", color=colour, markersize=5.5, markerfacecolor=colour if forward else "white"
        )
    axes.axvline(1, color=_GREY, linewidth=0.8, zorder=1)
    axes.set_xscale("log")
    axes.set_yticks([-n for n in range(len(rows))], [peer for _, peer in rows], fontsize=8)
    axes.set_ylim(0.6 - len(rows), 0.6)
    across = axes.get_yaxis_transform()
    for n, (ours, _) in enumerate(rows):
        colour = look(ours).colour
        axes.text(1.035, -n, ours, transform=across, va="center_baseline", color=colour, fontsize=8)
    _plain_numbers(axes.xaxis)
    axes.set_xlabel("times faster than the library")
    _title(axes, "Ours against libraries", "filled: forward; open: forward + backward")


def _plain_numbers(axis: Any) -> None:
    """Ticks of a logarithmic axis as 0.1, 1, 10, with 2 and 5 between them where it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    within = (1.0,) if high / low > 50 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=within))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _title(axes: "Axes", title: str, subtitle: str) -> None:
    over: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(title, (0, 1), (0, 20), **over, weight="bold", fontsize=11)
    axes.annotate(subtitle, (0, 1), (0, 8), **over, fontsize=8.5, color=_GREY)


def _name(axes: "Axes", ends: Sequence[tuple[float, float, str]]) -> None:
    """Name lines beside the axes, each as near to its end `(x, y, side)` as the others leave room."""
    ends = sorted(ends, key=lambda end: end[1])
    axes.autoscale_view()
    points = 72 / axes.figure.dpi
    bottom, height = axes.bbox.y0 * points, axes.bbox.height * points
    wanted = [axes.transData.transform(end[:2])[1] * points for end in ends]
    for level, (x, y, side) in zip(_apart(wanted, _LABEL), ends, strict=True):
        colour = look(side).colour
        axes.annotate(
            side,
            (x, y),
            (1.035, (level - bottom) / height),
            textcoords="axes fraction",
            va="center_baseline",
            color=colour,
            fontsize=8,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "alpha": 0.4,
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in rising order, moved as little as keeps them `gap` apart."""
    # Less their share of the gaps they must not fall; the nearest such numbers are the means of pools.
    pools: list[list[float]] = []
    for index, height in enumerate(heights):
        pools.append([height - gap * index])
        while len(pools) > 1 and np.mean(pools[-2]) >= np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = [float(np.mean(pool)) for pool in pools for _ in pool]
    return [base + gap * index for index, base in enumerate(level)]


def _families(figure: Any) -> None:
    """What the colours mean."""
    from matplotlib.lines import Line2D

    entries = [(COLOURS[family], family) for family in FAMILIES] + [(PEER_COLOUR, "libraries")]
    lines = [Line2D([], [], color=colour, linewidth=3) for colour, _ in entries]
    figure.legend(
        lines,
        [name for _, name in entries],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=8.5,
        handlelength=1.2,
        columnspacing=1.6,
    )
