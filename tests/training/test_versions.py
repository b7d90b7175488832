"""What older versions wrote: their configs, their parameters and a run of theirs.

`version_1/NAME.json` holds a `config.json` and the `inputs.json` that version 1 wrote, with what the config
means now, field by field, and the parameters and statistics that its checkpoint has, with their shapes.
Nothing of it is made by today's code but `now`, which was read through. `graph_run.tar.xz` is a run that
version 1 made: eight steps, of which the checkpoint of the fourth is kept.
"""

import json
import shutil
from pathlib import Path

import jax
import pytest
from flax import nnx

import tasks
import train
from configs import EXPERIMENT
from data.graph.generated import karate
from predict import Predictor
from tests.command import ROOT
from training import config as configs
from training import metric_writer, versions

FOLDER = ROOT / "tests" / "training" / "version_1"
OLD = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("name", OLD)
def test_a_config_of_version_1_is_what_it_was(name):
    """If a default has changed since, say in `training.versions.SINCE` what it was."""
    made = configs.from_json(json.dumps(OLD[name]["config"]), EXPERIMENT)
    assert configs._flat(made) == {path: tuples(value) for path, value in OLD[name]["now"].items()}
    again = configs.from_json(json.dumps({"version": versions.NEWEST, **configs._plain(made)}), EXPERIMENT)
    assert again.to_dict() == made.to_dict()


def test_there_is_a_config_of_every_task_that_version_1_had():
    """A task that came later has no run of then."""
    had = {old["config"]["task"] for old in OLD.values()}
    assert len(had) == 8
    assert had <= set(tasks.TASKS)


@pytest.mark.parametrize("name", OLD)
def test_parameters_are_where_they_were(name):
    """Only so can a checkpoint of version 1 be read."""
    old = OLD[name]
    task = tasks.build(configs.from_json(json.dumps(old["config"]), EXPERIMENT))
    model = nnx.eval_shape(lambda: task.make_model(old["inputs"], nnx.Rngs(params=0)))
    _, params, statistics = nnx.split(model, nnx.Param, ...)
    for found, kept in ((params, old["parameters"]), (statistics, old["statistics"])):
        leaves = jax.tree_util.tree_leaves_with_path(nnx.to_pure_dict(found))
        shapes = {"/".join(str(key.key) for key in path): list(leaf.shape) for path, leaf in leaves}
        assert shapes == {path.removesuffix("/value"): shape for path, shape in kept.items()}


@pytest.mark.parametrize(("path", "since", "value"), versions.SINCE)
def test_a_field_that_came_later_has_the_value_of_before(path, since, value):
    """Also where the config is so old that it does not know the field."""
    assert since <= versions.NEWEST
    old = json.loads(json.dumps(OLD["graph"]["config"]))
    block = old
    for name in path.split(".")[:-1]:
        block = block[name]
    block.pop(path.rpartition(".")[2], None)
    assert configs._flat(configs.from_json(json.dumps(old), EXPERIMENT))[path] == value


@pytest.mark.parametrize(
    ("name", "changes", "found"),
    [
        ("image_vit", {"seed": 5}, {"dataset.split_seed": 5, "seed": 5}),
        ("image_vit", {"seed": 5, "dataset.subset_seed": 0}, {"dataset.split_seed": 0, "seed": 5}),
        ("image_vit", {"model.num_heads": 2}, {"model.head_dim": 16, "model.num_kv_heads": 2}),
        (
            "image_vit",
            {"model.variant": "s"},
            {"model.dim": 64, "model.num_layers": 4, "model.hidden_dim": 256},
        ),
        ("image_vit", {"model.dropout_rate": 0.1}, {"model.attention_dropout_rate": 0.1}),
        ("image_cnn", {"model.variant": "m"}, {"model.widths": (64, 128, 252), "model.blocks": (2, 2, 2)}),
        ("graph", {"dataset.fold": 3, "dataset.fold_seed": 7}, {"dataset.fold": 3, "dataset.split_seed": 7}),
        ("graph", {"best_metric": ""}, {"choose_by": "accuracy"}),
        ("graph", {"num_devices": 2, "patience": 4}, {"num_devices": 2, "patience": 4}),
        ("labeling_rnn", {"dataset.fold": 0}, {"dataset.fold": 0}),
        ("labeling_rnn", {"optimizer.name": "sgd"}, {"optimizer.kind": "sgd", "optimizer.momentum": 0.9}),
        ("labeling_rnn", {"model.positions": {"kind": "learned"}}, {"model.positions.max_length": 512}),
        (
            "classification_transformer",
            {"model.attention": {"kind": "banded", "window": [3, 3]}, "model.dropout_rate": 0.2},
            {"model.encoder.attention.window": (3, 3), "model.encoder.attention_dropout_rate": 0.0},
        ),
        (
            "classification_transformer",
            {"model.positions": {"kind": "shaw"}},
            {"model.encoder.attention.kind": "shaw", "model.encoder.attention.max_distance": 16},
        ),
        (
            "speech",
            {"model.head": {"pool": "self_attentive", "hops": 3, "dropout_rate": 0.1}},
            {"model.head.pool.hops": 3},
        ),
    ],
)
def test_what_stood_for_something_else(name, changes, found):
    """A seed for two things, 0 and "" for what something else decides, words that brought a mechanism."""
    old = json.loads(json.dumps(OLD[name]["config"]))
    for path, value in changes.items():
        block = old
        *outer, last = path.split(".")
        for each in outer:
            block = block[each]
        block[last] = value
    now = configs._flat(configs.from_json(json.dumps(old), EXPERIMENT))
    assert {path: now.get(path) for path in found} == found


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run that version 1 made, eight steps long, of whose checkpoints the fourth's is left."""
    shutil.unpack_archive(FOLDER / "graph_run.tar.xz", tmp_path, filter="data")
    return tmp_path / "graph_run"


def test_a_run_of_version_1_goes_on_and_ends_as_it_did(folder):
    """With dropout, in the middle of an epoch, to the numbers that version 1 came to."""
    ended = json.loads((folder / train.RESULT).read_text())
    logged = metric_writer.read(folder / "metrics.jsonl")
    (folder / train.RESULT).unlink()
    steps: list[int] = []
    result = train.train(configs.load(folder, EXPERIMENT), folder, listener=steps.append)
    assert steps == [5, 6, 7, 8]
    for one, two in zip(logged, metric_writer.read(folder / "metrics.jsonl"), strict=True):
        assert two.pop("split") == one.pop("split")
        assert two == pytest.approx(one, rel=1e-3)
    ended.pop("flops_per_example")  # the compiler's estimate
    assert {name: result[name] for name in ended} == pytest.approx(ended, rel=1e-4)


def test_a_run_of_version_1_predicts(folder, tmp_path):
    """The club it was trained on, as a folder; as many members of the test are told right as in its test."""
    (club,) = karate.splits().test
    nodes, size = tmp_path / "nodes.tsv", len(club.features)
    rows = [["id", *(f"is_{member}" for member in range(size))]]
    rows += [[str(member), *map(str, club.features[member])] for member in range(size)]
    nodes.write_text("".join("\t".join(row) + "\n" for row in rows))
    ends = zip(club.senders, club.receivers, strict=True)
    (tmp_path / "edges.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in ends))
    (answer,) = Predictor(folder)([{"path": str(tmp_path), "where": "the club"}])
    asked = {member: label for member, label in enumerate(club.labels) if label}
    right = [answer["labels"][str(member)] == label for member, label in asked.items()]
    tested = json.loads((folder / train.RESULT).read_text())
    assert (len(right), sum(right) / len(right)) == (22, pytest.approx(tested["test_accuracy"]))


def test_a_damaged_folder_of_version_1_is_refused_as_any_other(folder):
    config = folder / configs.FILE
    config.write_text(config.read_text().replace('"seed": 3', '"sede": 3'))
    with pytest.raises(configs.UserError, match=r"config\.json is not a config: 'seed' is missing"):
        configs.load(folder, EXPERIMENT)
