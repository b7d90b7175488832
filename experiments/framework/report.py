"""Learning curves told in words and numbers: lines and a table for the console, one page for the browser.

Everything comes from the rows of results.csv and the panels that say what they mean.
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from errors import UserError
from experiments.framework.figures import style
from experiments.framework.learning_curves import Panel, Row, comparison_of
from experiments.framework.statistics import Comparison, Interval, interval_name, seeds_note


@dataclass(frozen=True)
class _Line:
    """One size of one panel: the cells of its table row, formatted."""

    size: str
    values: tuple[str, str]
    difference: str
    leader: str
    seeds: str

    @property
    def cells(self) -> tuple[str, ...]:
        """All but the size."""
        return (*self.values, self.difference, self.leader, self.seeds)


@dataclass(frozen=True, eq=False)
class _Section:
    """One panel, or the control of one, with everything said of it."""

    title: str
    names: tuple[str, str]
    unit: str
    comparison: Comparison
    costs: tuple[tuple[str, str, str], ...]  # what, of the first, of the second
    lines: tuple[_Line, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the columns."""
        return (f"training {self.unit}", *self.names, _difference_title(self), "leader", "seeds")

    @property
    def findings(self) -> list[str]:
        """The sentences, the headline first."""
        return list(_findings(self))


def summary_lines(rows: Sequence[Row], panels: Sequence[Panel]) -> list[str]:
    """What the study found, as plain sentences: crossings, laws and what the seeds allow.

    Args:
        rows: Runs of the study, finished or not.
        panels: What they mean; panels without runs are left out.

    Returns:
        Lines without markup, for a console, a README or a log.
    """
    sections = list(_sections(rows, panels))
    lines = []
    for section in sections:
        headline, *details = section.findings
        lines += [headline, *(f"  {detail}" for detail in details)]
    return lines + _notes(sections)


def tables(rows: Sequence[Row], panels: Sequence[Panel]) -> Group:
    """The results for the console, a table for each panel: mean ± standard deviation over seeds.

    Args:
        rows: Runs of the study, finished or not.
        panels: What they mean; panels without runs are left out.

    Returns:
        What rich prints; it fits a terminal of 80 columns.
    """
    drawn = []
    for section in _sections(rows, panels):
        title = Text(f"{section.title}: test accuracy in %, mean ± sd", style="bold")
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in section.headings:
            table.add_column(name, justify="left" if name == "leader" else "right")
        for cost in section.costs:
            table.add_row(*cost, style="dim")
        for line in section.lines:
            table.add_row(line.size, *line.cells)
        drawn.append(table)
    return Group(*drawn)


def write_html(
    path: Path | str,
    rows: Sequence[Row],
    panels: Sequence[Panel],
    *,
    title: str,
    figure: Path | str,
    command: str,
    facts: Mapping[str, object],
    limits: str,
) -> Path:
    """Writes the whole report as one HTML file that needs nothing beside it and no network.

    Args:
        path: Where to write.
        rows: Runs of the study.
        panels: What they mean.
        title: Heading of the page.
        figure: The SVG file to put in.
        command: The command that made the study.
        facts: What the manifest says of versions and hardware; nested mappings are flattened.
        limits: What the study does not show; paragraphs are parted by an empty line.

    Returns:
        The path.

    Raises:
        UserError: The figure can't be read.
    """
    sections = list(_sections(rows, panels))
    page = _template().render(
        title=title,
        figure=_inline_svg(Path(figure), title),
        sections=sections,
        notes=_notes(sections),
        limits=[" ".join(part.split()) for part in re.split(r"\n\s*\n", limits) if part.strip()],
        command=command,
        facts=list(_flat(facts)),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


# --- from rows to words ----------------------------------------------------------------------


def _sections(rows: Sequence[Row], panels: Sequence[Panel]) -> Iterator[_Section]:
    """Every panel that has runs, each followed by its control."""
    for panel in panels:
        for key, title in (
            (panel.key, panel.title),
            (panel.control, f"{panel.title}, {panel.control_label}"),
        ):
            runs = [row for row in rows if row.panel == key and row.model in panel.models]
            if runs:
                comparison = comparison_of(rows, panel, key)
                names = (style(panel.models[0]).name, style(panel.models[1]).name)
                costs = _costs(runs, panel.models)
                lines = tuple(_lines(comparison, names))
                yield _Section(title, names, panel.unit, comparison, costs, lines)


def _costs(runs: Sequence[Row], models: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Parameters and FLOPs of both models; a range where they differ between runs."""

    def of(model: str, column: str) -> str:
        values = sorted({getattr(run, column) for run in runs if run.model == model})
        return " to ".join(_amount(value) for value in dict.fromkeys(values[:1] + values[-1:]))

    return tuple(
        (name, of(models[0], column), of(models[1], column))
        for name, column in (("parameters", "parameters"), ("FLOPs/example", "flops_per_example"))
    )


def _lines(comparison: Comparison, names: tuple[str, str]) -> Iterator[_Line]:
    cells: list[dict[float, str]] = []
    seeds: list[dict[float, int]] = []
    for curve in (comparison.first, comparison.second):
        spread = zip(curve.sizes, curve.means(), curve.deviations(), strict=True)
        cells.append({size: _mean_and_deviation(mean, sd) for size, mean, sd in spread})
        seeds.append({size: int(n) for size, n in zip(curve.sizes, curve.counts, strict=True)})
    for size in sorted({*cells[0], *cells[1]}):
        counts = [count.get(size, 0) for count in seeds]
        difference = comparison.differences.get(size)
        yield _Line(
            size=f"{size:,.0f}",
            values=(cells[0].get(size, "–"), cells[1].get(size, "–")),
            difference=_difference(difference) if difference else "–",
            leader=_leader(difference, names) if difference else "–",
            seeds=str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} and {counts[1]}",
        )


def _findings(section: _Section) -> Iterator[str]:
    """The sentences about one section, the headline first."""
    comparison, names = section.comparison, section.names
    if comparison.crossing is None:
        yield f"{section.title}: too few sizes with both models to tell a crossing."
    else:
        yield f"{section.title}: {comparison.crossing.sentence(*names, section.unit)}."
    if comparison.fitted is not None:
        yield f"By the fitted laws: {comparison.fitted.sentence(*names, section.unit)}."
    for name, fit in zip(names, comparison.fits, strict=True):
        if fit is None:
            yield f"No law fitted to {name}: that takes four sizes that differ in accuracy."
        else:
            yield f"Law of {fit.sentence(name)}."


def _notes(sections: Sequence[_Section]) -> list[str]:
    """What the number of seeds does not allow, each note once."""
    return sorted({seeds_note(_fewest_seeds(section)) for section in sections} - {""})


def _fewest_seeds(section: _Section) -> int:
    """Seeds at the size that has the fewest."""
    counts = [*section.comparison.first.counts, *section.comparison.second.counts]
    return int(min(counts))


def _leader(difference: Interval, names: tuple[str, str]) -> str:
    """Who is ahead, where the interval of the difference leaves no doubt."""
    if not difference.excludes_zero:
        return "open"
    return names[0] if difference.estimate > 0 else names[1]


def _mean_and_deviation(mean: float, deviation: float) -> str:
    return f"{100 * mean:.1f}" + ("" if math.isnan(deviation) else f" ± {100 * deviation:.1f}")


def _difference(interval: Interval) -> str:
    text = _signed(interval.estimate)
    if interval.known:
        text += f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return text


def _difference_title(section: _Section) -> str:
    name = f"{section.names[0]} − {section.names[1]}"
    known = [interval.count for interval in section.comparison.differences.values() if interval.known]
    return f"{name} [{interval_name(0.95, max(known))}]" if known else name


def _signed(value: float) -> str:
    """A difference in points with a true minus sign; no sign for what rounds to zero."""
    text = f"{abs(100 * value):.1f}"
    return text if text == "0.0" else ("+" if value > 0 else "−") + text


def _amount(value: float) -> str:
    """A count in full below a million, else with three digits and its unit."""
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}"


# --- HTML ------------------------------------------------------------------------------------


@functools.cache
def _template() -> jinja2.Template:
    """The page, in which everything that is put in is escaped."""
    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=folder, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2")


def _inline_svg(path: Path, title: str) -> Markup:
    """An SVG file as an element: without XML prolog and namespaces, which HTML does not need."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    start = text.find("<svg")
    if start < 0:
        raise UserError(f"{path}: holds no <svg> element")
    text = re.sub(r"<metadata>.*?</metadata>", "", text[start:], flags=re.DOTALL)
    text = re.sub(r"""\sxmlns(:\w+)?=(".*?"|'.*?')""", "", text)
    return Markup('<svg role="img" aria-label="{}"').format(title) + Markup(text.removeprefix("<svg"))


def _flat(facts: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values with nested ones under "outer.inner", those of a list counted from 1."""
    for name, value in facts.items():
        if isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) for part in value):
            value = {str(number): part for number, part in enumerate(value, 1)}
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, (list, tuple)):
            yield f"{prefix}{name}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{name}", str(value)
