"""Configs from the command line and from a run's folder; every mistake is one line."""

import json

import pytest
from ml_collections import ConfigDict

from errors import UserError
from tests.command import ROOT
from training import config as configs

# How ml_collections loads a config file.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")

IMAGE = "--config=configs/image.py"


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def parse(*arguments):
    return configs.parse(["train.py", *arguments], ("workdir", "resume"))


def error(*arguments):
    with pytest.raises(UserError) as caught:
        parse(*arguments)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_flags_and_overrides():
    config, flags = parse(
        IMAGE + ":model=cnn,smoke",
        "--config.optimizer.learning_rate=1e-2",
        "--config.model.widths=(4,8,12)",
        "--config.dataset.mean=(0.5,)",
        "--config.test=false",
        "--config.duration=3 epochs",
        "--workdir=runs/a",
    )
    assert flags == {"workdir": "runs/a"}
    assert config.model.kind == "cnn"
    assert config.optimizer.learning_rate == 0.01
    assert config.model.widths == (4, 8, 12)
    assert config.dataset.mean == (0.5,)
    assert config.test is False
    assert config.duration == "3 epochs"
    assert config.log_every == "20 steps"


def test_the_last_of_two_overrides_wins():
    assert parse(IMAGE, "--config.seed=1", "--config.seed=2")[0].seed == 2


def test_no_config_is_none():
    assert parse("--resume=runs/a") == (None, {"resume": "runs/a"})


def test_the_argument_is_read_and_not_the_process():
    """One after the other: nothing of a config stays behind for the next."""
    assert parse(IMAGE + ":model=vit", "--config.seed=1")[0].seed == 1
    config, _ = parse(IMAGE + ":model=cnn", "--config.model.norm=group")
    assert (config.seed, config.model.norm) == (0, "group")


@pytest.mark.parametrize(
    "argument, parts",
    [
        (
            "--config.optimizer.learning_rat=1",
            ("'optimizer.learning_rat'", "Did you mean 'optimizer.learning_rate'?", "seed"),
        ),
        ("--config.optimiser.learning_rate=1", ("Did you mean 'optimizer.learning_rate'?",)),
        ("--config.sede=1", ("'sede'", "Did you mean 'seed'?")),
        ("--config.optimizer={}", ("--config.optimizer is a block", "--config.optimizer.accumulation=")),
        ("--config.model=cnn", ("--config.model is a block",)),
        ("--config.seed=abc", ("--config.seed=abc", "int")),
        ("--config.seed=1.5", ("--config.seed=1.5", "int")),
        ("--config.optimizer.learning_rate=fast", ("--config.optimizer.learning_rate=fast", "float")),
        ("--config.test=maybe", ("--config.test=maybe", "oolean")),
        ("--config.seed", ("--config.seed", "alue")),
        ("--wrokdir=x", ("'--wrokdir'", "Did you mean '--workdir'?")),
        ("--workdir", ("--workdir", "alue")),
        ("extra", ("'extra' is not a flag",)),
    ],
)
def test_a_wrong_argument_is_one_line(argument, parts):
    message = error(IMAGE, argument)
    assert [part for part in parts if part not in message] == [], message


@pytest.mark.parametrize(
    "given, parts",
    [
        (IMAGE + ":modle=vit", ("unknown config argument 'modle'. Did you mean 'model'?", "smoke")),
        (IMAGE + ":model=vti", ("unknown model 'vti'. Did you mean 'vit'? Allowed: cnn, vit",)),
        (IMAGE + ":model", ("'model'", "str")),
        (IMAGE + ":smoke=maybe", ("smoke", "bool")),
        ("--config=configs/imag.py", ("'configs/imag.py'", "Did you mean 'configs/image.py'?")),
        ("--config=configs", ("configs",)),
        ("--config=", ("config",)),
        ("--config=README.md", ("README.md",)),
        ("--config=configs/arguments.py", ("configs/arguments.py",)),
    ],
)
def test_a_wrong_config_is_one_line(given, parts):
    message = error(given)
    assert [part for part in parts if part not in message] == [], message


@pytest.mark.parametrize(
    "source",
    ["def get_config(", "import no_such_module\ndef get_config(): pass"],
    ids=["syntax", "import"],
)
def test_a_config_file_that_does_not_run_is_one_line(source, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(source)
    assert "broken.py" in error(f"--config={path}")


def test_an_override_without_a_config_is_one_line():
    assert "--config.seed=1 overrides" in error("--config.seed=1")


def some_config():
    return ConfigDict(
        {
            "seed": 3,
            "rate": 1e-3,
            "name": "a",
            "test": True,
            "sizes": (1, 2.5, "x"),
            "block": {"empty": (), "deep": {"nested": ((1, 2), (3,))}},
        }
    )


def test_a_saved_config_comes_back_with_its_tuples(tmp_path):
    configs.save(some_config(), tmp_path)
    loaded = configs.load(tmp_path)
    assert loaded.to_dict() == some_config().to_dict()
    assert isinstance(loaded.block, ConfigDict)
    assert configs.difference(some_config(), loaded) is None
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: c.update(seed=4), "seed was 3, is now 4"),
        (lambda c: c.block.update(empty=(1,)), "block.empty was (), is now (1,)"),
        (lambda c: c.update(new=1), "new was None, is now 1"),
        (lambda c: c.block.deep.__delitem__("nested"), "block.deep.nested was ((1, 2), (3,)), is now None"),
    ],
)
def test_a_difference_is_named_with_both_values(change, said):
    changed = some_config()
    change(changed)
    assert configs.difference(some_config(), changed) == said


@pytest.mark.parametrize(
    "text, said",
    [(None, "holds no run: there is no config.json"), ("{", "is not a config"), ("[1]", "is not a config")],
)
def test_a_folder_without_a_config_is_one_line(tmp_path, text, said):
    if text is not None:
        (tmp_path / configs.FILE).write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        configs.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_json_lists_are_tuples_at_every_depth():
    config = configs.from_json(json.dumps({"a": [[1, [2]], []]}))
    assert config.a == ((1, (2,)), ())
