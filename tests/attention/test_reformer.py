from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import attend, masks
from attention.reformer import draw_rotations, hash_buckets, reformer_attention
from tests.attention import oracle
from tests.attention.mechanism import Sizes, changed, draw
from tests.attention.memory import memory_slope

SIZES = Sizes(T=7)
ONE_BUCKET = np.zeros((2, SIZES.H, 0))


def test_buckets_by_hand():
    # The first direction and its opposite, then the second and its opposite: 0 2, 1 3
    x = jnp.array([[3.0, 1.0], [-1.0, 2.0], [-2.0, 1.0], [1.0, -5.0]])[:, None]
    assert hash_buckets(x, np.eye(2)[None]).tolist() == [[[0, 1, 2, 3]]]
    assert hash_buckets(1e-3 * x, np.eye(2)[None]).tolist() == [[[0, 1, 2, 3]]]
    assert draw_rotations(jax.random.key(0), 2, 6, 8).shape == (2, 6, 4)
    assert draw_rotations(jax.random.key(0), 2, 6, 1).shape == (2, 6, 0)


def test_one_bucket_is_dense_attention(x64):
    arrays = draw(*SIZES.arrays, dtype=jnp.float64)
    padding = masks.padding(jnp.array([4, 1, 7]), 7)
    shown = np.asarray(padding)[:, 0, 0, :, None, None]
    chunk = np.arange(7) // 3
    behind = chunk[:, None] - chunk
    back = (behind == 0) | (behind == 1)
    call = partial(reformer_attention, *arrays, rotations=ONE_BUCKET.astype(jnp.float64))
    for found, expected in (
        (call(chunk_size=9, is_causal=True), oracle.attend(*arrays, mask=np.tri(7, dtype=bool))[0]),
        (call(chunk_size=7, mask=padding), oracle.attend(*arrays, mask=padding)[0] * shown),
        (call(chunk_size=3), oracle.attend(*arrays, mask=back)[0]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_position_sees_itself_only_if_alone():
    query, key, value = draw(*SIZES.arrays)
    # Position 3 points away from all others, which are alike.
    key = changed(np.ones_like(key), np.s_[:, 3], -1.0)
    rotations = jnp.asarray(np.eye(SIZES.H)[None])
    out = reformer_attention(query, key, value, rotations=rotations, chunk_size=7, hide_self=True)
    np.testing.assert_allclose(np.asarray(out)[:, 3], np.repeat(value[:, 3], 2, axis=1), rtol=1e-6)
    others = np.delete(np.arange(7), [3, 5])
    expected = np.repeat(value[:, others].mean(1), 2, axis=1)
    np.testing.assert_allclose(np.asarray(out)[:, 5], expected, rtol=1e-5, atol=1e-6)


def test_rounds_add_what_they_find_and_nothing_twice(x64):
    arrays = draw(*SIZES.arrays, dtype=jnp.float64)
    rotations = draw_rotations(jax.random.key(0), 1, SIZES.H, 4, jnp.float64)
    once = reformer_attention(*arrays, rotations=rotations, chunk_size=2)
    again = reformer_attention(*arrays, rotations=jnp.tile(rotations, (3, 1, 1)), chunk_size=2)
    np.testing.assert_allclose(again, once, rtol=1e-12)
    both = np.concatenate([rotations, np.zeros_like(rotations)])
    out = reformer_attention(*arrays, rotations=both, chunk_size=7)
    np.testing.assert_allclose(out, oracle.attend(*arrays)[0], rtol=1e-12, atol=1e-14)


def test_padding_changes_nothing(x64):
    arrays = draw(*SIZES.arrays, dtype=jnp.float64)
    call = partial(
        reformer_attention, chunk_size=2, rotations=draw_rotations(jax.random.key(1), 2, 6, 4, jnp.float64)
    )
    alone = call(*(x[:, :5] for x in arrays))
    padded = call(*arrays, mask=masks.padding(jnp.array([5, 5, 5]), 7))
    np.testing.assert_allclose(padded[:, :5], alone, rtol=1e-12)
    assert (np.asarray(padded)[:, 5:] == 0).all()


def test_error_falls_with_the_rounds():
    """On queries that attend to few keys, query and key in one vector as in the paper."""
    T = 128
    direction, value = draw((1, T, 2, 16), (1, T, 2, 16))
    key = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
    query = 40 * key
    dense = attend(query, key, value, mask=~np.eye(T, dtype=bool).reshape(1, 1, T, T))

    def error(rounds):
        rotations = draw_rotations(jax.random.key(2), rounds, 16, 8)
        out = reformer_attention(query, key, value, rotations=rotations, chunk_size=32, hide_self=True)
        return float(np.linalg.norm(out - dense) / np.linalg.norm(dense))

    errors = error(1), error(16)
    # Buckets drawn without a look at the keys would leave about 0.5 after 16 rounds.
    assert errors[0] > 0.2 > 0.1 > errors[1], errors


def test_memory_is_linear():
    rotations = draw_rotations(jax.random.key(0), 2, 16, 8)
    call = partial(reformer_attention, rotations=rotations, chunk_size=64, is_causal=True)
    assert memory_slope(call) <= 1.1


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"chunk_size": 0}, "chunk_size must be 1 or more"),
        ({"rotations": np.zeros((2, 5, 1))}, r"H=6, got \(2, 5, 1\)"),
        ({"rotations": np.zeros((0, 6, 1))}, "R at least 1"),
        ({"rotations": np.zeros((6, 1))}, r"\[R H C\]"),
    ],
)
def test_wrong_options_are_refused(wrong, words, untyped):
    options = {"rotations": ONE_BUCKET, "chunk_size": 2} | wrong
    with pytest.raises(ValueError, match=words):
        reformer_attention(*draw(*SIZES.arrays), **options)


@pytest.mark.parametrize("rounds, buckets", [(0, 4), (1, 3), (1, 0)])
def test_wrong_numbers_of_buckets_are_refused(rounds, buckets, untyped):
    with pytest.raises(ValueError, match=f"got {rounds} rounds and {buckets} buckets"):
        draw_rotations(jax.random.key(0), rounds, 6, buckets)
