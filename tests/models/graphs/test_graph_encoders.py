"""Encoders of graphs: what a layer computes, and that neither padding nor the order of nodes matters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.graphs import GRAPH_ENCODERS
from models.graphs.edges import Edges, with_self_loops
from models.graphs.gat import GAT, GATLayer
from models.graphs.model import GRAPH_MODEL, UNORDERED
from tests.models.parameters import filled, paths, program, run, shaped

NODE_DIM, EDGE_DIM, OUTPUTS = 3, 2, 5
FIELDS = {
    "gat": {"num_heads": 2, "head_dim": 4, "residual": True, "norm": True, "num_layers": 2},
    "transformer": {"dim": 8, "num_layers": 1, "num_heads": 2, "hidden_dim": 7},
    "mlp": {"dim": 8, "num_layers": 2},
}

# Node 3 of the first graph has no neighbours; its edge 0 -> 2 is listed twice, and 1 has a self loop.
PAIRS = ([(0, 1), (1, 0), (0, 2), (0, 2), (1, 1)], [(1, 0)])
NODES = (4, 2)


def build(kind, *, pool="none", make=filled, **changed):
    encoder = {"kind": kind, **FIELDS[kind], **changed}
    return make(
        GRAPH_MODEL.build,
        {"encoder": encoder, "pool": pool},
        node_dim=NODE_DIM,
        edge_dim=EDGE_DIM,
        num_outputs=OUTPUTS,
        per_node=pool == "none",
    )


def padded(T, E, *, filling=0.0, order=None):
    """Both graphs as one batch, padded to T nodes and E edges; `order` renames the nodes of the first."""
    rng = np.random.default_rng(0)
    nodes = np.full((2, T, NODE_DIM), filling, np.float32)
    features = np.full((2, E, EDGE_DIM), filling, np.float32)
    senders, receivers = np.full((2, E), 0 if filling == 0 else 1), np.zeros((2, E), int)
    mask, edge_mask = np.zeros((2, T), bool), np.zeros((2, E), bool)
    for row, (pairs, size) in enumerate(zip(PAIRS, NODES, strict=True)):
        place = np.arange(size) if order is None or row else np.asarray(order)
        nodes[row, place] = rng.normal(size=(size, NODE_DIM))
        senders[row, : len(pairs)] = [place[s] for s, _ in pairs]
        receivers[row, : len(pairs)] = [place[r] for _, r in pairs]
        by_pair = {pair: rng.normal(size=EDGE_DIM) for pair in dict.fromkeys(pairs)}
        features[row, : len(pairs)] = [by_pair[pair] for pair in pairs]
        mask[row, :size], edge_mask[row, : len(pairs)] = True, True
    ends = (ends.astype(np.int32) for ends in (senders, receivers))
    return nodes, mask, Edges(*ends, edge_mask, features)


@jax.jit
def outputs(model, nodes, mask, edges):
    return model(nodes, mask, edges=edges)


@jax.jit
def learn(model, nodes, mask, edges):
    """Outputs, and gradients of parameters by a form of them."""
    structure, params = nnx.split(model)

    def form(params):
        out = nnx.merge(structure, params)(nodes, mask, edges=edges)
        weights = np.cos(np.arange(OUTPUTS, dtype=np.float32))
        return jnp.einsum("...k,k->", out, weights), out

    gradient, out = jax.grad(form, has_aux=True)(params)
    return out, gradient


def test_every_encoder_is_tried():
    assert FIELDS.keys() == set(GRAPH_ENCODERS)


@pytest.mark.parametrize("kind, pool", [("gat", "sum"), ("transformer", "none"), ("mlp", "self_attentive")])
def test_padding_changes_nothing(kind, pool):
    """NaN in it neither, in values and gradients; a graph alone is as in a batch.

    Both graphs are padded, in both axes; alone there is no padding.
    """
    model = build(kind, pool=pool)
    out, gradient = learn(model, *padded(7, 8))
    dirty, dirty_gradient = learn(model, *padded(7, 8, filling=np.nan))
    for one, two in zip(
        jax.tree.leaves((out, gradient)), jax.tree.leaves((dirty, dirty_gradient)), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-4)
        assert np.isfinite(one).all()
    if pool == "none":
        assert (out[0, 4:] == 0).all()
        assert (out[1, 2:] == 0).all()
    # The second graph alone.
    nodes, mask, edges = padded(7, 8)
    alone = outputs(model, nodes[1:, :2], mask[1:, :2], Edges(*(x[1:, :1] for x in edges)))
    np.testing.assert_allclose(alone[0], out[1] if pool != "none" else out[1, :2], atol=1e-5)


@pytest.mark.parametrize("kind", ["gat", "transformer"])
def test_a_node_hears_its_senders_alone_in_any_order(kind):
    model = build(kind, num_layers=1)
    nodes, mask, edges = padded(4, 10)
    before = np.asarray(outputs(model, nodes, mask, edges))[0]
    assert np.isfinite(before).all()  # a node without neighbours hears itself
    order = [2, 0, 3, 1]
    renamed = outputs(model, *padded(4, 10, order=order))
    np.testing.assert_allclose(renamed[0, np.array(order)], before, atol=1e-5)
    changed = nodes.copy()
    changed[0, 0] += 1
    after = outputs(model, changed, mask, edges)[0]
    assert (np.abs(after - before).max(-1) > 1e-4).tolist() == [True, True, True, False]
    twice = Edges(*(np.concatenate([x[:, :5], x[:, :5]], axis=1) for x in edges))
    np.testing.assert_allclose(outputs(model, nodes, mask, twice)[0], before, atol=1e-5)
    # Features of edges count.
    other = outputs(model, nodes, mask, edges._replace(features=edges.features + 1))[0]
    assert np.abs(other - before)[:3].max() > 1e-3
    np.testing.assert_allclose(other[3], before[3], atol=1e-6)


def test_a_gat_layer_by_hand():
    # One head of one feature, W = 1. Node 0 hears itself and 1: scores leaky_relu(h[0] + 2 h[s]).
    layer = filled(GATLayer, 1, 1, 1)
    for array, value in (
        (layer.projection.kernel, 1),
        (layer.query_kernel, 1),
        (layer.key_kernel, 2),
        (layer.bias, 10),
    ):
        array[...] = np.full(array.shape, value, np.float32)
    edges = Edges(np.array([[1]]), np.array([[0]]), np.array([[True]]))
    mask, nodes = np.ones((1, 2), bool), np.array([[[1], [-1]]], np.float32)
    out = jax.jit(lambda layer, nodes: layer(nodes, with_self_loops(edges, mask)))(layer, nodes)
    own, other = np.exp(3.0), np.exp(-0.2)
    np.testing.assert_allclose(out[0, :, 0], [10 + (own - other) / (own + other), 9], rtol=1e-6)


def test_heads_are_concatenated_but_for_the_last_layer():
    model = build("gat", residual=False, norm=False, num_layers=2, make=shaped)
    assert model.head is None
    assert [layer.projection.kernel.shape for layer in model.encoder.layers] == [(3, 8), (8, OUTPUTS)]
    assert jax.eval_shape(outputs, model, *padded(4, 5)).shape == (2, 4, OUTPUTS)
    assert shaped(GAT, num_heads=2, head_dim=4, in_dim=3).dim == 8


@pytest.mark.parametrize("kind", GRAPH_ENCODERS)
def test_dropout_needs_rngs(kind):
    nodes, mask, edges = padded(4, 5)
    dropping, sure = (build(kind, make=shaped, dropout_rate=rate) for rate in (0.5, 0.0))
    assert program(dropping, nodes, mask, edges=edges, train=True) == program(sure, nodes, mask, edges=edges)
    assert "random_bits" in program(dropping, nodes, mask, edges=edges, seed=0)


@pytest.mark.parametrize("pool", UNORDERED)
def test_pools_of_graphs_are_those_that_know_no_order(pool):
    model = build("mlp", pool=pool, make=shaped)
    shape = jax.eval_shape(outputs, model, *padded(4, 5)).shape
    assert shape == ((2, 4, OUTPUTS) if pool == "none" else (2, OUTPUTS))
    assert ("hidden/kernel" in paths(model)) == (pool != "none")


def test_a_head_starts_at_nothing_where_a_graph_is_answered():
    model = jax.jit(
        lambda key: GRAPH_MODEL.build(
            {"encoder": "mlp"}, node_dim=3, edge_dim=0, num_outputs=2, per_node=False, rngs=nnx.Rngs(key)
        )
    )(jax.random.key(0))
    assert not np.asarray(model.head.kernel[...]).any()
    nodes, mask, edges = padded(4, 5)
    np.testing.assert_array_equal(run(model, nodes, mask, edges=edges._replace(features=None)), 0)


@pytest.mark.parametrize(
    "block, per_node, message",
    [
        ({"encoder": "gcn"}, True, "unknown encoder of graphs in config.model.encoder 'gcn'"),
        (
            {"pool": "last"},
            False,
            "unknown pool of graphs in config.model.pool 'last'. Allowed: max, mean, none,",
        ),
        (
            {"encoder": {"kind": "transformer", "num_heads": 3}},
            False,
            "dim 64 is not divisible by num_heads 3",
        ),
        (
            {"encoder": {"kind": "gat", "dropout_rate": 1.0}},
            False,
            "config.model.encoder.dropout_rate is 1.0",
        ),
        ({"encoder": {"kind": "mlp", "edge_dim": 1}}, False, "'edge_dim'"),
        (
            {"pool": "sum"},
            True,
            "config.model.pool.kind is 'sum'; every node is answered, so it must be none",
        ),
        ({"pool": "none"}, False, "config.model.pool.kind is 'none'; graphs are answered as wholes"),
    ],
)
def test_what_does_not_fit_is_one_line(block, per_node, message):
    given = {"node_dim": 3, "edge_dim": 0, "num_outputs": 2, "per_node": per_node}
    with pytest.raises(UserError) as raised:
        shaped(GRAPH_MODEL.build, block, "config.model", **given)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
