"""Where a model looked while it made a sequence: weights `[T, S]` with what stands at their sides."""

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Alignment:
    """Attention of one example.

    Attributes:
        source: what stands at each place of the input, S words.
        target: what was made, T words.
        weights: of attention, the mean of heads and layers, float `[T, S]`.
    """

    source: Sequence[str]
    target: Sequence[str]
    weights: np.ndarray

    def __post_init__(self):
        if self.weights.shape != (len(self.target), len(self.source)):
            raise ValueError(
                f"weights {self.weights.shape} are not of {len(self.target)} targets by {len(self.source)} "
                "places of the source"
            )

    def save(self, folder: Path, name: str) -> None:
        """Write `name.png`, `name.npz` (source, target, weights) and `name.csv` (a row per target)."""
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            folder / f"{name}.npz",
            source=np.array(self.source, str),
            target=np.array(self.target, str),
            weights=self.weights,
        )
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["", *self.source])
            for word, row in zip(self.target, self.weights, strict=True):
                writer.writerow([word, *(f"{weight:.6f}" for weight in row)])
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        width, height = (2 + 0.28 * min(len(side), 100) for side in (self.source, self.target))
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot(), self)
        figure.savefig(folder / f"{name}.png", dpi=120)


def draw(axes, alignment: Alignment) -> None:
    """The weights as a picture in axes of matplotlib: a row for each target, dark where it looked."""
    axes.imshow(alignment.weights, cmap="Greys", vmin=0, aspect="auto", interpolation="nearest")
    axes.xaxis.tick_top()
    _label(axes.set_xticks, alignment.source, rotation=90)
    _label(axes.set_yticks, alignment.target)
    axes.tick_params(length=0)


def _label(set_ticks, words: Sequence[str], **how) -> None:
    """At most sixty labels: of a recording not every frame."""
    every = -(-len(words) // 60)
    places = list(range(0, len(words), every))
    # Dollars would be taken for formulas.
    set_ticks(places, [words[place].replace("$", r"\$") for place in places], fontsize=8, **how)
