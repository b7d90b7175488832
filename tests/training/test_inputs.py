"""What a run knows of its data, kept beside its config."""

import json

import pytest

from errors import RunError, UserError
from training import inputs

WORDS = {"words": ["<pad>", "à", "saw"], "mean": [0.25]}


def test_kept_as_it_was(tmp_path):
    inputs.save(WORDS, tmp_path)
    assert inputs.load(tmp_path) == WORDS
    inputs.save({"mean": (0.25,), "words": tuple(WORDS["words"])}, tmp_path)  # the same, as JSON has it
    assert [path.name for path in tmp_path.iterdir()] == ["inputs.json"]


def test_a_run_of_other_data_is_left_alone(tmp_path):
    inputs.save(WORDS, tmp_path)
    with pytest.raises(UserError, match=r"inputs\.json is of other data: its SHA-256 begins"):
        inputs.save({**WORDS, "mean": [0.5]}, tmp_path)
    assert inputs.load(tmp_path) == WORDS


@pytest.mark.parametrize("text", ["", "[]", '{"inputs": {}}', '{"sha256": "0", "inputs": {"a": 1}}'])
def test_damage_is_noticed(tmp_path, text):
    (tmp_path / "inputs.json").write_text(text)
    with pytest.raises(RunError, match=r"inputs\.json (is damaged|has changed)"):
        inputs.load(tmp_path)


def test_one_changed_letter_is_noticed(tmp_path):
    inputs.save(WORDS, tmp_path)
    path = tmp_path / "inputs.json"
    kept = json.loads(path.read_text())
    kept["inputs"]["words"][2] = "sew"
    path.write_text(json.dumps(kept))
    with pytest.raises(RunError, match="has changed since"):
        inputs.load(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="holds no run that can predict"):
        inputs.load(tmp_path)
