"""The config of graphs: every field is read, and each kind of data has its settings."""

import pytest

import train
from configs import graph
from errors import UserError
from tests.configs.test_configs import unread


def test_every_field_is_read(tmp_path):
    config = graph.get_config("smoke")
    config.duration = config.evaluate_every = config.checkpoint_every = config.log_every = "2 steps"
    config.model.update({"num_heads": 1, "head_dim": 2})
    for block in (config, config.dataset, config.optimizer):
        block.planted = 1
    with unread(config) as left:
        train.train(config, tmp_path / "run")
    assert left == {"planted", "dataset.planted", "optimizer.planted"}


@pytest.mark.parametrize("model", graph.MODELS)
@pytest.mark.parametrize(
    "dataset, pool", [("cora", ""), ("folder:x", ""), ("mutag", "sum"), ("file:x", "sum")]
)
def test_arguments(model, dataset, pool):
    config = graph.get_config(f"model={model},dataset={dataset},fold=3")
    assert (config.model.kind, config.model.pool) == (model, pool)
    assert (config.dataset.name, config.dataset.fold) == (dataset, 3)
    assert config.dataset.scaling == ("rows" if dataset == "cora" else "none")


def test_an_unknown_model_is_one_line():
    with pytest.raises(UserError, match=r"^unknown model 'gatt'\. Did you mean 'gat'\?"):
        graph.get_config("model=gatt")
