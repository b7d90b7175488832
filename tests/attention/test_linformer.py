import jax.numpy as jnp
import numpy as np
import pytest

from attention import attend, masks
from attention.linformer import linformer_attention
from tests.attention.mechanism import Sizes, draw
from tests.attention.memory import memory_slope

B, T, S, N, K, H, V = Sizes()


def test_the_identity_as_projection_is_dense_attention(x64):
    arrays = draw(*Sizes().arrays, dtype=jnp.float64)
    dense = attend(*arrays)
    for unit in (np.eye(S), np.broadcast_to(np.eye(S), (K, S, S))):
        np.testing.assert_allclose(linformer_attention(*arrays, key_projection=unit), dense, rtol=1e-12)


def test_one_mean_by_hand():
    query, key, value = draw((2, 3, 1, 4), (2, 4, 1, 4), (2, 4, 1, 5))
    mean = np.full((4, 1), 0.25)
    # A single mixture has the weight 1. A hidden value counts as zeros.
    for mask, shown in ((None, [4, 4]), (masks.padding(jnp.array([4, 1]), 4), [4, 1])):
        out = linformer_attention(query, key, value, key_projection=mean, mask=mask)
        expected = [value[b, : shown[b]].sum(0) / 4 for b in range(2)]
        np.testing.assert_allclose(out, np.broadcast_to(np.stack(expected)[:, None], out.shape), rtol=1e-6)


def test_error_is_what_the_projection_drops():
    """Averages over segments lose nothing where keys and values are constant on each, and the noise else."""
    R, length = 8, 64
    projection = np.repeat(np.eye(R), length // R, axis=0) / (length // R)
    query, key, value = draw((1, length, 2, 16), (1, R, 2, 16), (1, R, 2, 16))
    key, value, *noise = (
        *(np.repeat(x, length // R, axis=1) for x in (key, value)),
        *draw((1, length, 2, 16), (1, length, 2, 16), seed=1),
    )

    def error(scale):
        arrays = query, key + scale * noise[0], value + scale * noise[1]
        return np.abs(linformer_attention(*arrays, key_projection=projection) - attend(*arrays)).mean()

    errors = [error(scale) for scale in (0.0, 0.1, 0.4)]
    assert errors[0] < 1e-6
    assert 1e-3 < errors[1] < 0.04
    assert errors[1] < errors[2] < 0.25


def test_memory_is_linear():
    assert (
        memory_slope(lambda q, k, v: linformer_attention(q, k, v, key_projection=np.ones((k.shape[1], 32))))
        <= 1.1
    )


@pytest.mark.parametrize(
    "projections, words",
    [
        ([(T, 3)], ["key_projection", (T, 3), f"S={S}"]),
        ([(N, S, 3)], ["key_projection", (N, S, 3), f"K={K}"]),
        ([(S, 3), (S, 2)], [(S, 3), (S, 2), "width"]),
        ([(S, 3), (3, 3)], ["value_projection", (3, 3)]),
    ],
)
def test_wrong_projections_are_refused(projections, words, untyped):
    given = dict(zip(("key_projection", "value_projection"), map(np.ones, projections), strict=False))
    with pytest.raises(ValueError) as error:
        linformer_attention(*draw(*Sizes().arrays), **given)
    assert all(str(word) in str(error.value) for word in words), str(error.value)


def test_a_projection_of_another_dtype_is_refused(untyped):
    with pytest.raises(TypeError, match="float16"):
        linformer_attention(*draw(*Sizes().arrays), key_projection=np.ones((S, 3), jnp.float16))
