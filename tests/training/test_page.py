"""A config as a page: every field with its value, what it is for and what it may be."""

import sys

import pytest

import train
from configs import EXPERIMENT
from errors import UserError
from tests.command import ROOT
from training import config as configs
from training import page


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(train.launch, "compilation_cache", lambda: None)


def command(monkeypatch, capsys, *arguments):
    """What `train.py` prints."""
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    train.main()
    return capsys.readouterr().out


def shown(argument, **changes):
    config = configs.override(configs.from_file(argument, EXPERIMENT), changes, EXPERIMENT, parsed=True)
    return page.shown(config, EXPERIMENT)


def entry(text, block, name):
    """What stands at a field: its value, and its comment in one line."""
    (lines,) = [part.splitlines() for part in text.split("\n\n") if part.startswith(f"{block}: ")]
    start = next(at for at, line in enumerate(lines) if line.startswith(f"    {name} = "))
    value, _, comment = lines[start].partition("#")
    for line in lines[start + 1 :]:
        if line.startswith("    ") and not line.startswith("     "):
            break
        comment += " " + line.strip().removeprefix("#").strip()
    return value.partition("=")[2].strip(), comment.strip()


def test_a_field_has_its_value_its_comment_and_what_is_allowed():
    text = shown("configs/image.py:smoke", seed=3)
    assert entry(text, "config", "seed")[0] == "3"
    assert entry(text, "config", "seed")[1].endswith("[an integer, at least 0]")
    assert entry(text, "config.model", "pool") == (
        "mean",
        '"mean" over patches, or "class": a learned extra token that the head reads. [one of mean, class]',
    )
    assert entry(text, "config.encoding", "mean") == (
        "None",
        "of each channel, of pixels in [0, 1]; None: measured on the training images. "
        "[a tuple, each of it a number, at least 0, or None]",
    )
    assert entry(text, "config.model", "kind")[1].endswith("[one of cnn, vit]")
    assert entry(text, "config.dataset", "name")[0] == "digits"
    assert entry(text, "config", "duration")[0] == "'60 steps'"


def test_blocks_in_blocks_and_several_of_them_have_their_paths():
    text = shown("configs/labeling.py:model=transformer,attention=banded+none")
    assert entry(text, "config.model.encoder.attention.0", "window")[0] == "(15, 15)"
    assert "config.model.encoder.attention.1: " in text
    heads = [line.partition(": ")[0] for line in text.splitlines() if line.startswith("config")]
    assert len(set(heads)) == len(heads)


def test_the_command_shows_each_config(monkeypatch, capsys):
    assert len(configs.files()) >= 9
    for path in configs.files():
        text = command(monkeypatch, capsys, f"--config={path}", "--config.seed=5", "--show")
        assert entry(text, "config", "seed")[0] == "5", path
        assert max(map(len, text.splitlines())) <= page.WIDTH


def test_help_says_how_to_call_it_and_which_configs_there_are(monkeypatch, capsys):
    text = command(monkeypatch, capsys, "--help")
    assert "python train.py --config=" in text
    assert "configs/graph.py           Graphs: a label for every node" in text
    assert text.count("  configs/") >= len(configs.files())


def test_there_is_nothing_to_show_without_a_config(monkeypatch, capsys):
    with pytest.raises(UserError, match=r"^--show shows a config: give --config="):
        command(monkeypatch, capsys, "--show")
