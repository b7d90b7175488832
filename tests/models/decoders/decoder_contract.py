"""What every decoder of `models.decoders` must hold to, in one check."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.decoders.decoder import Memory
from tests.models.parameters import normal, real

B, T, S = 2, 4, 5
LENGTHS = (5, 3)
MASK = real(*LENGTHS, of=S)


def check_decoder(decoder, dim: int, *, attends: bool = True, tolerance: float = 1e-5) -> None:
    """Assert what `models.decoders.decoder` promises.

    - `step`, place by place, is the parallel call; more room in the cache changes nothing; every leaf of a
      cache begins with the batch axis, and rows of it may change places.
    - A place sees at least the last two tokens, the memory, and no later token.
    - What padding of the memory holds, NaN even, changes neither values nor gradients; a row alone, without
      its padding, is as in the batch.
    - Weights on request leave the vectors as they are; none is on padding, and no row of them is
      more than 1 in all.

    Args:
        decoder: with parameters none of which is 0, such as `filled` of `tests.models.parameters` makes.
        dim: its width D.
        attends: whether it has weights of attention to the memory to return.
        tolerance: absolute and relative.
    """
    close = {"rtol": tolerance, "atol": tolerance}
    y, vectors, inputs = (np.asarray(normal(B, size, dim, seed=s)) for size, s in ((T, 1), (S, 2), (S, 3)))
    structure, parameters, rest = nnx.split(decoder, nnx.Param, ...)

    @jax.jit
    def decode(parameters, y, memory):
        return nnx.merge(structure, parameters, rest)(y, memory).vectors

    memory = _memory(vectors, inputs)
    expected = np.asarray(decode(parameters, y, memory))
    assert expected.shape == y.shape
    assert np.isfinite(expected).all()
    for place in range(T):
        other = y.copy()
        other[:, place] *= -1
        changed = np.abs(decode(parameters, other, memory) - expected).max(axis=(0, 2))
        assert (changed[:place] <= tolerance).all(), "a place after is seen"
        assert (changed[place : place + 2] > 1e-4).all(), (
            "the token before, or the one before that, is not seen"
        )
    other = _memory(vectors[:, ::-1], inputs[:, ::-1])
    assert np.abs(decode(parameters, y, other) - expected).max() > 1e-4, "the memory is not seen"
    dirty = _memory(vectors, inputs, padding=np.nan)
    np.testing.assert_array_equal(decode(parameters, y, dirty), expected)
    row, length = B - 1, LENGTHS[-1]
    alone = Memory(*(x[row:, :length] for x in memory))
    np.testing.assert_allclose(decode(parameters, y[row:], alone), expected[row:], **close)

    # Step by step, the two rows changing places before each.
    @jax.jit
    def start(parameters, memory):
        return nnx.merge(structure, parameters, rest).start(memory, T + 2)

    @jax.jit
    def step(parameters, cache, y):
        return nnx.merge(structure, parameters, rest).step(cache, y)

    cache, rows = start(parameters, memory), np.arange(B)
    assert all(leaf.shape[0] == B for leaf in jax.tree.leaves(cache))
    for place in range(T):
        cache, rows = jax.tree.map(lambda leaf: np.asarray(leaf)[::-1], (cache, rows))
        vector, after = step(parameters, cache, y[rows, place])
        assert jax.tree.map(_form, after) == jax.tree.map(_form, cache)
        np.testing.assert_allclose(vector, expected[rows, place], **close)
        cache = after

    @jax.jit
    def learn(parameters, y, memory):
        def loss(parameters, y, vectors):
            decoder = nnx.merge(structure, parameters, rest)
            found = decoder(y, memory._replace(vectors=vectors), return_weights=True)
            return jnp.sum(found.vectors * normal(B, T, dim, seed=4)), found[:2]

        return jax.grad(loss, (0, 1, 2), has_aux=True)(parameters, y, memory.vectors)

    (clean, asked), (found, _) = (learn(parameters, y, x) for x in (memory, dirty))
    for one, two in zip(jax.tree.leaves(clean), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(two, one, **close)
    np.testing.assert_allclose(asked[0], expected, **close)
    assert bool(asked[1]) == attends
    for weights in asked[1]:
        assert weights.shape == (B, weights.shape[1], T, S)
        assert (weights >= 0).all()
        assert (weights.sum(axis=-1) < 1 + 1e-5).all()
        assert (weights[row, :, :, length:] == 0).all()
        assert (weights.max(axis=(1, 2, 3)) > 0).all()


def _memory(vectors, inputs, *, padding: float = 0.0) -> Memory:
    vectors, inputs = (np.where(MASK[..., None], x, np.float32(padding)) for x in (vectors, inputs))
    return Memory(vectors, MASK, inputs)


def _form(leaf) -> tuple:
    return leaf.shape, leaf.dtype
