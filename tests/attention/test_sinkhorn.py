from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from attention import attend, masks, scores
from attention.sinkhorn import sinkhorn_attention
from attention.synthesizer import dense as predicted
from tests.attention.mechanism import Sizes, draw, parameter
from tests.attention.memory import memory_slope

ARRAYS = Sizes(T=7).arrays


def reverse(query, key):
    """Send the blocks to each other in reverse order, hard."""
    *batch, G, N, _ = query.shape
    return jnp.broadcast_to(1e3 * jnp.eye(G, dtype=query.dtype)[::-1], (*batch, N, G, G))


def reversed_blocks(length, size):
    """The mask of one's own block and its mirror image."""
    block = np.arange(length) // size
    apart = block[:, None] - block
    mirrored = block[:, None] + block == block.max()
    return jnp.asarray((apart == 0) | mirrored).reshape(1, 1, length, length)


def test_one_block_is_dense_attention(x64):
    arrays = draw(*ARRAYS, dtype=jnp.float64)
    mask = masks.padding(jnp.array([4, 1, 7]), 7)
    shown = np.asarray(mask)[:, 0, 0, :, None, None]
    np.testing.assert_allclose(
        sinkhorn_attention(*arrays, block_size=7), attend(*arrays), rtol=1e-12, atol=1e-14
    )
    out = sinkhorn_attention(*arrays, block_size=9, mask=mask)
    np.testing.assert_allclose(out, attend(*arrays, mask=mask) * shown.astype(float), rtol=1e-12, atol=1e-14)


def test_a_hard_permutation_is_a_mask(x64):
    arrays = draw((2, 11, 4, 6), (2, 11, 2, 6), (2, 11, 2, 8), dtype=jnp.float64)
    padding = masks.padding(jnp.array([11, 10]), 11)
    out = sinkhorn_attention(*arrays, block_size=3, sort=reverse, mask=padding)
    expected = attend(*arrays, mask=padding & reversed_blocks(11, 3))
    shown = np.asarray(padding)[:, 0, 0, :, None, None]
    np.testing.assert_allclose(out, expected * shown.astype(float), rtol=1e-12, atol=1e-14)


def permutation(iterations, **options):
    """The order P of three blocks: with all scores 0 it is half the weight, and values name their block."""
    (logits,) = draw((3, 3), dtype=jnp.float64)
    query = key = np.zeros((6, 1, 4))
    value = np.repeat(np.eye(3), 2, axis=0)[:, None]
    sort = Partial(lambda q, k, logits: logits[None], logits=logits)
    out = sinkhorn_attention(query, key, value, block_size=2, sort=sort, iterations=iterations, **options)
    return logits, 2 * np.asarray(out)[::2, 0] - np.eye(3)


def test_the_order_is_balanced(x64):
    logits, P = permutation(30)
    np.testing.assert_allclose(P.sum(0), 1, rtol=1e-8)
    np.testing.assert_allclose(P.sum(1), 1, rtol=1e-12)
    logits, P = permutation(0, temperature=0.5)
    np.testing.assert_allclose(P, jax.nn.softmax(logits / 0.5), rtol=1e-10)
    # The colder, the nearer to a permutation
    assert permutation(500, temperature=0.01)[1].max(1).min() > 0.95


def test_sorting_finds_the_block_that_matters():
    """Blocks that need the keys of another one, which blocks by themselves cannot give them."""
    G, size = 4, 16
    centres = 3 * np.eye(G, 16)
    noise, value = draw((1, G * size, 1, 16), (1, G * size, 1, 16))
    key = np.repeat(centres, size, axis=0).reshape(1, -1, 1, 16) + 0.3 * noise
    query = 3 * jnp.roll(key, size, axis=1)
    dense = attend(query, key, value)

    def error(**options):
        out = sinkhorn_attention(query, key, value, block_size=size, **options)
        return float(np.linalg.norm(out - dense) / np.linalg.norm(dense))

    errors = error(temperature=0.1), error(sort=lambda q, k: 50 * jnp.eye(G).reshape(1, 1, G, G))
    assert errors[0] < 0.02 < 1.0 < errors[1], errors


@pytest.mark.parametrize("name", ["general", "predicted"])
def test_the_sorting_is_learned(name):
    arrays = draw(*ARRAYS)
    N, H, G = 4, 6, 4
    made = {
        "general": {"kernel": parameter("W", N, H, H)},
        "predicted": {
            "hidden_kernel": parameter("W1", N, H, 5),
            "hidden_bias": parameter("b1", N, 5),
            "kernel": parameter("W2", N, 5, G),
            "bias": parameter("b2", N, G),
        },
    }[name]
    score = {"general": scores.general, "predicted": predicted}[name]

    def loss(parameters):
        return jnp.sum(sinkhorn_attention(*arrays, block_size=2, sort=Partial(score, **parameters)) ** 2)

    gradients = jax.jit(jax.grad(loss))({name: x.astype(np.float32) for name, x in made.items()})
    assert all(np.isfinite(x).all() and np.abs(x).max() > 1e-4 for x in gradients.values())


def test_memory_is_linear():
    assert memory_slope(partial(sinkhorn_attention, block_size=64)) <= 1.1


def test_wrong_options_are_refused(untyped):
    arrays = draw(*ARRAYS)
    for wrong in ({"block_size": 0}, {"block_size": 2, "iterations": -1}):
        with pytest.raises(ValueError, match="block_size must be 1 or more and iterations 0 or more"):
            sinkhorn_attention(*arrays, **wrong)
    with pytest.raises(ValueError, match=r"sort returned \(3, 4, 4\).*\(3, 4, 4, 4\)"):
        sinkhorn_attention(*arrays, block_size=2, sort=lambda q, k: scores.scaled_dot(q, k)[:, 0])
