"""The window: literal neighbours, and the proof that nothing else is seen."""

import jax
import numpy as np

from models.encoders.window_fc import WindowFC, window_of
from tests.models.parameters import arrays, filled, normal, run

windows = jax.jit(window_of, static_argnums=(1, 2, 3))


def test_neighbours_in_order_and_zeros_outside():
    x = np.array([[[1, 10], [2, 20], [3, 30]]], np.float32)
    np.testing.assert_array_equal(
        windows(x, 1, 2),
        [[[0, 0, 1, 10, 2, 20, 3, 30], [1, 10, 2, 20, 3, 30, 0, 0], [2, 20, 3, 30, 0, 0, 0, 0]]],
    )


def test_dilation_skips():
    x = np.arange(1.0, 6.0, dtype=np.float32).reshape(1, 5, 1)
    expected = [[0, 1, 3], [0, 2, 4], [1, 3, 5], [2, 4, 0], [3, 5, 0]]
    np.testing.assert_array_equal(windows(x, 1, 1, 2)[0], expected)


def test_it_is_the_formula():
    encoder = filled(WindowFC, 2, window=(1, 0), num_layers=2, hidden_dim=3)
    x, mask = np.asarray(normal(1, 4, 2)), np.array([[True, True, True, False]])
    p = arrays(encoder)
    before = np.concatenate([np.zeros((1, 2)), x[0, :2]])
    hidden = np.concatenate([before, x[0, :3]], axis=1)
    for layer in (0, 1):
        hidden = np.maximum(hidden @ p["hidden"][layer]["kernel"] + p["hidden"][layer]["bias"], 0)
    expected = hidden @ p["output"]["kernel"] + p["output"]["bias"]
    np.testing.assert_allclose(run(encoder, x, mask)[0], [*expected, [0, 0]], rtol=1e-5, atol=1e-6)


def test_it_sees_its_window_and_no_more():
    encoder = filled(WindowFC, 4, window=(2, 1), hidden_dim=5, activation="gelu")
    mask = np.ones((1, 7), bool)
    slopes = jax.jit(jax.jacobian(lambda x: encoder(x, mask)[0].sum(axis=-1)))(normal(1, 7, 4))
    sees = np.abs(slopes[:, 0]).sum(axis=-1) > 0
    expected = np.tri(7, k=1, dtype=bool) & ~np.tri(7, k=-3, dtype=bool)
    np.testing.assert_array_equal(sees, expected)
