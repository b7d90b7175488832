"""The study in sentences, on the console and as one page."""

import dataclasses
import html.parser
import io

import pytest
from rich.console import Console

from errors import UserError
from experiments.framework import report
from experiments.framework.learning_curves import Panel, Row, draw

PANEL = Panel("p", "A [b] <c>", chance=0.2, control="c", control_label="control")
SIZES = (100, 1000, 10000, 100000)


def runs(seeds=5):
    """CNN at 50 % throughout, ViT from 30 to 90 %: they meet a third of the way, at 1,000 images."""
    made = []
    for seed in range(seeds):
        for index, size in enumerate(SIZES):
            shift = 0.01 * (seed - (seeds - 1) / 2)
            for panel, model, accuracy in (
                ("p", "cnn", 0.50 + shift),
                ("p", "vit", 0.30 + 0.2 * index + shift),
                ("c", "cnn", 0.80 + 0.03 * index),
                ("c", "vit", 0.70 + 0.03 * index),
            ):
                flops = 2.1e6 if model == "cnn" else 950.0
                made.append(Row(panel, model, size, seed, 10, 0.1, 12_345, flops, accuracy, accuracy, 5))
    return made


def console(rows, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(report.tables(rows, [PANEL]))
    return out.getvalue()


def page(tmp_path, rows, **changes):
    svg = tmp_path / "curve.svg"
    if not svg.exists():
        draw(rows, [PANEL], tmp_path / "curve")
    given = {
        "title": "CNN & attention",
        "figure": svg,
        "command": "python -m experiments.data_size --out='a' && echo <done>",
        "facts": {"versions": {"jax": "0.10.2"}, "devices": ["cpu:0", "cpu:1"], "curves": [{"model": "m"}]},
        "limits": "First limit\nof two.\n\nSecond <limit>.",
    }
    written = report.write_html(tmp_path / "report.html", rows, [PANEL], **{**given, **changes})
    return written.read_text(encoding="utf-8")


class Checker(html.parser.HTMLParser):
    """Collects text and addresses, and fails on an element closed out of turn."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name.endswith(("href", "src"))]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_summary_names_crossing_laws_and_absence():
    lines = report.summary_lines(runs(), [PANEL])
    assert lines[0] == "A [b] <c>: ViT overtakes CNN at 1,000 images (95 %: 1,000 to 1,000)."
    assert "  No law fitted to CNN: that takes four sizes that differ in accuracy." in lines
    assert any(line.startswith("  Law of ViT: exponent ") for line in lines)
    control = lines.index(
        "A [b] <c>, control: no crossing within the data (100 to 100,000 images): CNN leads throughout."
    )
    assert any(line.startswith("  By the fitted laws: ") for line in lines[control:])
    assert not any("seeds:" in line for line in lines)


def test_few_seeds_are_said_once_in_the_summary():
    lines = report.summary_lines(runs(seeds=2), [PANEL])
    assert [line for line in lines if "50 % of studies" in line] == [lines[-1]]
    assert "CNN − ViT [2 seeds]" in console(runs(seeds=2))
    assert "95 %" not in " ".join(lines[:-1]) + console(runs(seeds=2))


def test_the_tables_by_hand():
    text = console(runs())
    (row,) = (line.split() for line in text.splitlines() if line.split()[:3] == ["100", "50.0", "±"])
    # Five accuracies 1 point apart have a deviation of sqrt(2.5) points; the difference has none.
    assert row == ["100", "50.0", "±", "1.6", "30.0", "±", "1.6", "+20.0", "[+20.0,", "+20.0]", "CNN", "5"]
    assert "−40.0 [−40.0, −40.0]" in text
    assert "A [b] <c>: test accuracy" in text
    assert any(line.split() == ["parameters", "12,345", "12,345"] for line in text.splitlines())
    assert any(line.split() == ["FLOPs/example", "2.1", "M", "950"] for line in text.splitlines())
    assert "CNN − ViT [95 %]" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_difference_whose_interval_holds_zero_has_no_leader():
    # At 1,000 images both have 50 %.
    rows = [line.split() for line in console(runs()).splitlines()]
    (row,) = (row for row in rows if row[:2] == ["1,000", "50.0"])
    assert row[-5:] == ["0.0", "[0.0,", "0.0]", "open", "5"]


def test_one_seed_and_missing_cells_have_no_spread():
    rows = [run for run in runs(seeds=1) if not (run.model == "vit" and run.train_size == 100)]
    text = console(rows)
    assert "±" not in text.replace("mean ± sd", "")
    (row,) = (line.split() for line in text.splitlines() if line.split()[:2] == ["100", "50.0"])
    assert row == ["100", "50.0", "–", "–", "–", "1", "and", "0"]


def test_the_page_holds_everything_and_reaches_for_nothing(tmp_path):
    text = page(tmp_path, runs())
    assert "http" not in text
    assert "//" not in text
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert all(address.startswith("#") for address in checker.addresses)
    assert {address[1:] for address in checker.addresses} <= set(checker.ids)
    words = " ".join(" ".join(checker.text).split())
    for line in report.summary_lines(runs(), [PANEL]):
        assert line.strip() in words
    assert "python -m experiments.data_size --out='a' && echo <done>" in words
    assert "versions.jax 0.10.2" in words
    assert "curves.1.model m" in words
    assert "cpu:0, cpu:1" in words
    assert "<p>First limit of two.</p>\n<p>Second &lt;limit&gt;.</p>" in text
    assert "+20.0 [+20.0, +20.0]" in words


def test_what_the_caller_gives_is_escaped(tmp_path):
    text = page(tmp_path, runs(), title='<script>alert("x")</script>', facts={"<k>": "<v>"})
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert '<th scope="row">&lt;k&gt;</th><td>&lt;v&gt;</td>' in text


def test_the_page_is_the_same_bytes_every_time(tmp_path):
    assert page(tmp_path, runs()) == page(tmp_path, runs())


@pytest.mark.parametrize("content", [None, "no figure"])
def test_a_figure_that_is_none_is_an_error_of_one_line(tmp_path, content):
    figure = tmp_path / "missing.svg"
    if content is not None:
        figure.write_text(content)
    with pytest.raises(UserError, match=r"missing\.svg: ") as error:
        page(tmp_path, runs(seeds=1), figure=figure)
    assert "\n" not in str(error.value)


def test_no_runs_no_words():
    assert report.summary_lines([], [PANEL]) == []
    assert console([]).strip() == ""


def test_parameters_that_differ_between_runs_are_given_as_a_range():
    rows = [dataclasses.replace(run, parameters=10_000 + run.train_size) for run in runs()]
    assert any(
        line.split() == ["parameters", "10,100", "to", "110,000", "10,100", "to", "110,000"]
        for line in console(rows, width=120).splitlines()
    )
