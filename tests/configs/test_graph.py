"""The config of graphs: each kind of data has its settings."""

import pytest

from configs import graph
from errors import UserError


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
