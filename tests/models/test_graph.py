"""Encoders of graphs: what a layer computes, and that neither padding nor the order of nodes matters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from models.graph import Edges

from errors import UserError
from models import graph

NODE_DIM, EDGE_DIM, OUTPUTS = 3, 2, 5
SIZES = {"gat": {"num_heads": 2, "head_dim": 4}, "transformer": {"dim": 8, "num_layers": 2, "num_heads": 2}}
FIELDS = {
    "gat": SIZES["gat"] | {"residual": True, "norm": True, "num_layers": 3},
    "transformer": SIZES["transformer"],
    "mlp": {"dim": 8, "num_layers": 2},
}

# Node 3 of the first graph has no neighbours; its edge 0 -> 2 is listed twice, and 1 has a self loop.
PAIRS = ([(0, 1), (1, 0), (0, 2), (0, 2), (1, 1)], [(1, 0)])
NODES = (4, 2)


def build(kind, *, pool="", **changed):
    model = {"kind": kind, "pool": pool, "dropout_rate": 0.5, **FIELDS[kind], **changed}
    made = graph.build(
        model,
        node_dim=NODE_DIM,
        edge_dim=EDGE_DIM,
        outputs=OUTPUTS,
        per_node=not pool,
        rngs=nnx.Rngs(0),
    )
    # What starts at 0, a bias by edges or the head, would hide what it does.
    state = nnx.state(made, nnx.Param)
    rng = np.random.default_rng(1)
    filled = jax.tree.map(lambda p: p + jnp.asarray(0.3 * rng.normal(size=p.shape), p.dtype), state)
    nnx.update(made, filled)
    return made


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
    ends = (jnp.asarray(ends, jnp.int32) for ends in (senders, receivers))
    return jnp.asarray(nodes), jnp.asarray(mask), Edges(*ends, jnp.asarray(edge_mask), jnp.asarray(features))


@jax.jit
def outputs(model, nodes, mask, edges):
    return model(nodes, mask, edges=edges)


def outputs_and_gradient(model, nodes, mask, edges):
    structure, params = nnx.split(model)

    @jax.jit
    def call(params, nodes, features):
        def form(params, nodes, features):
            out = nnx.merge(structure, params)(nodes, mask, edges=edges._replace(features=features))
            weights = jnp.cos(jnp.arange(OUTPUTS, dtype=out.dtype))
            return jnp.einsum("...k,k->", out, weights), out

        return jax.grad(form, has_aux=True)(params, nodes, features)

    gradient, out = call(params, nodes, edges.features)
    return np.asarray(out), gradient


@pytest.mark.parametrize("kind, pool", [("gat", ""), ("transformer", ""), ("gat", "sum"), ("mlp", "")])
def test_padding_changes_nothing(kind, pool):
    model = build(kind, pool=pool)
    out, gradient = outputs_and_gradient(model, *padded(4, 5))
    # Padded further, in both axes, with what must not be read.
    wide, wide_gradient = outputs_and_gradient(model, *padded(7, 8, filling=np.nan))
    if pool:
        np.testing.assert_allclose(wide, out, atol=1e-5)
    else:
        np.testing.assert_allclose(wide[:, :4], out, atol=1e-5)
        assert (wide[0, 4:] == 0).all()
        assert (wide[1, 2:] == 0).all()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), wide_gradient, gradient)
    # The second graph alone.
    nodes, mask, edges = padded(4, 5)
    alone = outputs(model, nodes[1:, :2], mask[1:, :2], Edges(*(x[1:, :1] for x in edges)))
    np.testing.assert_allclose(alone[0], out[1] if pool else out[1, :2], atol=1e-5)


@pytest.mark.parametrize("kind", ["gat", "transformer"])
def test_nodes_in_another_order(kind):
    model = build(kind)
    out = outputs(model, *padded(4, 5))
    order = [2, 0, 3, 1]
    found = outputs(model, *padded(4, 5, order=order))
    np.testing.assert_allclose(found[0, np.array(order)], out[0], atol=1e-5)
    assert jnp.isfinite(out).all()  # a node without neighbours hears itself


@pytest.mark.parametrize("kind", ["gat", "transformer"])
def test_a_node_hears_its_senders_alone(kind):
    model = build(kind, num_layers=1)
    nodes, mask, edges = padded(4, 5)
    before = outputs(model, nodes, mask, edges)[0]
    after = outputs(model, nodes.at[0, 0].add(1.0), mask, edges)[0]
    assert (np.abs(after - before).max(-1) > 1e-4).tolist() == [True, True, True, False]
    twice = Edges(*(jnp.concatenate([x, x], axis=1) for x in edges))
    np.testing.assert_allclose(outputs(model, nodes, mask, twice)[0], before, atol=1e-5)
    # Features of edges count.
    other = outputs(model, nodes, mask, edges._replace(features=edges.features + 1.0))[0]
    assert np.abs(other - before)[:3].max() > 1e-3
    np.testing.assert_allclose(other[3], before[3], atol=1e-6)


def test_a_gat_layer_by_hand():
    # One head of one feature, W = 1. Node 0 hears itself and 1: scores leaky_relu(h[0] + 2 h[s]).
    layer = graph.GATLayer(1, 1, 1, rngs=nnx.Rngs(0))
    layer.projection.kernel[...] = jnp.ones((1, 1))
    layer.query_kernel[...], layer.key_kernel[...] = jnp.ones((1, 1)), jnp.full((1, 1), 2.0)
    layer.bias[...] = jnp.full(1, 10.0)
    edges = Edges(jnp.array([[1]]), jnp.array([[0]]), jnp.array([[True]]))
    mask = jnp.ones((1, 2), bool)
    out = layer(jnp.array([[[1.0], [-1.0]]]), graph.with_self_loops(edges, mask))
    own, other = np.exp(3.0), np.exp(-0.2)
    np.testing.assert_allclose(out[0, :, 0], [10 + (own - other) / (own + other), 9], rtol=1e-6)


def test_heads_are_concatenated_but_for_the_last_layer():
    nodes, mask, edges = padded(4, 5)
    model = build("gat", residual=False, norm=False, num_layers=2)
    assert model.head is None
    assert [layer.projection.kernel.shape for layer in model.encoder.layers] == [(3, 8), (8, OUTPUTS)]
    assert outputs(model, nodes, mask, edges).shape == (2, 4, OUTPUTS)
    assert graph.GAT(3, num_heads=2, head_dim=4, rngs=nnx.Rngs(0)).dim == 8


def test_dropout_needs_rngs_and_differs_by_key():
    nodes, mask, edges = padded(4, 5)
    model = build("gat")

    def call(seed=None):
        rngs = None if seed is None else nnx.Rngs(dropout=seed)
        return model(nodes, mask, edges=edges, train=True, rngs=rngs)

    call = jax.jit(call)
    keys = [jax.random.key(seed) for seed in (0, 1)]
    np.testing.assert_array_equal(call(keys[0]), call(keys[0]))
    assert not np.allclose(call(keys[0]), call(keys[1]))
    np.testing.assert_allclose(call(), outputs(model, nodes, mask, edges), atol=1e-6)


@pytest.mark.parametrize(
    "kind, pool, changed, message",
    [
        ("gcn", "", {}, "unknown model 'gcn'. Allowed: gat, mlp, transformer"),
        ("gat", "last", {}, "unknown config.model.pool 'last'"),
        ("transformer", "", {"num_heads": 3}, "config.model: dim 8 is not divisible by num_heads 3"),
        ("gat", "", {"dropout_rate": 1.0}, "config.model.dropout_rate is 1.0"),
        ("mlp", "", {"planted": 1}, "unknown field of config.model for kind 'mlp' 'planted'"),
    ],
)
def test_what_does_not_fit_is_one_line(kind, pool, changed, message):
    model = {"kind": kind, "pool": pool, **FIELDS.get(kind, {}), **changed}
    with pytest.raises(UserError) as raised:
        graph.build(model, node_dim=3, edge_dim=0, outputs=2, per_node=not pool, rngs=nnx.Rngs(0))
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_pool_for_labels_of_nodes_is_refused():
    with pytest.raises(UserError, match=r"config\.model\.pool is 'sum', but every node is answered"):
        graph.build(
            {"kind": "mlp", "pool": "sum"}, node_dim=3, edge_dim=0, outputs=2, per_node=True, rngs=nnx.Rngs(0)
        )
