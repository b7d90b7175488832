"""The shared checks, tried once for all mechanisms; that a mechanism makes them is in test_identities.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import masks
from attention.internals import contract
from tests.attention.mechanism import Sizes, draw

B, T, S, N, K, H, V = Sizes()

# They look at shapes and dtypes alone, which arrays of numpy have as well.
pytestmark = pytest.mark.usefixtures("untyped")


def check(*arrays, **options):
    return contract.check_attention(*(arrays or draw(*Sizes().arrays)), **options)


def test_what_fits():
    assert check() == (B, N, T, S)
    unbatched = [x[0] for x in draw(*Sizes().arrays)]
    assert check(*unbatched, mask=np.ones((1, 1, S), bool), bias=np.ones((N, T, 1), np.float32)) == (N, T, S)
    assert check(bias=np.ones((1, 1, 1, 1), jnp.bfloat16), dropout_key=jax.random.key(0)) == (B, N, T, S)


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, T, N, H), (3, S, K, H), (3, S, K, V)), r"batch axes .*\(2, 5, 4, 6\).*\(3, 7, 2, 6\)"),
        (((B, T, N, H), (S, K, H), (S, K, V)), r"same rank.*\(3, 5, 4, 6\).*\(7, 2, 6\)"),
        (((N, H), (K, H), (K, V)), r"rank, 3 or more.*\(4, 6\).*\(2, 6\)"),
        (((B, T, 5, H), (B, S, K, H), (B, S, K, V)), r"5 query heads .* 2 key heads.*\(3, 5, 5, 6\)"),
        (((B, T, N, H), (B, S, 0, H), (B, S, 0, V)), r"0 key heads"),
        (((B, T, N, H), (B, S, K, H), (B, T, K, V)), r"key \(3, 7, 2, 6\) and value \(3, 5, 2, 8\)"),
        (((B, T, N, H), (B, S, K, H), (B, S, 1, V)), r"key \(3, 7, 2, 6\) and value \(3, 7, 1, 8\)"),
        (((B, T, N, H), (B, S, K, H), (2, S, K, V)), r"key \(3, 7, 2, 6\) and value \(2, 7, 2, 8\)"),
        (((B, T, N, H), (B, S, K, V), (B, S, K, V)), r"head dims .*\(3, 5, 4, 6\).*\(3, 7, 2, 8\)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        check(*draw(*shapes))


def test_dtypes_that_do_not_fit():
    query, key, value = draw(*Sizes().arrays)
    with pytest.raises(TypeError, match="query float32, key bfloat16"):
        check(query, key.astype(jnp.bfloat16), value)
    with pytest.raises(TypeError, match="key float32, value bfloat16"):
        check(query, key, value.astype(jnp.bfloat16))
    with pytest.raises(TypeError, match="query int32"):
        check(*(x.astype(np.int32) for x in (query, key, value)))


@pytest.mark.parametrize("name", ["mask", "bias"])
@pytest.mark.parametrize(
    "shape, message",
    [
        ((T, S), r"\(5, 7\) has rank 2 but scores \(3, 4, 5, 7\) have rank 4"),
        ((B, T, S), r"rank 3"),
        ((1, 1, 1, T, S), r"rank 5"),
        ((B, 1, 1, S - 1), r"\(3, 1, 1, 6\) does not broadcast .*\(3, 4, 5, 7\)"),
        ((B, 1, T, T), r"\(3, 1, 5, 5\) does not broadcast .*\(3, 4, 5, 7\)"),
        ((B, K, T, S), r"\(3, 2, 5, 7\) does not broadcast .*\(3, 4, 5, 7\)"),
    ],
)
def test_mask_and_bias_have_every_axis_of_the_scores(name, shape, message):
    with pytest.raises(ValueError, match=f"{name} .*{message}"):
        check(**{name: np.ones(shape, bool if name == "mask" else np.float32)})


def test_unbatched_queries_are_told_of_batch_dims():
    arrays = [x[0] for x in draw(*Sizes().arrays)]
    with pytest.raises(
        ValueError, match=r"\(1, 1, 5, 7\) has rank 4 .*\(4, 5, 7\) have rank 3.*batch_dims=0"
    ):
        check(*arrays, mask=masks.causal(T, S, 0))


def test_a_mask_is_boolean_and_a_bias_is_not():
    wide = (B, N, T, S)
    for dtype in (np.float32, np.int32):
        with pytest.raises(TypeError, match=r"mask must be boolean.*32 \(3, 4, 5, 7\)"):
            check(mask=np.ones(wide, dtype))
    for dtype in (bool, np.int32):
        with pytest.raises(TypeError, match=r"bias \(3, 4, 5, 7\) must be floating"):
            check(bias=np.ones(wide, dtype))


def test_a_bias_is_no_wider_than_the_scores():
    with pytest.raises(TypeError, match="no wider than the scores' float32, got float64"):
        check(bias=np.ones((1, 1, 1, 1)))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0, float("nan")])
def test_dropout_rate_out_of_range(rate):
    with pytest.raises(ValueError, match=r"dropout_rate must be in \[0, 1\)"):
        check(dropout_rate=rate, dropout_key=jax.random.key(0))


def test_a_mask_of_keys_is_the_same_for_every_query():
    contract.check_key_mask("name", np.ones((B, 1, 1, S), bool), (B, N, T, S))
    for shape in ((B, 1, T, S), (B, N, 1, S)):
        with pytest.raises(ValueError, match=rf"^name cannot .*between queries.*{S}\) for scores"):
            contract.check_key_mask("name", np.ones(shape, bool), (B, N, T, S))
