"""Learning curves: what the figure says, of whole studies and unfinished ones."""

import dataclasses
import struct
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from errors import UserError
from experiments.framework import figures, learning_curves
from experiments.framework.learning_curves import Panel, Reference, Row
from tests.command import ROOT

POINTED = Panel(
    "pointed",
    "Pointed digits",
    "which digit has the colour of the square?",
    chance=0.2,
    references=(Reference(0.6, "without the relation"),),
    control="control",
    control_label="one digit, no square",
)
DIGITS = Panel("digits", "Digits", "real images", chance=0.1)

MEANS = {
    ("pointed", "cnn"): {300: 0.30, 1000: 0.40, 3000: 0.52, 10000: 0.60, 100000: 0.60},
    ("pointed", "vit"): {300: 0.25, 1000: 0.31, 3000: 0.47, 10000: 0.77, 100000: 0.82},
    ("control", "cnn"): {300: 0.70, 1000: 0.82, 3000: 0.91, 10000: 0.96, 100000: 0.975},
    ("control", "vit"): {300: 0.55, 1000: 0.70, 3000: 0.83, 10000: 0.91, 100000: 0.95},
    ("digits", "cnn"): {50: 0.80, 100: 0.88, 200: 0.94, 1200: 0.985},
    ("digits", "vit"): {50: 0.70, 100: 0.82, 200: 0.90, 1200: 0.97},
}


def runs(seeds=3, noise=0.01):
    rng = np.random.default_rng(0)
    made = []
    for (panel, model), means in MEANS.items():
        parameters, flops = (28_042, 2.1e6) if model == "cnn" else (27_946, 1.1e6)
        for size, mean in means.items():
            for seed in range(seeds):
                accuracy = float(np.clip(mean + rng.normal(0, noise), 0, 1))
                made.append(
                    Row(panel, model, size, seed, 2000, 1e-3, parameters, flops, accuracy, accuracy, 900)
                )
    return made


def width_and_height(png):
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    return struct.unpack(">II", content[16:24])


def test_the_figure_is_drawn_as_png_and_svg(tmp_path):
    files = learning_curves.draw(runs(), [DIGITS, POINTED], tmp_path / "new" / "curve")
    assert files == [tmp_path / "new" / "curve.png", tmp_path / "new" / "curve.svg"]
    width, height = width_and_height(files[0])
    assert (width, height > 400) == (1410, True)
    assert files[1].read_text().rstrip().endswith("</svg>")


def test_the_svg_is_the_same_bytes_every_time(tmp_path):
    first = learning_curves.draw(runs(), [POINTED], tmp_path / "a")
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 20, "svg.hashsalt": "other"}):
        second = learning_curves.draw(runs(), [POINTED], tmp_path / "b")
    assert first[1].read_bytes() == second[1].read_bytes()
    assert first[0].read_bytes() == second[0].read_bytes()
    assert "<dc:date>" not in first[1].read_text()
    other = learning_curves.draw(runs(noise=0.02), [POINTED], tmp_path / "c")
    assert first[1].read_bytes() != other[1].read_bytes()


def drawn_text(monkeypatch, tmp_path, rows, panels):
    """Every text of the figure, taken just before it is saved."""
    kept = []

    def keep(figure, out):
        texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
        kept.extend(text.get_text() for text in texts)
        kept.extend(label.get_text() for axes in figure.axes for label in axes.get_xticklabels())
        return []

    monkeypatch.setattr(learning_curves, "save", keep)
    learning_curves.draw(rows, panels, tmp_path / "curve")
    return kept


def test_the_figure_says_where_the_curves_cross(monkeypatch, tmp_path):
    texts = drawn_text(monkeypatch, tmp_path, runs(seeds=5), [DIGITS, POINTED])
    assert "no crossing: CNN leads throughout" in texts
    (crossing,) = (text for text in texts if "overtakes" in text)
    assert crossing.startswith(("ViT overtakes CNN\nat 3,", "ViT overtakes CNN\nat 4,"))
    assert "(95 %: " in crossing
    assert {"chance 10 % (below)", "chance 20 %", "without the relation"} <= set(texts)
    assert any(text.endswith("pale: one digit, no square") for text in texts)
    assert texts.count("CNN") == 3  # two panels and the control
    assert any("means over 5 seeds. Bands: bootstrap 95 %" in text for text in texts)
    assert "100,000" in texts


def test_few_seeds_are_not_called_a_95_percent_band(monkeypatch, tmp_path):
    texts = drawn_text(monkeypatch, tmp_path, runs(seeds=2), [DIGITS])
    assert any("Bands: lowest to highest seed" in text for text in texts)
    assert not any("95 % intervals" in text for text in texts)


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(lambda run: run.seed == 0, id="one seed"),
        pytest.param(lambda run: run.train_size in (50, 300), id="one size"),
        pytest.param(lambda run: run.model == "cnn", id="one model"),
        pytest.param(lambda run: run.panel != "control", id="no control yet"),
        pytest.param(lambda run: run.panel == "pointed", id="one panel"),
        pytest.param(lambda run: (run.train_size + run.seed) % 3, id="holes"),
        pytest.param(lambda run: run.model == "cnn" or run.train_size > 3000, id="one behind"),
    ],
)
def test_an_unfinished_study_is_drawn(tmp_path, kept):
    rows = [run for run in runs() if kept(run)]
    png, svg = learning_curves.draw(rows, [DIGITS, POINTED], tmp_path / "curve")
    assert png.stat().st_size > 10_000
    assert svg.stat().st_size > 10_000


def test_perfect_and_equal_curves_are_drawn(monkeypatch, tmp_path):
    rows = [dataclasses.replace(run, test_accuracy=1.0) for run in runs()]
    texts = drawn_text(monkeypatch, tmp_path, rows, [DIGITS])
    assert "no crossing: they are equal" in texts


def test_nothing_to_draw_is_an_error_that_names_what_was_found(tmp_path):
    with pytest.raises(UserError, match=r"no run of panel fashion \(found: control, digits, pointed"):
        learning_curves.draw(runs(), [Panel("fashion", "Fashion")], tmp_path / "curve")


def test_models_keep_their_look_in_every_figure():
    assert figures.style("cnn").colour != figures.style("vit").colour
    assert figures.style("cnn").marker != figures.style("vit").marker
    assert figures.style("another") == figures.style("another")


def test_importing_is_cheap():
    code = (
        "import sys, experiments.data_size;"
        "sys.exit(', '.join({'jax', 'flax', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
