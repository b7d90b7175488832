"""The scores of models on each set as dots, seed by seed, beside published ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.framework import figures
from experiments.framework.contests import Contest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.26  # height of a model, in inches
_WIDTH = 4.2  # of a panel, in inches
_NARROWEST = 2.0  # points that the axis of a share spans at least


def draw(rows: Sequence[Mapping[str, Any]], contests: Sequence[Contest], out: Path) -> list[Path]:
    """Draws a panel for each contest, one below the other: every run a dot, their mean a line.

    Published results are dashed lines. Contests without runs are left out, so that an unfinished study can
    be drawn.

    Args:
        rows: of results.csv.
        contests: what they mean.
        out: where to write, without suffix.

    Returns:
        The PNG and the SVG.
    """
    from matplotlib.figure import Figure

    shown = [contest for contest in contests if any(row["contest"] == contest.name for row in rows)]
    with figures.style_of_all():
        heights = [_ROW * len(contest.entries) + 0.85 for contest in shown]
        figure = Figure(figsize=(_WIDTH + 1.6, sum(heights) + 0.1), layout="constrained")
        panels = figure.subplots(len(shown), squeeze=False, height_ratios=heights)[:, 0]
        for axes, contest in zip(panels, shown, strict=True):
            _panel(axes, contest, [row for row in rows if row["contest"] == contest.name])
        return figures.save(figure, out)


def _panel(axes: "Axes", contest: Contest, rows: Sequence[Mapping[str, Any]]) -> None:
    metric = contest.metrics[contest.metric]
    names = [entry.model for entry in contest.entries]
    for place, name in enumerate(names):
        values = metric.factor * np.array([row["test"] for row in rows if row["model"] == name])
        if not len(values):
            continue
        colour = figures.style(name).colour
        # Runs of equal score lie beside one another.
        spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(values, place + spread, "o", color=colour, markersize=4, alpha=0.6, markeredgewidth=0)
        axes.plot([values.mean()] * 2, [place - 0.32, place + 0.32], color=colour, linewidth=2)
    for name, value in contest.published:
        axes.axvline(value, color="#6B6B6B", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        axes.annotate(
            name,
            (value, -0.5),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=6.5,
            color="#6B6B6B",
            ha="center",
            va="bottom",
            annotation_clip=False,
        )
    axes.set_ylim(len(names) - 0.5, -0.5)
    left, right = axes.get_xlim()
    if metric.is_share and right - left < _NARROWEST:  # hair's breadths are not to look like gaps
        middle = (left + right) / 2
        axes.set_xlim(middle - _NARROWEST / 2, middle + _NARROWEST / 2)
    axes.set_yticks(range(len(names)), names)
    name, comma, unit = metric.title.partition(",")
    axes.set_xlabel(f"{name} on test{comma}{unit}", fontsize=8)
    axes.set_title(contest.title, loc="left", fontsize=9, fontweight="bold", pad=13)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
