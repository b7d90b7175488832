import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks


def test_causal_is_the_lower_triangle():
    np.testing.assert_array_equal(masks.causal(3), [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]])


def test_causal_offset_places_the_queries():
    first, last = [[1, 0, 0, 0], [1, 1, 0, 0]], [[1, 1, 1, 0], [1, 1, 1, 1]]
    np.testing.assert_array_equal(masks.causal(2, 4, 0), [[first]])
    np.testing.assert_array_equal(masks.causal(2, 4, query_offset=2), [[last]])
    np.testing.assert_array_equal(jax.jit(lambda o: masks.causal(2, 4, o))(2), [[last]])
    np.testing.assert_array_equal(masks.causal(2, 4, jnp.array([0, 2])), [[first], [last]])


def test_band_includes_the_query_itself():
    # (3, 0) shows four keys.
    np.testing.assert_array_equal(masks.band(6, 6, (3, 0)).sum(-1), [[[1, 2, 3, 4, 4, 4]]])
    rows = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    np.testing.assert_array_equal(masks.band(5, 5, (1, 2)), [[rows]])
    np.testing.assert_array_equal(masks.band(2, 5, (1, 2), 2), [[rows[2:4]]])
    np.testing.assert_array_equal(masks.band(3, 3, (0, 0)), np.eye(3)[None, None])


def test_band_far_from_every_key_is_empty():
    assert not masks.band(2, 3, (1, 1), query_offset=-9).any()


def test_padding():
    expected = [[[[1, 1, 0, 0]]], [[[0, 0, 0, 0]]], [[[1, 1, 1, 1]]]]
    np.testing.assert_array_equal(masks.padding(jnp.array([2, 0, 4]), 4), expected)


def test_segments():
    expected = [[[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]]]
    np.testing.assert_array_equal(masks.segments(jnp.array([1, 1, 2, 3]), jnp.array([1, 2, 2])), expected)
    np.testing.assert_array_equal(
        masks.segments(jnp.array([[4, 4, 5]])), [[[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]]
    )


def test_edges_point_from_key_to_query():
    # 0 -> 1, 0 -> 2 (listed twice), 2 -> 0
    senders, receivers = jnp.array([0, 0, 0, 2]), jnp.array([1, 2, 2, 0])
    expected = [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(masks.edges(senders, receivers, 3), [expected])
    batched = masks.edges(jnp.stack([senders, receivers]), jnp.stack([receivers, senders]), 3)
    np.testing.assert_array_equal(batched, [[expected], [np.transpose(expected)]])


@pytest.mark.parametrize("wrong", [-1, 3])
def test_edges_out_of_range(wrong):
    with pytest.raises(ValueError, match=rf"senders \(2,\) holds node {wrong}; .* 0 to 2"):
        masks.edges(jnp.array([0, wrong]), jnp.array([1, 1]), 3)
    with pytest.raises(ValueError, match=f"receivers .* node {wrong}"):
        masks.edges(jnp.array([1, 1]), jnp.array([0, wrong]), 3)
    traced = jax.jit(lambda s, r: masks.edges(s, r, 3) | masks.edges(r, s, 3))
    drawn = traced(jnp.array([0, wrong]), jnp.array([1, 1]))
    np.testing.assert_array_equal(drawn, [[[0, 1, 0], [1, 0, 0], [0, 0, 0]]])


def test_builders_combine():
    mask = masks.causal(3) & masks.padding(jnp.array([3, 2]), 3) | masks.segments(jnp.array([[0, 1, 0]]))
    first = [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    second = [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    np.testing.assert_array_equal(mask, [[first], [second]])
    assert (~mask).dtype == bool


def test_batch_dims_give_the_rank():
    assert masks.causal(3, batch_dims=0).shape == (1, 3, 3)
    assert masks.band(3, 3, (1, 1), batch_dims=2).shape == (1, 1, 1, 3, 3)
    assert masks.padding(jnp.array(2), 3).shape == (1, 1, 3)
    assert masks.segments(jnp.zeros((2, 3, 4), int)).shape == (2, 3, 1, 4, 4)


@pytest.mark.parametrize("build", [masks.causal, lambda T, S: masks.band(T, S, (1, 0))])
def test_unequal_lengths_need_an_offset(build):
    with pytest.raises(ValueError, match=r"query_offset=0 .* first keys.* query_offset=2 .* last 3 of 5"):
        build(3, 5)


@pytest.mark.parametrize("window", [3, (3,), (1, 2, 3), (1.5, 2), None])
def test_a_window_is_a_pair_of_counts(window, untyped):
    with pytest.raises(TypeError):
        masks.band(4, 4, window)


def test_a_window_is_not_negative():
    with pytest.raises(ValueError, match=r"negative, got \(-1, 2\)"):
        masks.band(4, 4, (-1, 2))


def test_positions_are_integers(untyped):
    with pytest.raises(TypeError, match=r"query_offset .* must be integers, got float32"):
        masks.causal(2, 2, 1.0)
    with pytest.raises(TypeError, match=r"lengths \(2,\) must be integers"):
        masks.padding(jnp.ones(2), 3)
    with pytest.raises(TypeError, match="query_ids"):
        masks.segments(jnp.ones((2, 3)))
    with pytest.raises(TypeError, match="senders"):
        masks.edges(jnp.ones(2), jnp.ones(2, int), 3)


def test_shapes_that_do_not_fit(untyped):
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 3\)"):
        masks.segments(jnp.ones((2, 3), int), jnp.ones((4, 3), int))
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        masks.edges(jnp.ones(2, int), jnp.ones(3, int), 3)
    with pytest.raises(ValueError, match=r"batch_dims=1 axes, got \(2, 2\)"):
        masks.causal(3, 3, jnp.ones((2, 2), int))
