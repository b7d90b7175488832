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


def test_dilated_is_a_band_with_gaps():
    rows = [
        [1, 0, 1, 0, 0, 0],
        [0, 1, 0, 1, 0, 0],
        [1, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0, 1],
        [1, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0, 1],
    ]
    np.testing.assert_array_equal(masks.dilated(6, 6, (2, 1), dilation=2), [[rows]])
    np.testing.assert_array_equal(masks.dilated(2, 6, (2, 1), 3, dilation=2), [[rows[3:5]]])
    np.testing.assert_array_equal(masks.dilated(6, 6, (2, 1), dilation=1), masks.band(6, 6, (2, 1)))


def test_blocks():
    rows = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(masks.blocks(5, block_size=2), [[rows]])
    np.testing.assert_array_equal(
        masks.blocks(2, 5, jnp.array([0, 3]), block_size=2), [[rows[:2]], [rows[3:]]]
    )


def test_strided_sees_its_neighbours_and_a_column():
    rows = [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [0, 1, 1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 1, 0],
        [1, 0, 0, 1, 1, 1, 1],
    ]
    np.testing.assert_array_equal(masks.strided(7, stride=3), [[rows]])
    np.testing.assert_array_equal(masks.strided(2, 7, 5, stride=3), [[rows[5:]]])
    # Its two parts, as heads of their own
    parts = masks.band(7, 7, (3, 0)) | masks.dilated(7, 7, (7, 0), dilation=3)
    np.testing.assert_array_equal(masks.strided(7, stride=3), parts)


def test_fixed_sees_its_block_and_the_ends_of_earlier_ones():
    rows = [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 1, 0],
        [0, 0, 1, 0, 0, 1, 1],
    ]
    np.testing.assert_array_equal(masks.fixed(7, stride=3), [[rows]])
    np.testing.assert_array_equal(masks.fixed(2, 7, 5, stride=3), [[rows[5:]]])
    last = masks.fixed(7, stride=3, summary=2)[0, 0, -1]
    np.testing.assert_array_equal(last, [0, 1, 1, 0, 1, 1, 1])
    np.testing.assert_array_equal(masks.fixed(7, stride=3, summary=3), masks.causal(7))


@pytest.mark.parametrize("build", [masks.strided, masks.fixed])
def test_two_layers_of_a_sparse_transformer_reach_everything(build):
    once = np.asarray(build(16, stride=4)[0, 0], int)
    np.testing.assert_array_equal(once @ once > 0, masks.causal(16)[0, 0])


def test_global_tokens_see_all_and_are_seen_by_all():
    expected = [[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]]
    expected = np.array(expected) | np.array([[0, 0, 0, 1]])
    chosen = jnp.array([True, False, False, True])
    np.testing.assert_array_equal(masks.global_tokens(chosen), [expected])
    np.testing.assert_array_equal(masks.global_tokens(chosen[1:3], chosen), [expected[1:3]])
    assert masks.global_tokens((np.arange(5) < 2)[None]).shape == (1, 1, 5, 5)


def test_random_blocks():
    key = jax.random.key(0)
    mask = np.asarray(masks.random_blocks(key, 7, 11, block_size=3, count=2, heads=5))
    assert mask.shape == (1, 5, 7, 11)
    # One draw per block: that of blocks of size 1, and the last block is cut off.
    chosen = np.asarray(masks.random_blocks(key, 3, 4, block_size=1, count=2, heads=5))
    np.testing.assert_array_equal(mask, chosen.repeat(3, 2)[:, :, :7].repeat(3, 3)[..., :11])
    assert (chosen.sum(-1) == 2).all()
    assert len({head.tobytes() for head in chosen[0]}) > 1, "heads draw alike"
    # The key decides, and it alone, traced or not.
    again = jax.jit(lambda key: masks.random_blocks(key, 7, 11, block_size=3, count=2, heads=5))(key)
    np.testing.assert_array_equal(mask, again)
    other = masks.random_blocks(jax.random.key(1), 7, 11, block_size=3, count=2, heads=5)
    assert (mask != other).any()
    assert not masks.random_blocks(key, 7, block_size=3, count=0).any()
    assert masks.random_blocks(key, 7, block_size=3, count=3).all()


def test_random_blocks_are_drawn_uniformly():
    chosen = masks.random_blocks(jax.random.key(0), 100, 5, block_size=1, count=2, heads=40, batch_dims=0)
    np.testing.assert_allclose(chosen.mean((0, 1)), np.full(5, 2 / 5), atol=4 * (0.24 / 4000) ** 0.5)


def test_builders_combine():
    mask = masks.causal(3) & masks.padding(jnp.array([3, 2]), 3) | masks.segments(jnp.array([[0, 1, 0]]))
    first = [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    second = [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    np.testing.assert_array_equal(mask, [[first], [second]])
    assert (~mask).dtype == bool


def test_batch_dims_give_the_rank():
    assert masks.causal(3, batch_dims=0).shape == (1, 3, 3)
    assert masks.band(3, 3, (1, 1), batch_dims=2).shape == (1, 1, 1, 3, 3)
    assert masks.blocks(3, block_size=2, batch_dims=0).shape == (1, 3, 3)
    assert masks.random_blocks(jax.random.key(0), 3, block_size=2, count=1, batch_dims=2).shape[:3] == (
        1,
        1,
        1,
    )
    assert masks.padding(jnp.array(2), 3).shape == (1, 1, 3)
    assert masks.segments(np.zeros((2, 3, 4), int)).shape == (2, 3, 1, 4, 4)


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
        masks.padding(np.ones(2), 3)
    with pytest.raises(TypeError, match="query_ids"):
        masks.segments(np.ones((2, 3)))
    with pytest.raises(TypeError, match="senders"):
        masks.edges(np.ones(2), np.ones(2, int), 3)


def test_shapes_that_do_not_fit(untyped):
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 3\)"):
        masks.segments(np.ones((2, 3), int), np.ones((4, 3), int))
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        masks.edges(np.ones(2, int), np.ones(3, int), 3)
    with pytest.raises(ValueError, match=r"batch_dims=1 axes, got \(2, 2\)"):
        masks.causal(3, 3, np.ones((2, 2), int))
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 3\)"):
        masks.global_tokens(np.ones((2, 3), bool), np.ones((4, 3), bool))
    with pytest.raises(TypeError, match=r"queries \(3,\) must be boolean, .* got int32"):
        masks.global_tokens(np.arange(3))


def test_sizes_of_patterns():
    with pytest.raises(ValueError, match="dilation must be at least 1, got 0"):
        masks.dilated(3, 3, (1, 1), dilation=0)
    with pytest.raises(ValueError, match="block_size must be at least 1, got -1"):
        masks.blocks(3, block_size=-1)
    with pytest.raises(ValueError, match="stride must be at least 1, got 0"):
        masks.strided(3, stride=0)
    with pytest.raises(ValueError, match="summary 4 is longer than a block of stride 3"):
        masks.fixed(7, stride=3, summary=4)
    for count in (-1, 4):
        with pytest.raises(ValueError, match=f"which is 3 for 7 keys in blocks of 3, got {count}"):
            masks.random_blocks(jax.random.key(0), 7, block_size=3, count=count)
    for build in (masks.strided, masks.fixed):
        with pytest.raises(ValueError, match=r"query_offset=0 .* query_offset=2"):
            build(3, 5, stride=2)
