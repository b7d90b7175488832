"""Show, attend and tell without attention, with soft and with hard: BLEU-4, and where they look.

    python -m data.prepare fashion_mnist
    python -m experiments.captioning --preset=quick --out=runs/captioning/quick

Scenes of pieces of clothing, three seeds; `digits` takes scenes that need no preparation. Every run chooses
its parameters on validation and measures the test part once. Ends with a table and DIR/{results.csv,
looks.png, looks.svg, manifest.json}. Kill it, start it again: only the missing runs run.
"""

import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from data.image import load as load_images
from data.image.generated import scenes
from experiments.framework import figures
from experiments.framework.command import main
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.outcome import Outcome
from experiments.framework.study import Study
from predict import Predictor
from tasks.alignment import Alignment
from tasks.captioning import BLEU
from tasks.generation import signature

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

METRICS = {
    "bleu": Metric("BLEU-4"),
    "exact": Metric("told right, %", is_share=True),
    "pointing": Metric("looks at it, %", is_share=True),
    "pointing_chance": Metric("by chance, %", is_share=True),
}
NONE, SOFT, HARD = "no attention", "soft", "hard"


def _contest(name: str, title: str) -> Contest:
    return Contest(
        name,
        title,
        config="captioning",
        argument=f"dataset={name}",
        metrics=METRICS,
        entries=(
            Entry(NONE, "attention=none"),
            Entry(SOFT, "attention=soft"),
            Entry(HARD, "attention=hard"),
        ),
        seeds=3,
    )


PRESETS = {
    "quick": (_contest("fashion_scenes", "Scenes of clothing"),),
    "digits": (_contest("digit_scenes", "Scenes of digits"),),
}


def scene(contest: Contest, out: Path) -> Path:
    """The first test scene of four things, as an image file in the study's folder."""
    test = load_images.captioned(contest.name, train_size=1).test
    things = [int(boxes.any(axis=1).sum()) for boxes in test.boxes]
    path = out / f"{contest.name}.png"
    Image.fromarray(test.images[things.index(scenes.MOST), :, :, 0]).save(path)
    return path


def draw(outcome: Outcome) -> list[Path]:
    """Where soft and hard attention look while they name the things of one scene."""
    drawn = []
    for contest in outcome.contests:
        path = scene(contest, outcome.out)
        shown = [entry for entry in contest.entries if entry.model != NONE]
        with figures.style_of_all():
            figure = Figure(figsize=(1.5 * (scenes.MOST + 1), 1.85 * len(shown)), layout="constrained")
            grid = figure.subfigures(len(shown), 1, squeeze=False)[:, 0]
            for row, entry in zip(grid, shown, strict=True):
                _looks(row, entry.model, contest, outcome.folder(contest, entry.model), path)
            drawn += figures.save(figure, outcome.out / "looks")
    return drawn


def _looks(row: "SubFigure", title: str, contest: Contest, folder: Path, path: Path) -> None:
    """The image, and over it where a run looks for each thing that it names."""
    pixels = np.asarray(Image.open(path))
    height, width = pixels.shape
    things = {name.split()[-1] for name in scenes.SETS[contest.name].names}
    answer = Predictor(folder, {"align": True})([{"path": str(path), "where": str(path)}])[0]
    row.suptitle(f"{title}: {answer['text']}", fontsize=8.5, x=0.01, ha="left")
    panels = row.subplots(1, scenes.MOST + 1)
    for axes in panels:
        axes.axis("off")
    panels[0].imshow(pixels, cmap="gray")
    for axes, (word, weights) in zip(panels[1:], named(answer["alignment"], things), strict=False):
        axes.imshow(pixels, cmap="gray")
        over = {"extent": (-0.5, width - 0.5, height - 0.5, -0.5), "interpolation": "nearest"}
        axes.imshow(weights, cmap="inferno", vmin=0, vmax=weights.max(), alpha=0.6, **over)
        axes.set_title(word, fontsize=8)


def named(alignment: Alignment, things: Collection[str]) -> list[tuple[str, np.ndarray]]:
    """The words of a caption that name a thing, each with its weights as a square grid."""
    side = math.isqrt(len(alignment.source))
    words = [piece.removeprefix("▁") for piece in alignment.target]
    return [
        (word, weights.reshape(side, side))
        for word, weights in zip(words, alignment.weights, strict=True)
        if word in things
    ]


def facts() -> dict[str, Any]:
    """How BLEU is counted, as sacrebleu says it."""
    return {"signature": signature(BLEU)}


STUDY = Study("captioning", __doc__, PRESETS, draw=draw, facts=facts)

if __name__ == "__main__":
    main(STUDY)
