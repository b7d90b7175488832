"""Questions about passages, answered by spans of them: exact match and F1 of the reader.

    python -m experiments.reading --preset=quick --out=runs/reading/quick
    python -m data.prepare xquad_en --from DIR
    python -m experiments.reading --preset=xquad --out=runs/reading/xquad

`quick` takes generated facts, which need no preparation. `xquad` parts XQuAD, made for evaluation alone, by
its articles: about a thousand questions to learn from show that the reader runs, not what it could learn.
Every run chooses its parameters on validation and measures the test part once. Ends with a table and
DIR/{results.csv, manifest.json}. Kill it, start it again: only the missing runs run.
"""

from experiments.framework.command import main
from experiments.framework.contests import Contest, Entry, Metric
from experiments.framework.study import Study

METRICS = {"exact_match": Metric("exact match, %", is_share=True), "f1": Metric("F1, %", is_share=True)}


def _contest(name: str, title: str, seeds: int, *entries: Entry) -> Contest:
    return Contest(
        name,
        title,
        config="reading",
        argument=f"dataset={name}",
        metrics=METRICS,
        entries=entries,
        seeds=seeds,
    )


_READER = Entry("co-attention, gate", "model=rnn")
_MATCHED = Entry("with self-matching", "model=rnn,self_matching=additive")

PRESETS = {
    "quick": (_contest("facts", "Generated facts", 3, _READER),),
    "xquad": (
        _contest("xquad_en", "XQuAD English, a tenth of its articles", 1, _READER, _MATCHED),
        _contest("xquad_zh", "XQuAD Chinese, a tenth of its articles", 1, _READER, _MATCHED),
    ),
}

STUDY = Study("reading", __doc__, PRESETS)

if __name__ == "__main__":
    main(STUDY)
