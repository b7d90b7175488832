"""A study told in words and numbers: lines and a table for the console, one page for the browser.

Everything comes from the rows of results.csv and the panels that say what they mean.
"""

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from errors import UserError
from experiments.figures import Panel, comparison_of, style
from experiments.results import Run
from experiments.statistics import Comparison, Interval, interval_name, seeds_note


@dataclass(frozen=True)
class _Line:
    """One size of one panel: the cells of its table row, formatted."""

    size: str
    values: tuple[str, str]
    difference: str
    leader: str
    seeds: str


@dataclass(frozen=True, eq=False)
class _Section:
    """One panel, or the control of one, with everything said of it."""

    title: str
    names: tuple[str, str]
    unit: str
    comparison: Comparison
    costs: tuple[tuple[str, str, str], ...]  # what, of the first, of the second
    lines: tuple[_Line, ...]


def summary_lines(rows: Sequence[Run], panels: Sequence[Panel]) -> list[str]:
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
        headline, *details = _findings(section)
        lines += [headline, *(f"  {detail}" for detail in details)]
    return lines + _notes(sections)


def tables(rows: Sequence[Run], panels: Sequence[Panel]) -> Group:
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
        for name in (f"training {section.unit}", *section.names, _difference_title(section)):
            table.add_column(name, justify="right")
        table.add_column("leader")
        table.add_column("seeds", justify="right")
        for cost in section.costs:
            table.add_row(*cost, style="dim")
        for line in section.lines:
            table.add_row(line.size, *line.values, line.difference, line.leader, line.seeds)
        drawn.append(table)
    return Group(*drawn)


def write_html(
    path: Path | str,
    rows: Sequence[Run],
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
    find = "".join(map(_html_findings, sections))
    find += "".join(f"<li>{_escape(note)}</li>\n" for note in _notes(sections))
    results = "".join(map(_html_table, sections))
    entries = "".join(
        f"<tr><th scope='row'>{_escape(name)}</th><td>{_escape(value)}</td></tr>\n"
        for name, value in _flat(facts)
    )
    paragraphs = "".join(
        f"<p>{_escape(' '.join(part.split()))}</p>\n" for part in re.split(r"\n\s*\n", limits) if part
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_escape(title)}</title>
<style>{_CSS}</style>
</head>
<body>
<main>
<h1>{_escape(title)}</h1>
<figure>{_inline_svg(Path(figure), title)}</figure>
<h2>What it shows</h2>
<ul>
{find}</ul>
<h2>What it does not show</h2>
{paragraphs}<h2>Results</h2>
{results}<h2>How it was made</h2>
<pre><code>{_escape(command)}</code></pre>
<table class="facts">
{entries}</table>
</main>
</body>
</html>
""",
        encoding="utf-8",
    )
    return path


# --- from rows to words ----------------------------------------------------------------------


def _sections(rows: Sequence[Run], panels: Sequence[Panel]) -> Iterator[_Section]:
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


def _costs(runs: Sequence[Run], models: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
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

_CSS = """
body { margin: 0; color: #222; background: #fff; font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
figure { margin: 0; overflow-x: auto; } figure svg { width: 100%; height: auto; }
table { border-collapse: collapse; margin: 0 0 1.6rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { text-align: right; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #e5e5e5; }
thead th { border-bottom: 1px solid #888; } tbody th { font-weight: normal; }
.cost th, .cost td { color: #666; }
.facts th, .facts td { text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; }
pre { background: #f5f5f5; padding: .7rem 1rem; overflow-x: auto; }
"""


def _html_findings(section: _Section) -> str:
    headline, *details = map(_escape, _findings(section))
    inner = "".join(f"<li>{detail}</li>\n" for detail in details)
    return f"<li>{headline}" + (f"\n<ul>\n{inner}</ul>" if inner else "") + "</li>\n"


def _html_table(section: _Section) -> str:
    heads = (f"training {section.unit}", *section.names, _difference_title(section))
    head = "".join(f"<th scope='col'>{_escape(name)}</th>" for name in (*heads, "leader", "seeds"))
    body = ""
    for what, *values in section.costs:
        cells = "".join(f"<td>{_escape(value)}</td>" for value in values)
        body += f"<tr class='cost'><th scope='row'>{what}</th>{cells}<td></td><td></td><td></td></tr>\n"
    for line in section.lines:
        cells = "".join(
            f"<td>{_escape(cell)}</td>" for cell in (*line.values, line.difference, line.leader, line.seeds)
        )
        body += f"<tr><th scope='row'>{line.size}</th>{cells}</tr>\n"
    caption = f"{_escape(section.title)}: test accuracy in %, mean ± standard deviation over seeds"
    return (
        f"<div class='scroll'><table>\n<caption>{caption}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _inline_svg(path: Path, title: str) -> str:
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
    label = f'<svg role="img" aria-label="{_escape(title)}"'
    return label + text.removeprefix("<svg")


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


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)
