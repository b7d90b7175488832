"""Positions by config word: what is added or put beside the vectors, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from errors import UserError
from models.positions import Positions, Relative, relative_kind
from tests.models.parameters import arrays, filled, normal

B, T, D = 2, 3, 4
MASK = jnp.array([[True, True, True], [True, False, False]])
# sin and cos of p and of p / 100, by the table
SINUSOIDS = np.array(
    [[0, 1, 0, 1], [0.841471, 0.540302, 0.01, 0.99995], [0.909297, -0.416147, 0.019999, 0.9998]]
)


def test_sinusoids_are_added_to_vectors_brought_to_their_size():
    x = normal(B, T, D)
    found = filled(Positions, "sinusoidal", D)(x)
    np.testing.assert_allclose(found, 2 * np.asarray(x) + SINUSOIDS, rtol=1e-4, atol=1e-5)


def test_a_learned_table_is_added_as_it_is():
    x, positions = normal(B, T, D), filled(Positions, "learned", D, max_length=5)
    table = arrays(positions)["table"]
    assert table.shape == (5, D)
    np.testing.assert_allclose(positions(x), np.asarray(x) + table[:T], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_put_beside_the_vectors_they_are_projected_back(kind):
    x, positions = normal(B, T, D), filled(Positions, kind, D, combine="concatenate", max_length=5)
    p = arrays(positions)
    encoded = np.broadcast_to(p["table"][:T] if kind == "learned" else SINUSOIDS, (B, T, D))
    expected = np.concatenate([x, encoded], axis=-1) @ p["project"]["kernel"] + p["project"]["bias"]
    np.testing.assert_allclose(positions(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("combine", ["add", "concatenate"])
@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal"])
def test_padding_is_0_and_not_seen(kind, combine):
    positions, x = filled(Positions, kind, D, combine=combine), normal(B, T, D)
    found = positions(jnp.where(MASK[..., None], x, jnp.nan), MASK)
    np.testing.assert_array_equal(found[~MASK], 0)
    np.testing.assert_allclose(found[MASK], positions(x)[MASK], rtol=1e-6)
    np.testing.assert_allclose(positions(x[1:, :1])[0], found[1, :1], rtol=1e-5, atol=1e-6)


def test_none_is_the_vectors_themselves_without_parameters():
    positions, x = Positions("none", D, combine="concatenate", rngs=nnx.Rngs(0)), normal(B, T, D)
    np.testing.assert_array_equal(positions(x), x)
    assert not arrays(positions)


def test_a_sequence_longer_than_the_table_is_one_line_with_both_numbers():
    positions = filled(Positions, "learned", D, max_length=2)
    with pytest.raises(UserError, match=r"a sequence of 3 vectors is longer .* positions.max_length 2"):
        positions(normal(B, T, D))


def test_alibi_of_two_heads_by_hand():
    """Slopes 2^-4 and 2^-8."""
    bias = Relative("alibi", 2, D, {}, rngs=nnx.Rngs(0)).bias(3)
    distances = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    np.testing.assert_allclose(bias, [[-distances / 16, -distances / 256]])


def test_t5_reads_a_number_per_bucket_and_head():
    """Buckets 0 and 1 are for keys at the query and behind it, 2 and 3 for those ahead."""
    relative = Relative("t5", 1, D, {"num_buckets": 4, "max_distance": 2}, rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(relative.table[...], np.zeros((4, 1)))
    relative.table[...] = jnp.array([[10.0], [20.0], [30.0], [40.0]])
    np.testing.assert_array_equal(relative.bias(3), [[[[10, 40, 40], [20, 10, 40], [20, 20, 10]]]])


def test_rotary_turns_pairs_by_their_position_and_adds_no_bias():
    relative = Relative("rotary", 1, 2, {"base": 100.0}, rngs=nnx.Rngs(0))
    turned = relative.turn(jnp.tile(jnp.array([1.0, 0.0]), (1, 3, 1, 1)))
    p = np.arange(3.0)
    np.testing.assert_allclose(turned[0, :, 0], np.stack([np.cos(p), np.sin(p)], axis=1), atol=1e-6)
    assert relative.bias(3) is None


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"kind": "lerned"}, "unknown kind of absolute positions 'lerned'. Did you mean 'learned'?"),
        (
            {"kind": "rotary"},
            "unknown kind of absolute positions 'rotary'. Allowed: learned, none, sinusoidal",
        ),
        (
            {"kind": "none", "combine": "mul"},
            "unknown way to combine positions 'mul'. Allowed: add, concatenate",
        ),
        (
            {"kind": "learned", "max_length": 0},
            "positions.max_length is 0; it must be a whole number from 1 on",
        ),
    ],
)
def test_what_there_is_not_is_one_line(arguments, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")) as error:
        Positions(arguments.pop("kind"), D, **arguments, rngs=nnx.Rngs(0))
    assert "\n" not in str(error.value)


def test_no_block_is_no_relative_positions():
    assert [relative_kind(block) for block in (None, {}, {"kind": "none"}, {"kind": "t5"})] == [
        *["none"] * 3,
        "t5",
    ]
