"""The look of every figure: one colour and one marker for each model, fixed settings, files without dates.

SVG files are the same bytes whenever they are drawn from the same rows, so that they can be committed.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Style:
    """How a model is drawn and called, in every figure and table."""

    name: str
    colour: str
    marker: str


# From the palette of Okabe and Ito, which readers with any colour vision tell apart; the markers
# tell them apart in grey.
STYLES = {
    "cnn": Style("CNN", "#D55E00", "o"),
    "vit": Style("ViT", "#0072B2", "s"),
    "CNN": Style("CNN", "#D55E00", "o"),
    "BiLSTM": Style("BiLSTM", "#009E73", "D"),
    "window-FC": Style("window-FC", "#6B6B6B", "^"),
    "self-attention": Style("self-attention", "#0072B2", "s"),
    "truncated attention": Style("truncated attention", "#56B4E9", "P"),
    "GAT": Style("GAT", "#0072B2", "s"),
    "graph Transformer": Style("graph Transformer", "#56B4E9", "P"),
    "MLP": Style("MLP", "#6B6B6B", "^"),
}
_OTHERS = (("#009E73", "D"), ("#CC79A7", "^"), ("#E69F00", "v"), ("#56B4E9", "P"))

INK, GREY = "#222222", "#6B6B6B"  # of text, and of what stands back


def style(model: str) -> Style:
    """The style of a model; one without its own gets a free colour, the same for the same name."""
    if model in STYLES:
        return STYLES[model]
    colour, marker = _OTHERS[sum(model.encode()) % len(_OTHERS)]
    return Style(model, colour, marker)


# Matplotlib's settings for every figure of this repository.
RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same
    "font.size": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.fonttype": "path",
    "svg.hashsalt": "attention",  # without a salt the ids inside the SVG are random
}


@contextlib.contextmanager
def style_of_all() -> Iterator[None]:
    """The look of every figure: a reader's own matplotlibrc must not change a committed one."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def save(figure: "Figure", out: Path) -> list[Path]:
    """Writes both files; neither holds a date or a version, which would differ without a change."""
    out.parent.mkdir(parents=True, exist_ok=True)
    files = [out.with_name(out.name + suffix) for suffix in (".png", ".svg")]
    figure.savefig(files[0], dpi=150, metadata={"Software": None})
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(files[1], metadata=nothing)
    return files
