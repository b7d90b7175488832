"""Window, CNN, RNN or self-attention: the same task and head, one word of the config apart, on real sets.

    python -m experiments.encoders --preset=quick --out=runs/encoders/quick
    python -m experiments.encoders --preset=ud_en_ewt --out=runs/encoders/ud_en_ewt

`quick` takes sets that need no preparation; the others want theirs prepared (`python -m data.prepare NAME`).
Every run chooses its parameters on validation and measures the test part once. Ends with a table and
DIR/{results.csv, scores.png, scores.svg, manifest.json}. Kill it, start it again: only the missing runs run.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.framework import score_dots, tables
from experiments.framework.command import main
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.outcome import Outcome
from experiments.framework.study import Study

ACCURACY = {"accuracy": Metric("accuracy, %", is_share=True)}
RMSE = {"rmse": Metric("rmse", digits=3, lower_is_better=True)}


def _entries(*models: str, **fields: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Encoders by their words, with fields for some of them."""
    names = {
        "window_fc": "window-FC",
        "cnn": "CNN",
        "multi_width_cnn": "CNN",
        "rnn": "BiLSTM",
        "transformer": "self-attention",
    }
    return tuple(Entry(names[word], f"model={word}", fields.get(word, {})) for word in models)


_GRAMMAR_TAGS = Contest(
    "grammar_tags",
    "grammar, parts of speech",
    config="labeling",
    argument="dataset=grammar",
    metrics=ACCURACY,
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    updates=200,
)
_GRAMMAR = Contest(
    "grammar_agreement",
    "grammar, agreement over distance",
    config="classification",
    argument="dataset=grammar",
    metrics=ACCURACY,
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    updates=300,
)
_TONES = Contest(
    "tones",
    "tones, their order",
    config="speech",
    argument="dataset=tones",
    metrics=ACCURACY,
    entries=_entries("window_fc", "cnn", "rnn", "transformer"),
    updates=300,
)
_KARATE = Contest(
    "karate",
    "Zachary's karate club",
    config="graph",
    argument="dataset=karate",
    metrics=ACCURACY,
    entries=(Entry("MLP", "model=mlp"), Entry("GAT", "model=gat")),
)
_EWT = Contest(
    "ud_en_ewt",
    "UD English EWT, parts of speech",
    config="labeling",
    argument="dataset=ud_en_ewt",
    metrics=ACCURACY,
    entries=_entries("window_fc", "rnn", "transformer"),
    published=(("most frequent tag", 86.2), ("UDPipe 1.2", 94.4)),
)
_TREC = Contest(
    "trec",
    "TREC, six kinds of questions",
    config="classification",
    argument="dataset=trec",
    metrics=ACCURACY,
    entries=_entries("multi_width_cnn", "rnn", "transformer"),
    published=(("CNN-rand, low", 88.2), ("high", 91.2)),
)
_SST2 = Contest(
    "sst2",
    "SST-2, sentiment of sentences",
    config="classification",
    argument="dataset=sst2",
    metrics=ACCURACY,
    entries=_entries("multi_width_cnn", "rnn", "transformer"),
    published=(("CNN-rand, trained on phrases too", 83.5),),
)
_DIGIT = Contest(
    "fsdd_digit",
    "Free Spoken Digits, the digit",
    config="speech",
    argument="dataset=fsdd,target=digit",
    metrics=ACCURACY,
    entries=(
        Entry("self-attention", "model=transformer"),
        Entry("truncated attention", "model=transformer,attention=banded"),
    ),
    published=(("ResNet, low", 95.3), ("high", 97.0)),
)
_SPEAKER = dataclasses.replace(
    _DIGIT,
    name="fsdd_speaker",
    title="Free Spoken Digits, the speaker",
    argument="dataset=fsdd,target=speaker",
    published=(),
)
_CORA = Contest(
    "cora",
    "Cora, topics of papers",
    config="graph",
    argument="dataset=cora",
    metrics=ACCURACY,
    entries=(Entry("MLP", "model=mlp"), Entry("GAT", "model=gat")),
    published=(("MLP", 55.1), ("GCN", 81.5), ("GAT", 83.0)),
    seeds=20,
)
_ESOL = Contest(
    "esol",
    "ESOL, solubility of molecules",
    config="graph",
    argument="dataset=esol",
    metrics=RMSE,
    entries=(Entry("GAT", "model=gat"),),
    published=(("MPNN", 0.58), ("GC", 0.97)),
    folds=5,
)

PRESETS: dict[str, tuple[Contest, ...]] = {
    "quick": (_GRAMMAR_TAGS, _GRAMMAR, _TONES, _KARATE),
    "ud_en_ewt": (_EWT,),
    "trec": (_TREC,),
    "sst2": (_SST2,),
    "fsdd": (_DIGIT, _SPEAKER),
    "cora": (_CORA,),
    "esol": (_ESOL,),
}


def draw(outcome: Outcome) -> list[Path]:
    """Every run of the study as a dot."""
    return score_dots.draw(outcome.rows, outcome.contests, outcome.out / "scores")


STUDY = Study("encoders", __doc__, PRESETS, show=tables.decided, draw=draw)

if __name__ == "__main__":
    main(STUDY)
