"""What a sparse form is measured by: the attention of `attend` under its mask."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.attention import oracle
from tests.attention.mechanism import changed, draw

GROUPED = (2, 1, 3, 4)  # N, K, H, V


def assert_equals_attend(call, mask, T, S=None, B=2, rtol=1e-12):
    """In output and gradients, float64; needs the fixture `x64`."""
    N, K, H, V = GROUPED
    S = S or T
    *arrays, form = draw((B, T, N, H), (B, S, K, H), (B, S, K, V), (B, T, N, V), dtype=jnp.float64)

    @jax.jit
    def results(*arrays):
        out, pull = jax.vjp(call, *arrays)
        return out, *pull(form)

    expected = oracle.attend_and_gradients(*arrays, np.asarray(mask), form)
    for a, e in zip(results(*arrays), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)


def who_sees(call, T, s, B=1):
    """Which queries `[T]` turn into NaN when the value at s is NaN; the others must not move at all."""
    N, K, H, V = GROUPED
    query, key, value = draw((B, T, N, H), (B, T, K, H), (B, T, K, V))

    @jax.jit
    def results(value, form):
        out, pull = jax.vjp(call, query, key, value)
        return out, pull(form)

    ones = np.ones((B, T, N, V), np.float32)
    spoilt = changed(value, np.s_[0, s, 0], np.nan)
    seen = np.isnan(results(spoilt, ones)[0])
    assert (seen == seen[..., :1, :1]).all()
    # What the queries that do not see it pass back to the others is as clean.
    form = np.where(seen, 0, ones)
    (out, gradients), (clean, clean_gradients) = results(spoilt, form), results(value, form)
    np.testing.assert_array_equal(np.asarray(out)[~seen], np.asarray(clean)[~seen])
    for a, e in zip(gradients, clean_gradients, strict=True):
        np.testing.assert_array_equal(a, e)
    return seen[0, :, 0, 0]


def gradients(call):
    """The backward pass, in all three arguments."""
    return jax.grad(lambda *arrays: jnp.sum(call(*arrays) ** 2), (0, 1, 2))
