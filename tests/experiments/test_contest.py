"""Studies that are contests: every entry has a config of its own, and the table that they share."""

import io
import os

import pytest
from rich.console import Console

from experiments import captioning, encoders, reading, transcription, translation
from experiments import contest as contests
from experiments.contest import Contest, Entry, Metric, Study

STUDIES = (captioning, encoders, reading, transcription, translation)


@pytest.mark.parametrize(
    "contest",
    [c for study in STUDIES for preset in study.PRESETS.values() for c in preset],
    ids=lambda c: c.name,
)
def test_every_entry_has_a_config_and_differs_from_the_others(contest):
    configs = [contests.config_for(contest, entry, 1, 0).to_dict() for entry in contest.entries]
    assert all(config["seed"] == 1 for config in configs)
    assert len({str(config) for config in configs}) == len(configs)
    assert len({entry.model for entry in contest.entries}) == len(configs)


@pytest.mark.parametrize("study", [study for study in STUDIES if study is not encoders])
def test_every_metric_of_a_table_is_a_column(study):
    for preset in study.PRESETS.values():
        for contest in preset:
            assert {contest.metric, *contest.also} == set(study.METRICS)


def test_the_table_says_mean_deviation_and_time(tmp_path, monkeypatch):
    contest = Contest(
        "pairs",
        "Pairs of texts",
        config="translation",
        argument="",
        metric="bleu",
        also=("accuracy",),
        entries=(Entry("one", ""), Entry("two", "")),
        published=(("someone", 28.3),),
        seeds=2,
    )
    study = Study((contest,), tmp_path, 1, Console())
    monkeypatch.setattr(contests, "minutes", lambda *_: 12.4)
    rows = [
        {"contest": "pairs", "model": "one", "test": test, "test_accuracy": share, "parameters": 1234}
        for test, share in ((30.0, 0.5), (31.0, 0.75))
    ]
    metrics = {"bleu": Metric("BLEU", digits=2), "accuracy": Metric("right, %", is_share=True)}

    def printed(width):
        file = io.StringIO()
        Console(file=file, width=width).print(contests.table(study, contest, rows, metrics))
        return file.getvalue()

    shown = [line.split() for line in printed(100).splitlines() if line.strip()]
    assert shown[0] == ["Pairs", "of", "texts"]
    assert shown[3] == ["one", "30.50", "±", "0.71", "62.5", "±", "17.7", "1,234", "12"]
    assert shown[4] == ["someone", "(published)", "28.3"]
    narrow = printed(60)  # names break, numbers and headings do not
    assert all(whole in narrow for whole in ("30.50 ± 0.71", "62.5 ± 17.7", "parameters", "minutes"))


def test_time_is_from_config_to_result(tmp_path):
    entry = Entry("one", "")
    contest = Contest("c", "c", config="", argument="", metric="bleu", entries=(entry,))
    study = Study((contest,), tmp_path, 1, Console())
    folder = contests.run_folder(study, contest, entry)
    assert folder == tmp_path / "runs" / "c-one-seed0"
    folder.mkdir(parents=True)
    for name, time in (("config.json", 1_000_000), ("result.json", 1_000_090)):
        (folder / name).write_text("")
        os.utime(folder / name, (time, time))
    assert contests.minutes(study, contest, entry) == 1.5
