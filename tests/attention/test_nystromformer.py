from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from attention import attend, masks
from attention.nystromformer import nystromformer_attention
from tests.attention.mechanism import Sizes, changed, draw
from tests.attention.memory import memory_slope

ARRAYS = Sizes(T=7).arrays


def test_a_landmark_at_every_position_is_dense_attention(x64):
    arrays = draw(*ARRAYS, dtype=jnp.float64)
    mask = masks.padding(jnp.array([4, 1, 7]), 7)
    for landmarks, given in ((7, {}), (9, {"mask": mask})):
        out = nystromformer_attention(*arrays, landmarks=landmarks, iterations=25, **given)
        dense = np.asarray(attend(*arrays, **given))
        if given:
            dense = dense * np.asarray(mask)[:, 0, 0, :, None, None]
        np.testing.assert_allclose(out, dense, rtol=1e-10, atol=1e-10)


def test_nothing_is_lost_where_segments_are_constant(x64):
    """Ten positions have four segments 3 2 3 2, since position i is in segment 4 i // 10."""
    repeats = np.array([3, 2, 3, 2])
    arrays = draw((2, 4, 2, 6), (2, 4, 1, 6), (2, 10, 1, 5), dtype=jnp.float64)
    query, key = (np.repeat(x, repeats, axis=1) for x in arrays[:2])
    out = nystromformer_attention(query, key, arrays[2], landmarks=4, iterations=25)
    np.testing.assert_allclose(out, attend(query, key, arrays[2]), rtol=1e-10, atol=1e-10)


def test_padding_moves_no_landmark(x64):
    arrays = draw(*ARRAYS, dtype=jnp.float64)
    alone = nystromformer_attention(*(x[:1, :5] for x in arrays), landmarks=3)
    # Padding may stand anywhere, not at the end only.
    places = np.array([0, 2, 3, 5, 6])
    padded = [changed(np.zeros_like(x), np.s_[:, places], x[:, :5]) for x in arrays]
    mask = changed(np.zeros((3, 1, 1, 7), bool), np.s_[..., places], True)
    out = nystromformer_attention(*padded, landmarks=3, mask=mask)
    np.testing.assert_allclose(np.asarray(out)[0, places], alone[0], rtol=1e-12)
    assert (np.asarray(out)[:, [1, 4]] == 0).all()


def test_error_falls_with_the_landmarks():
    """On neighbours that are alike, as in language; measured relative to the output of dense attention."""
    arrays = [jnp.cumsum(x, axis=1) / 4 for x in draw(*[(1, 64, 2, 16)] * 3)]
    dense = attend(*arrays)
    errors = [
        float(
            np.linalg.norm(nystromformer_attention(*arrays, landmarks=m, iterations=20) - dense)
            / np.linalg.norm(dense)
        )
        for m in (4, 16, 64)
    ]
    assert errors[0] > errors[1] > errors[2], errors
    assert errors[1] < 0.2, errors
    assert errors[2] < 1e-2, errors


def test_error_falls_with_the_iterations(x64):
    arrays = draw(*ARRAYS, dtype=jnp.float64)
    dense = attend(*arrays)
    errors = [
        float(np.abs(nystromformer_attention(*arrays, landmarks=7, iterations=i) - dense).max())
        for i in (2, 6, 12)
    ]
    assert errors[0] > errors[1] > 100 * errors[2], errors
    assert errors[1] < 0.1, errors


def test_memory_is_linear():
    assert memory_slope(partial(nystromformer_attention, landmarks=32)) <= 1.1


@pytest.mark.parametrize("wrong", [{"landmarks": 0}, {"landmarks": 4, "iterations": -1}])
def test_wrong_counts_are_refused(wrong, untyped):
    with pytest.raises(ValueError, match="landmarks must be 1 or more and iterations 0 or more"):
        nystromformer_attention(*draw(*ARRAYS), **wrong)
    with pytest.raises(ValueError, match=r"self-attention.*\(3, 4, 5, 7\)"):
        nystromformer_attention(*draw(*Sizes().arrays), landmarks=3)
