import jax
import numpy as np
import pytest

from attention.internals.tiles import Plan, Tiles


@pytest.mark.parametrize(
    "band, offset, expected",
    [
        ((None, 0), 0, [(0, 1), (0, 2), (0, 3)]),
        ((None, 0), 4, [(0, 2), (0, 3), (0, 3)]),
        ((None, 0), -6, [(0, 0), (0, 1), (0, 2)]),
        ((1, 0), 0, [(0, 1), (0, 2), (1, 3)]),
        ((0, 0), 0, [(0, 1), (1, 2), (2, 3)]),
        ((5, 1), 0, [(0, 2), (0, 3), (0, 3)]),
        ((2, 2), 20, [(3, 3), (3, 3), (3, 3)]),
    ],
)
def test_blocks_out_of_sight_are_skipped(band, offset, expected):
    """Queries 0-3, 4-7, 8-11 and keys 0-3, 4-7, 8-11: from which to before which block of keys."""
    tiles = Tiles(Plan(band, False, 4, 1.0, 1, 12, 12), 4)
    start, stop = jax.jit(jax.vmap(tiles.needed, (0, None)))(np.arange(3, dtype=np.int32), np.int32(offset))
    assert list(zip(start.tolist(), stop.tolist(), strict=True)) == expected
