"""Longformer and BigBird: dense attention under their masks, at a cost linear in the length."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks
from attention.block_sparse import bigbird_attention, draw_random_blocks, longformer_attention
from tests.attention.memory import memory_slope
from tests.attention.sparse import assert_equals_attend, gradients, who_sees


def test_longformer_equals_attend_with_its_mask(x64):
    T, listed = 21, jnp.array([[0, 13, -1, 13], [20, 5, 6, 99]])
    flags = np.zeros((2, T), bool)
    flags[0, [0, 13]] = flags[1, [20, 5, 6]] = True
    mask = masks.band(T, T, (3, 1)) | masks.global_tokens(jnp.asarray(flags))
    assert_equals_attend(partial(longformer_attention, window=(3, 1), global_positions=listed), mask, T)


def test_longformer_without_global_positions_is_a_band(x64):
    call = partial(longformer_attention, window=(2, 2), global_positions=np.zeros(0, int))
    assert_equals_attend(call, masks.band(9, 9, (2, 2)), 9)


def test_longformer_hides_nan():
    call = partial(longformer_attention, window=(1, 0), global_positions=jnp.array([2]))
    assert who_sees(call, 9, s=6).nonzero()[0].tolist() == [2, 6, 7]
    assert who_sees(call, 9, s=2).all()


def bigbird_mask(T, b, window, g, drawn):
    """Who sees whom, block by block."""
    M = -(-T // b)
    seen = np.zeros((M, M), bool)
    for i, j in np.ndindex(M, M):
        seen[i, j] = -window[0] <= j - i <= window[1] or i < g or j < g or j in drawn[i]
    return np.repeat(np.repeat(seen, b, 0), b, 1)[None, None, :T, :T]


@pytest.mark.parametrize(("T", "window", "g"), [(31, (1, 1), 1), (24, (0, 2), 2), (5, (99, 0), 9)])
def test_bigbird_equals_attend_with_its_mask(T, window, g, x64):
    drawn = draw_random_blocks(jax.random.key(0), T, block_size=3, count=2, window=window, global_blocks=g)
    call = partial(bigbird_attention, block_size=3, window=window, global_blocks=g, random_blocks=drawn)
    assert_equals_attend(call, jnp.asarray(bigbird_mask(T, 3, window, g, np.asarray(drawn))), T)


def test_bigbird_hides_nan():
    drawn = jnp.array([[-1], [-1], [-1], [4], [-1]])
    call = partial(bigbird_attention, block_size=2, window=(0, 0), global_blocks=1, random_blocks=drawn)
    assert who_sees(call, 9, s=8).nonzero()[0].tolist() == [0, 1, 6, 7, 8]


def test_random_blocks_are_new_ones_and_fixed_by_the_key():
    draw = partial(draw_random_blocks, T=200, block_size=10, window=(2, 1), global_blocks=2)
    drawn = np.asarray(draw(jax.random.key(1), count=5))
    for i, row in enumerate(drawn):
        assert len(set(row)) == 5
        assert not any(j < 2 or -2 <= j - i <= 1 or j >= 20 for j in row)
    np.testing.assert_array_equal(drawn, draw(jax.random.key(1), count=5))
    assert (drawn != draw(jax.random.key(2), count=5)).any()
    # Every block left over is drawn about as often as any other.
    many = np.concatenate([draw(jax.random.key(seed), count=3)[10] for seed in range(100)])
    counts = np.bincount(many, minlength=20)
    assert set(counts.nonzero()[0]) == {*range(2, 8), *range(12, 20)}
    assert counts.max() < 2.5 * 300 / 14


def test_random_blocks_say_so_where_too_few_are_left():
    drawn = np.asarray(draw_random_blocks(jax.random.key(0), 50, block_size=10, count=4))
    # Of five blocks, 0 is global and 1, 2, 3 are in the window of 2.
    assert sorted(drawn[2]) == [-1, -1, -1, 4]


def test_memory_grows_with_the_length():
    def bigbird(q, k, v):
        drawn = np.full((q.shape[1] // 32, 2), 3)
        return bigbird_attention(q, k, v, block_size=32, random_blocks=drawn)

    longformer = partial(longformer_attention, window=(32, 32), global_positions=jnp.array([0, 7]))
    for call in (bigbird, longformer):
        assert memory_slope(gradients(call), lengths=(512, 8192)) <= 1.1


def test_refusals(untyped):
    q = np.zeros((2, 6, 2, 3))
    k = np.zeros((2, 7, 2, 3))
    drawn = np.zeros((3, 1), int)
    with pytest.raises(ValueError, match="self-attention"):
        longformer_attention(q, k, k, window=(1, 1), global_positions=jnp.array([0]))
    with pytest.raises(TypeError, match="window"):
        longformer_attention(q, q, q, window=3, global_positions=jnp.array([0]))
    with pytest.raises(TypeError, match="global_positions"):
        longformer_attention(q, q, q, window=(1, 1), global_positions=jnp.array([True]))
    with pytest.raises(ValueError, match=r"global_positions .*\(3, 1\)"):
        longformer_attention(q, q, q, window=(1, 1), global_positions=np.zeros((3, 1), int))
    with pytest.raises(ValueError, match=r"3 blocks of 2, got \(2, 1\)"):
        bigbird_attention(q, q, q, block_size=2, random_blocks=drawn[:2])
    with pytest.raises(ValueError, match="block_size"):
        bigbird_attention(q, q, q, block_size=0, random_blocks=drawn)
    with pytest.raises(ValueError, match="global_blocks"):
        bigbird_attention(q, q, q, block_size=2, random_blocks=drawn, global_blocks=-1)
    with pytest.raises(ValueError, match="count"):
        draw_random_blocks(jax.random.key(0), 6, block_size=2, count=-1)
