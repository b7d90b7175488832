"""What every decoder of `models.decoders` must hold to, in one check."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.decoders.decoder import Memory
from tests.models.parameters import normal

B, T, S = 2, 4, 5
LENGTHS = (5, 3)


def check_decoder(decoder, dim: int, *, attends: bool = True, tolerance: float = 1e-5) -> None:
    """Assert what `models.decoders.decoder` promises.

    - `step`, place by place, is the parallel call; more room in the cache changes nothing; every leaf of a
      cache begins with the batch axis, and rows of it may change places.
    - A place sees at least the last two tokens, the memory, and no later token.
    - What padding of the memory holds, NaN even, changes neither values nor gradients; a row alone, without
      its padding, is as in the batch.
    - Weights on request leave the vectors as they are, bit by bit; none is on padding, and no row of them is
      more than 1 in all.

    Args:
        decoder: with parameters none of which is 0, such as `filled` of `tests.models.parameters` makes.
        dim: its width D.
        attends: whether it has weights of attention to the memory to return.
        tolerance: absolute and relative.
    """
    close = {"rtol": tolerance, "atol": tolerance}
    y, mask = normal(B, T, dim, seed=1), jnp.arange(S)[None] < jnp.array(LENGTHS)[:, None]
    memory = _memory(mask, normal(B, S, dim, seed=2), normal(B, S, dim, seed=3))
    parallel = jax.jit(lambda y, memory: decoder(y, memory).vectors)
    vectors = parallel(y, memory)
    assert vectors.shape == y.shape
    assert np.isfinite(vectors).all()

    # Step by step, the two rows changing places before each.
    cache, step = decoder.start(memory, T + 2), jax.jit(lambda cache, y: decoder.step(cache, y))
    assert all(leaf.shape[0] == B for leaf in jax.tree.leaves(cache))
    rows = jnp.arange(B)
    for place in range(T):
        cache, rows = jax.tree.map(lambda leaf: leaf[::-1], (cache, rows))
        vector, after = step(cache, y[rows, place])
        assert jax.tree.map(_form, after) == jax.tree.map(_form, cache)
        np.testing.assert_allclose(vector, vectors[rows, place], **close)
        cache = after

    for place in range(T):
        changed = np.abs(parallel(y.at[:, place].multiply(-1.0), memory) - vectors).max(axis=(0, 2))
        assert (changed[:place] <= tolerance).all(), "a place after is seen"
        assert (changed[place : place + 2] > 1e-4).all(), (
            "the token before, or the one before that, is not seen"
        )
    other = _memory(mask, memory.vectors[:, ::-1], memory.inputs[:, ::-1])
    assert np.abs(parallel(y, other) - vectors).max() > 1e-4, "the memory is not seen"

    dirty = _memory(mask, memory.vectors, memory.inputs, padding=jnp.nan)
    np.testing.assert_array_equal(parallel(y, dirty), vectors)
    structure, parameters, rest = nnx.split(decoder, nnx.Param, ...)

    @jax.jit
    @jax.grad
    def gradients(known, memory):
        parameters, y, vectors = known
        found = nnx.merge(structure, parameters, rest)(y, memory._replace(vectors=vectors)).vectors
        return jnp.sum(found * normal(B, T, dim, seed=4))

    clean, found = (gradients((parameters, y, x.vectors), x) for x in (memory, dirty))
    for expected, actual in zip(jax.tree.leaves(clean), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(actual, expected, **close)

    row, length = B - 1, LENGTHS[-1]
    alone = Memory(*(x[row:, :length] for x in memory))
    np.testing.assert_allclose(parallel(y[row:], alone), vectors[row:], **close)

    asked = jax.jit(lambda y, memory: decoder(y, memory, return_weights=True)[:2])(y, memory)
    np.testing.assert_array_equal(asked[0], vectors)
    assert bool(asked[1]) == attends
    for weights in asked[1]:
        assert weights.shape == (B, weights.shape[1], T, S)
        assert (weights >= 0).all()
        assert (weights.sum(axis=-1) < 1 + 1e-5).all()
        assert (weights[row, :, :, length:] == 0).all()
        assert (weights.max(axis=(1, 2, 3)) > 0).all()


def _memory(mask, vectors, inputs, *, padding: float = 0.0) -> Memory:
    vectors, inputs = (jnp.where(mask[..., None], x, padding) for x in (vectors, inputs))
    return Memory(vectors, mask, inputs)


def _form(leaf) -> tuple:
    return leaf.shape, leaf.dtype
