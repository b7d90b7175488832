"""Texts of recordings: rates by hand, the data set as numbers, and new recordings."""

import json

import jax
import numpy as np
import pytest
import scipy.io.wavfile
from flax import nnx

import tasks
from configs import EXPERIMENT, transcription
from data.examples import Examples
from data.speech import load
from data.speech.frames import FrameEncoder
from data.splits import Splits
from data.text.subwords import END, Subwords
from errors import UserError
from tasks import task as task_module
from tasks.task import Encoded
from training import config as configs


def build(argument="smoke", **fields):
    config = transcription.get_config(argument)
    fields = {"dataset.num_strings": 12, "model.dim": 8, **fields}
    return tasks.build(configs.override(config, fields, EXPERIMENT, parsed=True))


def test_groups_are_measured_apart():
    task = build()
    part = Examples({"group": np.array([0, 0, 1], np.int32)})
    none = part.take(np.array([], np.int64))
    task.__dict__["encoded"] = Encoded(Splits(none, none, part), {"groups": ["", "long"]}, [])
    made = ["one two", "tree", "one one one two"]
    right = [["one two"], ["three"], ["one one two two"]]
    assert task.measure(made, right, np.arange(3)) == {
        "word_error_rate": 1 / 3,
        "character_error_rate": 1 / 12,
        "word_error_rate_long": 1 / 4,
        "character_error_rate_long": 3 / 15,  # "two" for "one", which share no place: t-w-o, o-n-e
    }
    assert task.measure(made[:1], right[:1], np.arange(1)) == {
        "word_error_rate": 0,
        "character_error_rate": 0,
    }
    assert (task.best_metric, task.lower_is_better) == ("word_error_rate", True)


@pytest.mark.parametrize("unit", ["char", "word"])
def test_the_data_set_as_numbers(unit):
    task = build(f"unit={unit},smoke")
    found = task.load()
    parts, inputs, references = found.splits, found.inputs, found.answers
    assert json.loads(json.dumps(inputs)) == inputs
    strings = load.transcribed("tone_strings", num_strings=12)
    assert [len(part) for part in vars(parts).values()] == [12, 12, 24]
    assert references == [[string.text] for part in vars(strings).values() for string in part]
    target = Subwords.from_json(inputs["target"])
    assert target.size == 4 + (3 if unit == "word" else len(set("lowmidehg")) + 1)
    for part, first in ((parts.train, 0), (parts.test, 24)):
        assert part.fields["example"].tolist() == list(range(first, first + len(part)))
        for row, number in enumerate(part.fields["example"]):
            tokens = part.targets["tokens"][row].tolist()
            assert (target.decode(tokens), tokens[-1]) == (references[number][0], END)
            assert len(tokens) == 1 + len(references[number][0].split() if unit == "word" else tokens[:-1])
    assert parts.test.fields["group"].tolist() == 12 * [0] + 12 * [1]
    assert inputs["groups"] == ["", "long"]
    expected = FrameEncoder.from_json(inputs["frames"]).frames(strings.validation[:1])[0]
    np.testing.assert_array_equal(parts.validation.vectors["frames"][0], expected)


def test_recordings_alone_and_together(tmp_path):
    task = build(**{"decoding.align": True})
    inputs = task.load().inputs
    model = task.make_model(inputs, nnx.Rngs(0))
    predict = jax.jit(lambda batch: task.predict(model, batch))

    def answers(records):
        return task_module.answers(task, predict, records, inputs)

    records = []
    for name, rate, seconds in (("slow", 8_000, 0.3), ("fast", 44_100, 0.26)):
        noise = np.random.default_rng(len(name)).normal(0, 0.1, int(rate * seconds))
        scipy.io.wavfile.write(tmp_path / f"{name}.wav", rate, noise.astype(np.float32))
        records.append({"path": str(tmp_path / f"{name}.wav"), "where": name})
    together = answers(records)
    (alone,) = answers(records[1:])
    assert alone["line"] == together[1]["line"]
    assert alone["hypotheses"][0]["score"] == pytest.approx(together[1]["hypotheses"][0]["score"], abs=1e-4)
    # 28 and 24 frames, of which four make a vector, 40 ms.
    assert together[0]["alignment"].source == ("0.00", "0.04", "0.08", "0.12", "0.16", "0.20", "0.24")
    assert together[1]["alignment"].source == ("0.00", "0.04", "0.08", "0.12", "0.16", "0.20")
    with pytest.raises(UserError, match="line 3: a wav file is needed"):
        answers([{"text": "hello", "where": "line 3"}])
