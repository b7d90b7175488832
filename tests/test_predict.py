"""A trained run applied to new input, as a command and in this process."""

import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import predict
import train
from configs import EXPERIMENT, image, translation
from data.image import load
from data.text.generated import dates
from errors import RunError, UserError
from predict import Predictor
from tests import command
from training import config as configs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small ViT after 60 steps on digits."""
    fields = {
        "model.dim": 16,
        "model.num_layers": 1,
        "model.patch_size": 4,
        "num_devices": 1,
        "evaluate_every": None,
    }
    config = configs.override(image.get_config("model=vit,smoke"), fields, EXPERIMENT, parsed=True)
    workdir = tmp_path_factory.mktemp("runs") / "digits"
    return workdir, train.train(config, workdir)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The first 20 test digits as PNG files, and their labels."""
    folder, split = tmp_path_factory.mktemp("files"), load.labelled("digits").test
    paths = [folder / f"{i}.png" for i in range(20)]
    for path, pixels in zip(paths, split.images, strict=False):
        Image.fromarray(pixels[..., 0]).save(path)
    return [str(path) for path in paths], split.labels[:20]


def test_new_input_is_answered_as_the_test_split_was(run, files):
    workdir, result = run
    paths, labels = files
    answers = Predictor(workdir)([{"path": path, "where": path} for path in paths])
    right = np.mean([answer["label"] == str(label) for answer, label in zip(answers, labels, strict=True)])
    assert abs(right - result["test_accuracy"]) < 0.3
    assert all(0 <= answer["probability"] <= 1 and answer["line"] == answer["label"] for answer in answers)


def test_as_a_command(run, files):
    workdir, _ = run
    paths = files[0][:3]
    expected = [answer["label"] for answer in Predictor(workdir)([{"path": path} for path in paths])]
    lines = command.run("predict.py", f"--run={workdir}", *paths).stdout.splitlines()
    assert lines == [f"{path}\t{label}" for path, label in zip(paths, expected, strict=True)]
    objects = list(predict.output(Predictor(workdir), "jsonl", paths, "text"))
    assert [json.loads(line)["label"] for line in objects] == expected


def test_a_run_folder_works_wherever_it_is_moved(run, files, tmp_path):
    shutil.copytree(run[0], tmp_path / "moved")
    assert Predictor(tmp_path / "moved")([{"path": files[0][0]}])[0]["label"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--run={run}", "no.png"], "image file no.png does not exist"),
        (["--run={run}", "--format=xml"], "unknown format 'xml'"),
        (["--run={run}", "--format=csv", "a.png"], "takes no files"),
        (["--run=/nowhere"], "/nowhere holds no run"),
        (["--run={run}", "--beam=5"], "makes no sequences, task image_classification; not for it: beam"),
        ([], "--run"),
    ],
)
def test_mistakes_are_one_line(run, arguments, said, monkeypatch):
    monkeypatch.setattr("sys.argv", ["predict.py", *(a.format(run=run[0]) for a in arguments)])
    monkeypatch.setattr(predict.launch, "compilation_cache", lambda: None)
    with pytest.raises(UserError) as caught:
        predict.main()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_inputs_that_were_changed_or_are_of_another_run_are_refused(run, tmp_path):
    shutil.copytree(run[0], tmp_path / "run")
    path = tmp_path / "run" / "inputs.json"
    kept = json.loads(path.read_text())
    kept["inputs"]["label_names"][0] = "nought"
    path.write_text(json.dumps(kept))
    with pytest.raises(RunError, match=r"inputs\.json has changed since it was written"):
        Predictor(tmp_path / "run")
    path.unlink()
    predict.run_inputs.save(kept["inputs"], tmp_path / "run")
    with pytest.raises(RunError, match="do not belong together"):
        Predictor(tmp_path / "run")
    path.unlink()
    with pytest.raises(UserError, match=r"there is no inputs\.json"):
        Predictor(tmp_path / "run")


class Echo:
    """A predictor that says what it was given."""

    def __call__(self, records):
        return [{"line": record["text"].upper(), "length": len(record["text"])} for record in records]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A small RNN after two steps on dates."""
    fields = {
        "duration": "2 steps",
        "num_devices": 1,
        "buckets": 1,
        "test": False,
        "model.dim": 8,
        "decoding.max_ratio": 0.2,
    }
    config = configs.override(translation.get_config("model=rnn,smoke"), fields, EXPERIMENT, parsed=True)
    workdir = tmp_path_factory.mktemp("runs") / "dates"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dates, "NUM_EXAMPLES", {"train": 100, "validation": 4, "test": 4})
        train.train(config, workdir)
    return workdir


def test_a_sequence_is_looked_for_as_the_command_says(translator, monkeypatch, tmp_path, capsys):
    records = [{"text": text} for text in ("Montag, 5. Mai 2025", "", "Dienstag")]
    arguments = [f"--run={translator}", "--beam=2", "--best=2", "--format=jsonl", f"--align={tmp_path}"]
    monkeypatch.setattr("sys.argv", ["predict.py", *arguments])
    monkeypatch.setattr(predict.launch, "compilation_cache", lambda: None)
    given = "\n".join(map(json.dumps, records)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    predict.main()
    first, blank, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert blank == {}
    for answer in (first, last):
        assert len({one["text"] for one in answer["hypotheses"]}) == 2
        assert "alignment" not in answer
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["0001.png", "0003.png"]


def read(monkeypatch, kind, content, column="text"):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    return list(predict.output(Echo(), kind, [], column))


def test_one_line_for_every_line(monkeypatch):
    given = "\ufeffone\r\n\n  \ntwo\x0bthree\u2028four\x85\nlast".encode()
    assert read(monkeypatch, "lines", given) == ["ONE", "", "  ", "TWO\x0bTHREE\u2028FOUR\x85", "LAST"]
    assert read(monkeypatch, "lines", b"") == []


def test_more_lines_than_are_read_at_once(monkeypatch):
    monkeypatch.setattr(predict, "CHUNK", 2)
    assert read(monkeypatch, "lines", b"a\nb\nc\nd\ne\n") == ["A", "B", "C", "D", "E"]


def test_objects(monkeypatch):
    assert read(monkeypatch, "jsonl", b'{"text": "ab"}\n{"text": ""}\n') == ['{"length": 2}', '{"length": 0}']
    with pytest.raises(UserError, match="line 2 of the input is not JSON"):
        read(monkeypatch, "jsonl", b'{"text": "ab"}\nab\n')
    with pytest.raises(UserError, match="line 1 of the input is list"):
        read(monkeypatch, "jsonl", b"[1]\n")


def test_tables(monkeypatch):
    given = b'id,review\n1,"so, so"\n2,good\n'
    said = read(monkeypatch, "csv", given, column="review")
    assert said == ["id,review,prediction", '1,"so, so","SO, SO"', "2,good,GOOD"]
    with pytest.raises(UserError, match="unknown column 'text'"):
        read(monkeypatch, "csv", given)
    with pytest.raises(UserError, match="already has a column"):
        read(monkeypatch, "csv", b"text,prediction\n")


def test_lines_that_are_no_text(monkeypatch):
    with pytest.raises(UserError, match="line 2 of the input is not UTF-8"):
        read(monkeypatch, "lines", b"a\n\xe4\n")
