"""Attention along edges: dense attention under the mask of the edges, at a cost linear in their number."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks
from attention.graph import gat_attention, graph_attention
from tests.attention.mechanism import changed, draw
from tests.attention.sparse import assert_equals_attend, who_sees


def test_by_hand():
    # Node 0 hears 1 and 2, node 1 hears itself, node 2 nobody. Scores 0 and log 3 give weights 1/4, 3/4.
    q = jnp.array([1.0, 0, 0]).reshape(1, 3, 1, 1)
    k = jnp.array([5.0, 0, np.log(3)]).reshape(1, 3, 1, 1)
    v = jnp.array([1.0, 4, 8]).reshape(1, 3, 1, 1)
    senders, receivers = jnp.array([2, 1, 1]), jnp.array([0, 0, 1])
    out, weights = graph_attention(q, k, v, senders=senders, receivers=receivers, return_weights=True)
    np.testing.assert_allclose(out.ravel(), [7, 4, 0], rtol=1e-6)
    np.testing.assert_allclose(weights[0, 0], [3 / 4, 1 / 4, 1], rtol=1e-6)


def test_gat_by_hand():
    # a . [q; k] = q + 2 k: 1 and -5, the latter times 0.2.
    q, k = jnp.array([1.0]).reshape(1, 1, 1), jnp.array([0.0, -3.0]).reshape(2, 1, 1)
    edges = {"senders": jnp.array([0, 1]), "receivers": jnp.array([0, 0])}
    vectors = {"query_vector": jnp.array([[1.0]]), "key_vector": jnp.array([[2.0]])}
    for options, scores in (({}, [1, -1]), ({"negative_slope": 0.0}, [1, 0])):
        weights = gat_attention(q, k, k, **edges, **vectors, **options, return_weights=True)[1]
        np.testing.assert_allclose(weights[0], np.exp(scores) / np.exp(scores).sum(), rtol=1e-6)


def some_edges(E=20, n=7, seed=0):
    return np.random.default_rng(seed).integers(0, n, (2, 2, E))


def test_a_batch_of_graphs_equals_attend_with_edges(x64):
    # Twenty edges among 49 pairs: some are listed twice, and some nodes hear nobody.
    senders, receivers = map(jnp.asarray, some_edges())
    mask = masks.edges(senders, receivers, 7)
    assert len(np.unique(7 * senders[0] + receivers[0])) < 20
    assert_equals_attend(partial(graph_attention, senders=senders, receivers=receivers), mask, 7)


def test_lists_of_different_lengths(x64):
    senders, receivers = some_edges()
    lengths = (12, 5)
    mask = [
        masks.edges(*map(jnp.asarray, (s[None, :n], r[None, :n])), 7)
        for s, r, n in zip(senders, receivers, lengths, strict=True)
    ]
    # What fills a list up may be anything, and must not stand in for the edge that it copies.
    exist = np.arange(20) < np.array(lengths)[:, None]
    senders = np.where(exist, senders, senders[:, :1])
    receivers = np.where(exist, receivers, np.array([[-1], [receivers[1, 0]]]))
    senders, receivers, exist = (jnp.asarray(x[:, ::-1]) for x in (senders, receivers, exist))
    call = partial(graph_attention, senders=senders, receivers=receivers, edge_mask=exist)
    assert_equals_attend(call, np.concatenate(mask), 7)


def test_from_one_set_of_nodes_to_another(x64):
    # The edges between two sets of nodes are a rectangle of the mask.
    senders, receivers = jnp.array([8, 0, 3, 3]), jnp.array([0, 1, 1, 4])
    mask = masks.edges(senders[None], receivers[None], 9)[:, :, :5]
    assert_equals_attend(partial(graph_attention, senders=senders, receivers=receivers), mask, 5, 9)


def test_weights_follow_the_list():
    senders, receivers = jnp.array([4, 1, 4, 0, 2]), jnp.array([3, 3, 3, 5, 0])
    arrays = map(jnp.asarray, draw((1, 7, 4, 3), (1, 7, 2, 3), (1, 7, 2, 3)))
    _, weights = graph_attention(*arrays, senders=senders, receivers=receivers, return_weights=True)
    assert weights.shape == (1, 4, 5)
    np.testing.assert_allclose(weights[..., :2].sum(-1), 1, rtol=1e-6)
    # The second listing of an edge has no weight; a lone edge has all.
    assert (weights[..., 2] == 0).all()
    assert (weights[..., 3:] == 1).all()


def test_nan_at_no_neighbour_is_unseen():
    edges = {"senders": jnp.array([3, 3, 1, 2]), "receivers": jnp.array([0, 4, 3, 4])}
    seen = who_sees(partial(graph_attention, **edges), 7, s=3)
    assert seen.nonzero()[0].tolist() == [0, 4]


def test_edges_out_of_range(untyped):
    arrays = draw((1, 3, 1, 2), (1, 3, 1, 2), (1, 3, 1, 2))
    good, bad = jnp.array([0, 1]), jnp.array([2, -1])
    for senders, receivers, name in ((bad, good, "senders"), (good, bad[::-1], "receivers")):
        with pytest.raises(ValueError, match=rf"{name} \(2,\) holds node"):
            graph_attention(*arrays, senders=senders, receivers=receivers)
        # Unknown while traced: the edge is left out, and the other one stays.
        call = jax.jit(lambda s, r: graph_attention(*arrays, senders=s, receivers=r, return_weights=True)[1])
        assert call(senders, receivers).ravel().tolist() in ([1, 0], [0, 1])
    exist = jnp.array([True, False])
    out = graph_attention(*arrays, senders=bad, receivers=good, edge_mask=exist)
    np.testing.assert_allclose(out[0, 0], arrays[2][0, 2], rtol=1e-6)
    assert (out[0, 1:] == 0).all()


def test_memory_grows_with_the_edges():
    def memory(E, n):
        x = jax.ShapeDtypeStruct((1, n, 2, 8), jnp.float32)
        edges = jax.ShapeDtypeStruct((E,), jnp.int32)

        def loss(x, senders, receivers):
            return jnp.sum(graph_attention(x, x, x, senders=senders, receivers=receivers))

        compiled = jax.jit(jax.grad(loss)).lower(x, edges, edges).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert np.log(memory(8 * 2**13, 2**13) / memory(8 * 2**9, 2**9)) / np.log(2**4) <= 1.1


def test_refusals(untyped):
    q = np.zeros((2, 5, 2, 3))
    call = partial(graph_attention, q, q, q)
    edges = np.zeros(4, int)
    with pytest.raises(ValueError, match=r"\(4,\) and \(3,\)"):
        call(senders=edges, receivers=edges[:3])
    with pytest.raises(ValueError, match=r"batch axes \(2,\)"):
        call(senders=edges[None], receivers=edges[None])
    with pytest.raises(TypeError, match="receivers"):
        call(senders=edges, receivers=edges.astype(float))
    with pytest.raises(TypeError, match="edge_mask"):
        call(senders=edges, receivers=edges, edge_mask=edges)
    with pytest.raises(ValueError, match="edge_mask"):
        call(senders=edges, receivers=edges, edge_mask=np.ones(3, bool))
    with pytest.raises(ValueError, match=r"key_vector .* \(2, 3\) .*\(2, 4\)"):
        gat_attention(
            q, q, q, query_vector=q[0, 0], key_vector=np.zeros((2, 4)), senders=edges, receivers=edges
        )


@pytest.mark.parametrize("attend", [graph_attention, gat_attention])
def test_bias_per_edge(attend):
    # Node 0 hears 1 and 2 with equal scores, but for the bias: log 3 on one edge in head 1, -inf in head 2.
    edges = {"senders": jnp.array([1, 2, 1]), "receivers": jnp.array([0, 0, 2])}
    zero = jnp.asarray(np.zeros((1, 4, 3, 2)))
    value = jnp.array([0.0, 4, 8, 9]).reshape(1, 4, 1, 1)
    vectors = {} if attend is graph_attention else dict.fromkeys(("query_vector", "key_vector"), zero[0, 0])
    bias = jnp.array([[0.0, 0, 0], [0, np.log(3), 0], [0, -np.inf, -np.inf]])[None]
    call = partial(attend, zero, zero[:, :, :1], **edges, **vectors, edge_bias=bias, return_weights=True)
    out, weights = call(value)
    np.testing.assert_allclose(weights[0], [[0.5, 0.5, 1], [0.25, 0.75, 1], [1, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(out[0, :, :, 0], [[6, 7, 4], [0, 0, 0], [4, 4, 0], [0, 0, 0]], rtol=1e-6)
    # What -inf hides is unseen: node 2 holds NaN, and the third head of node 0 does not hear of it.
    spoilt = np.asarray(call(jnp.asarray(changed(value, np.s_[0, 2], np.nan)))[0])
    assert np.isnan(spoilt[0, 0, :, 0]).tolist() == [True, True, False]


def test_dropout_of_edges():
    # Every one of 60 nodes hears 60, all with weight 1/60; the values show the weights after dropout.
    senders, receivers = (jnp.asarray(x.ravel()) for x in np.meshgrid(np.arange(60), np.arange(60)))
    zero, value = jnp.zeros((2, 60, 2, 3)), jnp.asarray(np.tile(np.eye(60)[:, None], (2, 1, 1, 1)))
    call = partial(graph_attention, zero, zero[:, :, :1], value, senders=senders, receivers=receivers)
    options = {"dropout_rate": 0.25, "dropout_key": jax.random.key(0)}
    shown, weights = call(**options, return_weights=True)
    np.testing.assert_allclose(weights, np.full((2, 2, 3600), 1 / 60), rtol=1e-5)
    gone = np.swapaxes(shown == 0, 1, 2).reshape(4, -1)
    np.testing.assert_allclose(shown[shown != 0], 1 / 45, rtol=1e-5)
    np.testing.assert_allclose(gone.mean(1), np.full(4, 0.25), atol=0.03)
    for i in range(4):  # independent for every graph and head
        for j in range(i):
            np.testing.assert_allclose((gone[i] & gone[j]).mean(), 1 / 16, atol=0.02)
    np.testing.assert_array_equal(call(**options), shown)
    np.testing.assert_array_equal(call(**options | {"dropout_rate": 0.0}), call())
    with pytest.raises(ValueError, match=r"dropout_rate 0\.5 needs a dropout_key"):
        call(dropout_rate=0.5)
