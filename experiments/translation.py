"""Four generations of encoder and decoder on the same pairs of texts: BLEU, chrF, time, and where they look.

    python -m experiments.translation --preset=quick --out=runs/translation/quick
    python -m experiments.translation --preset=multi30k --out=runs/translation/multi30k

`quick` takes dates written in full in two languages, which need no preparation; the others want Multi30k
(`python -m data.prepare multi30k`). Every run chooses its parameters on validation and measures the test
part once. Ends with a table and DIR/{results.csv, alignments.png, alignments.svg, manifest.json}. Kill it,
start it again: only the missing runs run, and one that was under way goes on.
"""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from configs import EXPERIMENT
from experiments.framework import figures
from experiments.framework.command import main
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.outcome import Outcome
from experiments.framework.study import Study
from predict import Predictor
from tasks import alignment
from tasks.generation import signature
from tasks.translation import SCORES
from training import config as configs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = {
    "bleu_lower": Metric("BLEU, lower case"),
    "bleu": Metric("BLEU"),
    "chrf": Metric("chrF"),
    "perplexity": Metric("perplexity", digits=2, lower_is_better=True),
}

NO_ATTENTION, BAHDANAU, CONVS2S, TRANSFORMER = "RNN, no attention", "RNN, Bahdanau", "ConvS2S", "Transformer"
GENERATIONS = (NO_ATTENTION, BAHDANAU, CONVS2S, TRANSFORMER)

_DATES = Contest(
    "dates",
    "Dates in full, German to English",
    config="translation",
    argument="dataset=dates",
    metrics=METRICS,
    entries=(
        Entry(NO_ATTENTION, "model=rnn,attention=none"),
        Entry(BAHDANAU, "model=rnn,attention=bahdanau"),
        Entry(CONVS2S, "model=convolution"),
        Entry(TRANSFORMER, "model=transformer"),
    ),
    seeds=1,
)
_MULTI30K = Contest(
    "multi30k",
    "Multi30k test2016, German to English, greedy",
    config="translation",
    argument="dataset=multi30k",
    metrics=METRICS,
    entries=(
        Entry(NO_ATTENTION, "model=rnn,attention=none"),
        Entry(BAHDANAU, "model=rnn,attention=bahdanau"),
        Entry("RNN, Luong global dot", "model=rnn,attention=dot"),
        Entry("RNN, Luong global general", "model=rnn,attention=general"),
        Entry("RNN, Luong local-m", "model=rnn,attention=local_m"),
        Entry("RNN, Luong local-p", "model=rnn,attention=local_p"),
        Entry(CONVS2S, "model=convolution"),
        Entry(TRANSFORMER, "model=transformer"),
    ),
    published=(
        ("LSTM, no attention", 13.8),
        ("GRU, no attention", 20.6),
        ("BiGRU, Bahdanau", 28.3),
        ("ConvS2S", 34.1),
        ("Transformer", 36.5),
    ),
    seeds=1,
)
_MULTI30K_EN_DE = Contest(
    "multi30k_en_de",
    "Multi30k test2016, English to German, beam 5, averaged checkpoints",
    config="translation",
    argument="dataset=multi30k,source=en,target=de",
    metrics=METRICS,
    entries=(Entry("Transformer, tiny", "model=transformer,size=tiny"),),
    published=(("Transformer, tiny", 41.0),),
    seeds=1,
    # Ten checkpoints of the last five epochs.
    fields={
        "duration": "24 epochs",
        "decoding.beam": 5,
        "final": "average",
        "keep_checkpoints": 10,
        "checkpoint_every": "150 steps",
    },
)

PRESETS: dict[str, tuple[Contest, ...]] = {
    "quick": (_DATES,),
    "multi30k": (_MULTI30K,),
    "multi30k_en_de": (_MULTI30K_EN_DE,),
}

# A sentence of test2016, and a date of none of the parts, to look at.
SENTENCES = {
    "dates": "Mittwoch, 3. März 2021",
    "multi30k": "Ein Mädchen in einem Karateanzug bricht ein Brett mit einem Tritt.",
    "multi30k_en_de": "A girl in karate uniform breaking a stick with a front kick.",
}


def draw(outcome: Outcome) -> list[Path]:
    """Where each generation looked while it translated one sentence, side by side."""
    drawn = []
    for contest in outcome.contests:
        shown = [entry for entry in contest.entries if entry.model in GENERATIONS] or list(contest.entries)
        with figures.style_of_all():
            figure = Figure(figsize=(3.6 * len(shown), 4.2), layout="constrained")
            for axes, entry in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
                axes.set_title(entry.model, fontsize=9, fontweight="bold")
                _look(axes, outcome.folder(contest, entry.model), SENTENCES[contest.name])
            drawn += figures.save(figure, outcome.out / "alignments")
    return drawn


def _look(axes: "Axes", folder: Path, sentence: str) -> None:
    """The alignment of a sentence by a run, or what the run makes of it where it has no attention."""
    record = {"text": sentence, "where": "the sentence"}
    if _is_without_attention(folder):
        said = "sees one vector\n\n" + textwrap.fill(Predictor(folder)([record])[0]["text"], 28)
        axes.axis("off")
        axes.text(0.5, 0.5, said, ha="center", va="center", fontsize=8)
    else:
        alignment.draw(axes, Predictor(folder, {"align": True})([record])[0]["alignment"])


def _is_without_attention(folder: Path) -> bool:
    """Whether a run's decoder sees a summary alone."""
    decoder = configs.load(folder, EXPERIMENT).model.decoder
    return decoder.kind == "rnn" and decoder.attention.kind == "none"


def facts() -> dict[str, Any]:
    """How the scores are counted, as sacrebleu says it."""
    return {"signatures": {name: signature(score) for name, score in SCORES.items()}}


STUDY = Study("translation", __doc__, PRESETS, draw=draw, facts=facts)

if __name__ == "__main__":
    main(STUDY)
