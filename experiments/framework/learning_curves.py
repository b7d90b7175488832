"""Accuracy of two models over training-set size: means over seeds, intervals, fitted laws, the crossing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from errors import UserError
from experiments.framework import statistics
from experiments.framework.figures import GREY, INK, Style, save, style, style_of_all
from experiments.framework.results import COUNT, POSITIVE, SHARE, TEXT, Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Row:
    """A training run, at its best step on validation; one row of results.csv.

    Attributes:
        panel: Key of the panel it belongs to.
        model: Key of the model.
        train_size: Training examples.
        seed: Seed, shared by the models it is paired with.
        updates: Optimiser updates made.
        learning_rate: Peak learning rate.
        parameters: Trained parameters.
        flops_per_example: Floating point operations of one forward pass of one example.
        validation_accuracy: In 0..1.
        test_accuracy: In 0..1.
        best_step: Update whose parameters were tested.
    """

    panel: str
    model: str
    train_size: int
    seed: int
    updates: int
    learning_rate: float
    parameters: int
    flops_per_example: float
    validation_accuracy: float
    test_accuracy: float
    best_step: int


COLUMNS = (
    Column("panel", TEXT),
    Column("model", TEXT),
    Column("train_size", POSITIVE),
    Column("seed", COUNT),
    Column("updates", COUNT),
    Column("learning_rate"),
    Column("parameters", POSITIVE),
    Column("flops_per_example"),
    Column("validation_accuracy", SHARE),
    Column("test_accuracy", SHARE),
    Column("best_step", COUNT),
)
KEY = ("panel", "model", "train_size", "seed")  # two rows of one run can't both be right


@dataclass(frozen=True)
class Reference:
    """A horizontal line that helps to read a panel, such as what is possible without a relation.

    Attributes:
        accuracy: Its height, in 0..1.
        label: What it stands for, in a few words.
    """

    accuracy: float
    label: str


@dataclass(frozen=True)
class Panel:
    """What the rows of one panel mean.

    Attributes:
        key: The value of column `panel`.
        title: Name of the data set.
        subtitle: One or two short lines under the title; break them with a newline.
        chance: Accuracy of guessing.
        references: Further horizontal lines.
        models: The two models compared; differences are the first minus the second.
        control: Key of a panel whose curves are drawn thin and pale behind these; "" for none.
        control_label: What the pale curves are, in a few words.
        unit: What is counted along the size axis.
    """

    key: str
    title: str
    subtitle: str = ""
    chance: float = 0.0
    references: tuple[Reference, ...] = ()
    models: tuple[str, str] = ("cnn", "vit")
    control: str = ""
    control_label: str = "control"
    unit: str = "images"


_HEIGHT = 2.6  # of the axes, in inches
_SMALL: dict[str, Any] = {"fontsize": 7.5, "color": GREY}
_OVER: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}


def curve_of(rows: Sequence[Row], panel: str, model: str) -> statistics.Curve:
    """Test accuracies of one model in one panel, by size and seed."""
    return statistics.Curve.of(
        (row.train_size, row.seed, row.test_accuracy)
        for row in rows
        if row.panel == panel and row.model == model
    )


def comparison_of(rows: Sequence[Row], panel: Panel, key: str = "") -> statistics.Comparison:
    """The two models of a panel compared, or those of the panel `key` under its description."""
    first, second = (curve_of(rows, key or panel.key, model) for model in panel.models)
    return statistics.compare(first, second, panel.chance)


def draw(rows: Sequence[Row], panels: Sequence[Panel], out: Path | str) -> list[Path]:
    """Draws test accuracy over training-set size, one panel for each data set, side by side.

    Lines are means over seeds, bands their 95 % intervals, dots single seeds, thin dashes the
    fitted laws. The crossing of the means is marked where there is one, its absence said where not.

    Args:
        rows: Of results.csv; panels without any are left out, so that an unfinished study can be drawn.
        panels: The panels, left to right.
        out: Path without suffix; `.png` and `.svg` are added.

    Returns:
        The two files.

    Raises:
        UserError: No run belongs to any of the panels.
    """
    # Half a second of import that a study should not pay before its first progress bar.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [panel for panel in panels if any(row.panel == panel.key for row in rows)]
    if not drawn:
        found = ", ".join(sorted({row.panel for row in rows})) or "none"
        raise UserError(
            f"nothing to draw: no run of panel {', '.join(p.key for p in panels)} (found: {found})"
        )
    with style_of_all():
        width, title = 5.8 if len(drawn) == 1 else 4.7 * len(drawn), _title_height(drawn)
        left, right, gap, top = 0.75, 0.55, 1.2, title / 72 + 0.12  # inches
        bottom = 0.92 if len(drawn) == 1 else 0.8
        each = (width - left - right - gap * (len(drawn) - 1)) / len(drawn)
        height = bottom + _HEIGHT + top
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        for index, panel in enumerate(drawn):
            x = left + index * (each + gap)
            box = (x / width, bottom / height, each / width, _HEIGHT / height)
            axes = figure.add_axes(box)
            _draw_panel(axes, each, rows, panel)
            axes.annotate(panel.title, (0, 1), (0, title - 11), **_OVER, weight="bold", fontsize=11)
            if index == 0:
                axes.set_ylabel("test accuracy")
        figure.text(left / width, 0.1 / height, _footnote(rows, drawn), va="bottom", **_SMALL)
        return save(figure, Path(out))


def _draw_panel(axes: "Axes", width: float, rows: Sequence[Row], panel: Panel) -> None:
    """Draws everything of one panel but its title; `width` is that of the axes in inches."""
    comparison = comparison_of(rows, panel)
    curves = (comparison.first, comparison.second)
    low, high = _heights(rows, panel)
    axes.set_ylim(low, high)
    _size_axis(axes, width, np.union1d(*(curve.sizes for curve in curves)))
    axes.set_xlabel(f"training {panel.unit}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.locator_params(axis="y", nbins=6)
    axes.grid(axis="y", color="#EEEEEE", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.annotate(
        _subtitle(panel),
        (0, 1),
        (0, 9),
        **_OVER,
        fontsize=8.5,
        color=GREY,
        linespacing=1.3,
    )
    for reference in panel.references:
        _horizontal(axes, reference.accuracy, reference.label, (0, (5, 3)), "left")
    ends = []
    if panel.control:
        ends += _draw_control(axes, rows, panel)
    for model, curve, fit in zip(panel.models, curves, comparison.fits, strict=True):
        if len(curve.sizes):
            ends.append(_draw_curve(axes, style(model), curve, fit))
    _name_lines(axes, ends)
    _draw_crossing(axes, panel, comparison, _draw_chance(axes, panel))


@dataclass(frozen=True)
class _End:
    """The right end of a curve and how its name is written there."""

    y: float
    name: str
    colour: str
    size: float
    alpha: float


def _draw_curve(axes: "Axes", look: Style, curve: statistics.Curve, fit: statistics.Fit | None) -> _End:
    """Draws one curve and returns where its name belongs."""
    means = curve.means()
    bounds = [(i.low, i.high) if i.known else (i.estimate,) * 2 for i in curve.intervals()]
    low, high = np.array(bounds).T
    axes.fill_between(curve.sizes, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=2)
    for seed in curve.values.T:
        axes.plot(curve.sizes, seed, ".", color=look.colour, alpha=0.35, markersize=4.5, mew=0, zorder=3)
    if fit is not None:
        between = np.geomspace(curve.sizes[0], curve.sizes[-1], 200)
        axes.plot(
            between,
            fit.law.accuracy(between),
            color=look.colour,
            linewidth=0.9,
            dashes=(3, 2),
            alpha=0.75,
            zorder=3,
        )
    axes.plot(
        curve.sizes,
        means,
        color=look.colour,
        linewidth=1.9,
        marker=look.marker,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.9,
        zorder=4,
    )
    return _End(float(means[-1]), look.name, look.colour, 10.5, 1.0)


def _draw_control(axes: "Axes", rows: Sequence[Row], panel: Panel) -> list[_End]:
    """Draws the control's mean curves, thin and pale, and returns where their names belong."""
    ends = []
    for model in panel.models:
        curve, look = curve_of(rows, panel.control, model), style(model)
        if len(curve.sizes):
            means = curve.means()
            axes.plot(curve.sizes, means, color=look.colour, alpha=0.4, linewidth=1.0, zorder=1.5)
            ends.append(_End(float(means[-1]), look.name, look.colour, 8.0, 0.6))
    return ends


def _draw_chance(axes: "Axes", panel: Panel) -> float:
    """Draws the level of guessing, or says it; returns the free height above, in axes units."""
    low, high = axes.get_ylim()
    label = f"chance {100 * panel.chance:.3g} %"
    if panel.chance > low:
        _horizontal(axes, panel.chance, label, (0, (1, 2)), "right")
        return (panel.chance - low) / (high - low) + 0.08
    axes.text(0.988, 0.045, f"{label} (below)", transform=axes.transAxes, ha="right", **_SMALL)
    return 0.125


def _draw_crossing(axes: "Axes", panel: Panel, comparison: statistics.Comparison, bottom: float) -> None:
    """Marks the crossing of the means with its interval, low on the right, where no curve runs."""
    crossing = comparison.crossing
    if crossing is None:
        return
    names = [style(model).name for model in panel.models]
    if crossing.size is None:
        text = "no crossing: they are equal"
        if crossing.leader is not None:
            text = f"no crossing: {names[crossing.leader]} leads throughout"
        axes.text(0.988, bottom, text, transform=axes.transAxes, ha="right", **_SMALL)
        return
    first, last = crossing.span
    # Only as high as the curves meet: the line then points at the spot and leaves the rest free.
    curve, (low, high) = comparison.first, axes.get_ylim()
    meeting = np.interp(math.log(crossing.size), np.log(curve.sizes), curve.means())
    top = float((meeting - low) / (high - low))
    axes.axvline(crossing.size, ymax=top, color=GREY, linewidth=0.8, zorder=1)
    if not math.isnan(crossing.low):
        ends = (max(crossing.low, first), min(crossing.high, last))
        axes.axvspan(*ends, ymax=0.03, color=GREY, alpha=0.55, linewidth=0, zorder=1)
    winner, loser = names[crossing.leader or 0], names[1 - (crossing.leader or 0)]
    text = f"{winner} overtakes {loser}\nat {statistics.format_size(crossing.size)} {panel.unit}"
    text += f"\n({crossing.interval_text()})"
    right = math.log(crossing.size / first) < 0.6 * math.log(last / first)
    axes.annotate(
        text,
        (crossing.size, bottom),
        (5 if right else -5, 0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="left" if right else "right",
        va="bottom",
        fontsize=8,
        color=INK,
        linespacing=1.35,
    )


def _heights(rows: Sequence[Row], panel: Panel) -> tuple[float, float]:
    """Ends of the accuracy axis: what is drawn, and chance where that flattens no curve."""
    shown = [row.test_accuracy for row in rows if row.panel in (panel.key, panel.control)]
    shown += [reference.accuracy for reference in panel.references]
    low, high = min(shown), max(shown)
    if low - panel.chance < 0.5 * (high - low):
        low = min(low, panel.chance)
    pad = max(0.06 * (high - low), 0.004)
    return low - pad, min(high + pad, max(1.004, high))


def _size_axis(axes: "Axes", width: float, sizes: np.ndarray) -> None:
    """A log axis whose ticks are the sizes that were run."""
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.12, sizes[-1] * 1.12 if len(sizes) > 1 else sizes[0] * 1.12)
    axes.set_xticks(sizes, minor=False)
    axes.minorticks_off()
    per_log = width / math.log(axes.get_xlim()[1] / axes.get_xlim()[0])
    labels: list[str] = []
    taken = math.inf
    for size in sizes[::-1]:  # the largest size always has its label
        label = f"{size:,.0f}"
        place, half = math.log(size) * per_log, 0.034 * len(label)
        fits = place + half < taken
        labels.append(label if fits else "")
        taken = place - half - 0.05 if fits else taken
    axes.set_xticklabels(labels[::-1], fontsize=8.5)


def _subtitle(panel: Panel) -> str:
    """The lines under the title, the last of which says what pale curves are."""
    return f"{panel.subtitle}\npale: {panel.control_label}" if panel.control else panel.subtitle


def _title_height(panels: Sequence[Panel]) -> float:
    """Points above the axes that titles take, so that all titles stand on one line."""
    return 24 + 11.5 * max(len(_subtitle(panel).splitlines()) for panel in panels)


def _horizontal(axes: "Axes", accuracy: float, label: str, dashes: Any, side: str) -> None:
    """A reference line; named on the side where learning curves are not at its height."""
    from matplotlib.patheffects import withStroke

    axes.axhline(accuracy, color=GREY, linewidth=0.8, linestyle=dashes, zorder=1)
    axes.annotate(
        label,
        (0.012 if side == "left" else 0.988, accuracy),
        (0, 2.5),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha=side,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],  # curves may run behind it
        **_SMALL,
    )


def _name_lines(axes: "Axes", ends: list[_End]) -> None:
    """Names the curves at their right ends, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    per_point = (high - low) / (_HEIGHT * 72)
    heights: list[float] = []
    for end in sorted(ends, key=lambda end: end.y):
        height = max(end.y, heights[-1] + 10.5 * per_point if heights else -math.inf)
        heights.append(height)
    # Names that were pushed up as a stack are lowered together by half of what the top one moved.
    shift = (heights[-1] - max(end.y for end in ends)) / 2 if ends else 0.0
    for end, height in zip(sorted(ends, key=lambda end: end.y), heights, strict=True):
        axes.annotate(
            end.name,
            (1, height - shift),
            (7, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center_baseline",
            color=end.colour,
            alpha=end.alpha,
            fontsize=end.size,
            weight="bold" if end.alpha == 1 else "normal",
            annotation_clip=False,
        )


def _footnote(rows: Sequence[Row], panels: Sequence[Panel]) -> str:
    """How to read the figure."""
    keys = {panel.key for panel in panels}
    cells: dict[tuple[str, str, int], int] = {}
    for row in rows:
        if row.panel in keys:
            cell = (row.panel, row.model, row.train_size)
            cells[cell] = cells.get(cell, 0) + 1
    fewest, most = min(cells.values()), max(cells.values())
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    means = "Lines: one seed." if most == 1 else f"Lines: means over {seeds}."
    if most >= 5:
        means += " Bands: bootstrap 95 % intervals."
    elif most > 1:  # what the bootstrap amounts to with so few
        means += " Bands: lowest to highest seed."
    dots = "Dots: single seeds. Thin dashes: fitted laws."
    return means + ("\n" if len(panels) == 1 else " ") + dots
