"""Positions by config word: what is added or put beside the vectors, and what is refused."""

import jax
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.positions import POSITIONS, RELATIVE
from tests.models.parameters import arrays, filled, normal, real, shaped

B, T, D = 2, 3, 4
MASK = real(3, 1, of=T)
# sin and cos of p and of p / 100, by the table
SINUSOIDS = np.array(
    [[0, 1, 0, 1], [0.841471, 0.540302, 0.01, 0.99995], [0.909297, -0.416147, 0.019999, 0.9998]]
)
CASES = {
    "none": {"kind": "none"},
    "learned": {"kind": "learned", "max_length": 5},
    "sinusoidal": {"kind": "sinusoidal"},
    "learned beside": {"kind": "learned", "max_length": 5, "combine": "concatenate"},
    "sinusoidal beside": {"kind": "sinusoidal", "combine": "concatenate"},
}


def test_every_kind_is_tried():
    assert {block["kind"] for block in CASES.values()} == set(POSITIONS)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_formula_of_all_places_and_of_one_and_padding_is_not_seen(case):
    """Sinusoids are added to vectors of their size, a table as it is; beside, a linear map follows."""
    positions, x = filled(POSITIONS.build, CASES[case], dim=D), np.asarray(normal(B, T, D))
    p = arrays(positions)
    encoded = p["table"][:T] if "learned" in case else SINUSOIDS
    if case == "none":
        expected = x
    elif "beside" in case:
        pair = np.concatenate([x, np.broadcast_to(encoded, x.shape)], axis=-1)
        expected = pair @ p["project"]["kernel"] + p["project"]["bias"]
    else:
        expected = (2 if case == "sinusoidal" else 1) * x + encoded
    assert ("table" in p, "project" in p) == ("learned" in case, "beside" in case)

    @jax.jit
    def found(positions, x, dirty):
        index = np.array([2, 0], np.int32)
        return positions(x), positions(dirty, MASK), positions.at(x[np.arange(B), index], index)

    whole, masked, one = found(positions, x, np.where(MASK[..., None], x, np.float32(np.nan)))
    np.testing.assert_allclose(whole, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(masked, np.where(MASK[..., None], whole, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one, [whole[0, 2], whole[1, 0]], rtol=1e-5, atol=1e-6)


def test_a_sequence_longer_than_the_table_is_one_line_with_both_numbers():
    positions = filled(POSITIONS.build, {"kind": "learned", "max_length": 2}, dim=D)
    with pytest.raises(UserError, match=r"a sequence of 3 vectors is longer .* positions.max_length 2"):
        positions(normal(B, T, D))
    at = jax.jit(lambda positions, x, index: positions.at(x, index))
    found = at(positions, np.ones((2, D), np.float32), np.array([1, 2], np.int32))
    np.testing.assert_array_equal(np.isnan(found).all(-1), [False, True])


def relative(kind, *, num_heads, head_dim, **fields):
    return filled(RELATIVE.build, {"kind": kind, **fields}, num_heads=num_heads, head_dim=head_dim)


def test_alibi_of_two_heads_by_hand():
    """Slopes 2^-4 and 2^-8."""
    bias = relative("alibi", num_heads=2, head_dim=D).bias(3)
    distances = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    np.testing.assert_allclose(bias, [[-distances / 16, -distances / 256]])


def test_t5_reads_a_number_per_bucket_and_head():
    """Buckets 0 and 1 are for keys at the query and behind it, 2 and 3 for those ahead."""
    made = relative("t5", num_heads=1, head_dim=D, num_buckets=4, max_distance=2)
    assert made.table.shape == (4, 1)
    made.table[...] = np.array([[10], [20], [30], [40]], np.float32)
    np.testing.assert_array_equal(made.bias(3), [[[[10, 40, 40], [20, 10, 40], [20, 20, 10]]]])


def test_rotary_turns_pairs_by_their_position_and_adds_no_bias():
    made = relative("rotary", num_heads=1, head_dim=2, base=100.0)
    vectors = np.tile(np.array([1, 0], np.float32), (1, 3, 1, 1))
    turned, later = jax.jit(lambda x: (made.turn(x), made.turn(x, np.array([4], np.int32))))(vectors)
    for found, first in ((turned, 0), (later, 4)):
        p = first + np.arange(3.0)
        np.testing.assert_allclose(found[0, :, 0], np.stack([np.cos(p), np.sin(p)], axis=1), atol=1e-6)
    assert made.bias(3) is None


@pytest.mark.parametrize(
    "block, message",
    [
        ("lerned", "'lerned'. Did you mean 'learned'?"),
        ("rotary", "in config.model.positions 'rotary'. Allowed: learned, none, sinusoidal"),
        (
            {"kind": "none", "combine": "add"},
            "positions with kind 'none' has no field 'combine', which is of sin",
        ),
        (
            {"kind": "learned", "combine": "mul"},
            "positions.combine is 'mul'; it must be one of add, concatenate",
        ),
        (
            {"kind": "learned", "max_length": 0},
            "positions.max_length is 0; it must be an integer, at least 1",
        ),
        ({"kind": "learned", "dim": 3}, "'dim'"),
    ],
)
def test_what_there_is_not_is_one_line(block, message):
    with pytest.raises(UserError) as error:
        POSITIONS.build(block, "config.model.positions", dim=D, rngs=nnx.Rngs(0))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_none_of_the_relative_ones_is_nothing():
    assert RELATIVE.build("none", num_heads=2, head_dim=4, rngs=nnx.Rngs(0)) is None
    assert not jax.tree.leaves(nnx.state(shaped(POSITIONS.build, "none", dim=D)))
