"""Strings of spoken digits to text: error rates, also of longer strings than in training, and where it looks.

    python -m experiments.transcription --preset=quick --out=runs/transcription/quick
    python -m data.prepare fsdd
    python -m experiments.transcription --preset=fsdd_strings --out=runs/transcription/fsdd_strings
    python -m experiments.transcription --preset=speaker_out --out=runs/transcription/speaker_out

`quick` takes strings of tones, which need no preparation; `speaker_out` is tested on the one speaker that it
was not trained on. Every run chooses its parameters on validation and measures the test part once. Ends with
a table and DIR/{results.csv, alignment.png, alignment.svg, manifest.json}. Kill it, start it again: only the
missing runs run.
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from scipy.io import wavfile

from configs import EXPERIMENT
from experiments.framework import figures
from experiments.framework.command import main
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.outcome import Outcome
from experiments.framework.study import Study
from predict import Predictor
from tasks import alignment
from tasks.transcription import TRANSCRIBED
from training import config as configs

METRICS = {
    "word_error_rate": Metric("WER, %", is_share=True, lower_is_better=True),
    "word_error_rate_long": Metric("WER of 6 to 8, %", is_share=True, lower_is_better=True),
    "character_error_rate": Metric("CER, %", is_share=True, lower_is_better=True),
    "character_error_rate_long": Metric("CER of 6 to 8, %", is_share=True, lower_is_better=True),
}


def _contest(name: str, title: str, argument: str, entries: tuple[Entry, ...]) -> Contest:
    return Contest(
        name,
        title,
        config="transcription",
        argument=argument,
        metrics=METRICS,
        entries=entries,
        seeds=1,
    )


_RNN = Entry("RNN, Bahdanau", "model=rnn")
_TRUNCATED = Entry("Transformer, truncated attention", "model=transformer,attention=truncated")

PRESETS = {
    "quick": (_contest("tone_strings", "Strings of 2 to 5 tones", "dataset=tone_strings", (_RNN,)),),
    "fsdd_strings": (
        _contest(
            "fsdd_strings",
            "Strings of 2 to 5 spoken digits, official test clips",
            "dataset=fsdd_strings",
            (_RNN, _TRUNCATED),
        ),
    ),
    "speaker_out": (
        _contest(
            "speaker_out",
            "Strings of 2 to 5 digits by a speaker never heard, theo",
            "dataset=fsdd_strings,speaker_out=theo",
            (_RNN,),
        ),
    ),
}


def draw(outcome: Outcome) -> list[Path]:
    """Where the first model of each contest looked while it wrote down a string of the test part."""
    drawn = []
    for contest in outcome.contests:
        folder = outcome.folder(contest, contest.entries[0].model)
        record = {"path": str(recording(folder, outcome.out / f"{contest.name}.wav"))}
        answer = Predictor(folder, {"align": True})([record])[0]
        with figures.style_of_all():
            figure = Figure(figsize=(6.5, 4.6), layout="constrained")
            axes = figure.add_subplot()
            alignment.draw(axes, answer["alignment"])
            axes.set_xlabel("second", fontsize=8)
            axes.xaxis.set_label_position("top")
            drawn += figures.save(figure, outcome.out / "alignment")
    return drawn


def recording(folder: Path, path: Path) -> Path:
    """The first of the strings in a run's test part that are as long as any in training, as a wav file."""
    test = TRANSCRIBED.build(configs.load(folder, EXPERIMENT).dataset, "config.dataset").test
    usual = [string for string in test if not string.group]
    sound: Any = max(usual, key=lambda string: len(string.text.split())).sound
    wavfile.write(path, sound.rate, sound.samples)
    return path


STUDY = Study("transcription", __doc__, PRESETS, draw=draw)

if __name__ == "__main__":
    main(STUDY)
