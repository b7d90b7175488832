"""Graphs as a task: which nodes count, metrics in the unit of the target, and new input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import tasks
from configs import EXPERIMENT, graph
from errors import UserError
from training import config as configs


class Given(nnx.Module):
    """A model whose outputs are its nodes, or those of node 0."""

    def __init__(self, per_node):
        self.per_node = per_node
        self.kernel = nnx.Param(jnp.array([1.0, 3.0]))
        self.bias = nnx.Param(jnp.array([5.0]))

    def __call__(self, nodes, mask, *, edges, train=False, rngs=None):
        return nodes if self.per_node else nodes[:, 0]


def config(argument="smoke", **fields):
    return configs.override(graph.get_config(argument), fields, EXPERIMENT, parsed=True)


def batch(nodes, **columns):
    nodes = jnp.asarray(nodes, jnp.float32)
    ends = jnp.zeros((len(nodes), 1), jnp.int32)
    edges = {"senders": ends, "receivers": ends, "edge_mask": ends > 0}
    return {"nodes": nodes, **edges, **{name: jnp.asarray(value) for name, value in columns.items()}}


LOG3 = float(np.log(3))
# The last node is padding; node 1 has no label here. Cross-entropies log 4/3, -, log 4.
NODES = batch(
    [[[LOG3, 0], [0, 9], [LOG3, 0], [7, 7]]],
    mask=np.array([[True, True, True, False]]),
    tags=np.array([[0, -1, 1, 0]], np.int32),
    weight=np.ones(1, np.float32),
)


def test_only_labelled_nodes_count():
    task = tasks.build(config(l2=0.0))
    loss, weight, sums = task.loss(Given(True), NODES, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(loss, np.log(4 / 3) + np.log(4), rtol=1e-6)
    assert (float(weight), float(sums["accuracy"])) == (2, 1)
    found = jax.device_get(task.evaluate(Given(True), NODES))
    metrics = task.metrics([(jax.device_get(NODES), found)])
    assert (metrics["accuracy"], metrics["examples"]) == (0.5, 2)
    np.testing.assert_allclose(metrics["loss"], (np.log(4 / 3) + np.log(4)) / 2, rtol=1e-6)


def test_the_penalty_is_half_the_squared_kernels_on_the_mean_loss():
    losses = [
        tasks.build(config(l2=l2)).loss(Given(True), NODES, rngs=nnx.Rngs(0))[0] / 2 for l2 in (0.0, 0.1)
    ]
    np.testing.assert_allclose(losses[1] - losses[0], 0.1 / 2 * (1 + 9), rtol=1e-5)


def task_of_molecules(tmp_path, values):
    path = tmp_path / "X.csv"
    path.write_text("smiles,target\n" + "".join(f"C,{value}\n" for value in values))
    return tasks.build(config(f"dataset=file:{path},smoke"))


def test_errors_of_numbers_are_in_their_unit(tmp_path):
    pytest.importorskip("rdkit", reason="needs RDKit, extra 'molecules'")
    task = task_of_molecules(tmp_path, np.arange(20) * 10.5)
    std = task.measured.target_std[0]
    graphs = batch(
        [[[1.0]], [[0.5]], [[77.0]]],
        mask=np.ones((3, 1), bool),
        target=np.array([[0.0], [1.0], [0.0]], np.float32),
        weight=np.array([1, 1, 0], np.float32),
    )
    loss, weight, _ = task.loss(Given(False), graphs, rngs=nnx.Rngs(0))
    np.testing.assert_allclose([loss, weight], [1.25, 2], rtol=1e-6)
    metrics = task.metrics([(jax.device_get(graphs), jax.device_get(task.evaluate(Given(False), graphs)))])
    np.testing.assert_allclose(metrics["rmse"], std * np.sqrt(1.25 / 2), rtol=1e-6)
    np.testing.assert_allclose(metrics["mae"], std * 0.75, rtol=1e-6)
    assert task.lower_is_better
    inputs = task.data().inputs
    answer = task.answer({}, {"output": np.array([2.0])}, inputs)
    np.testing.assert_allclose(answer["value"], [2 * std + task.measured.target_mean[0]], rtol=1e-5)
    records = [{"text": text, "where": f"line {n}"} for n, text in enumerate(["CC=O", "", "C"], 1)]
    [(rows, made)] = task.encode(records, inputs)
    assert [row for row in rows if row >= 0] == [0, 2]
    assert sorted(made["mask"].sum(1))[-2:] == [1, 3]
    with pytest.raises(UserError, match=r"^line 1: 'C\(' is no SMILES"):
        list(task.encode([{"text": "C(", "where": "line 1"}], inputs))


def test_the_area_under_the_curve():
    task = tasks.build(config())  # karate has two classes
    # Scores of class 1 by difference: 1, 2, 3, 4 for classes 0, 1, 0, 1: three of four pairs are right.
    found = {
        "output": np.array([[0, 1], [1, 3], [0, 3], [0, 4.0]]),
        "loss": np.zeros(4),
        "weight": np.ones(4),
    }
    metrics = task.metrics([({"label": np.array([0, 1, 0, 1])}, found)])
    assert (metrics["roc_auc"], metrics["accuracy"]) == (0.75, 0.5)


def test_karate_as_one_batch():
    data = tasks.build(config()).data()
    assert (data.num_train, data.batches_per_epoch, data.batch_sizes) == (1, 1, (1,))
    train = next(data.train())
    assert train["nodes"].shape == (1, 40, 34)
    assert train["mask"].sum() == 34
    assert train["edge_mask"].sum() == 156
    counts = {"train": 4, "validation": 8, "test": 22}
    for split, count in counts.items():
        [made] = [train] if split == "train" else list(data.evaluation[split]())
        assert ((made["tags"] >= 0) & made["mask"]).sum() == count


def test_a_folder_is_answered_node_by_node(tmp_path):
    (tmp_path / "nodes.tsv").write_text(
        "id\tlabel\tsplit\ta\tb\nu\tx\ttrain\t1\t2\nv\ty\ttrain\t3\t5\n"
        "w\tx\tvalidation\t1\t1\nz\ty\ttest\t2\t2\n"
    )
    (tmp_path / "edges.tsv").write_text("u\tv\nw\tz\n")
    task = tasks.build(config(f"dataset=folder:{tmp_path},smoke"))
    inputs = task.data().inputs
    record = {"path": str(tmp_path), "where": str(tmp_path)}
    [(rows, made)] = task.encode([record], inputs)
    assert rows.tolist() == [0]
    output = np.zeros((8, 2))
    output[[1, 3], 1] = 1
    answer = task.answer(record, {"output": output}, inputs)
    assert answer["labels"] == {"u": "x", "v": "y", "w": "x", "z": "y"}
    assert answer["line"] == f"\n{tmp_path}\t".join(["u\tx", "v\ty", "w\tx", "z\ty"])
    assert made["nodes"][0, :4].tolist() == [[1, 2], [3, 5], [1, 1], [2, 2]]
    assert list(task.encode([{"text": "", "where": "line 1"}], inputs)) == []


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"l2": -1.0}, "config.l2 is -1.0; it must be a number, at least 0"),
        ({"choose_by": "rmse"}, "unknown config.choose_by 'rmse'"),
        (
            {"encoding.scaling": "row"},
            "config.encoding.scaling is 'row'; it must be one of none, rows, standard",
        ),
    ],
)
def test_a_wrong_field_is_one_line(fields, said):
    with pytest.raises(UserError) as raised:
        tasks.build(config(**fields)).data()
    assert str(raised.value).startswith(said)


def test_tasks_are_the_same_by_what_decides_the_loss():
    one, same, other = (tasks.build(config(**f)) for f in ({}, {"dataset.split_seed": 2}, {"l2": 1.0}))
    assert hash(one) == hash(same)
    assert one == same
    assert one != other
