"""From columns to vectors: tables by hand, unknown words, stacked frames; padding is 0 whatever it holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention import positions
from models.inputs import ByteInputs, FrameInputs, GridInputs, TokenInputs
from tests.models.parameters import arrays, filled, normal

MASK = jnp.array([[True, True, True], [True, False, False]])
WORDS = jnp.array([[2, 1, 4], [3, 0, 0]], jnp.int32)
AFFIXES = jnp.array([[[2, 1], [0, 3], [1, 1]], [[2, 2], [9, 9], [0, 0]]], jnp.int32)
TEXT = {"words": WORDS, "affixes": AFFIXES, "mask": MASK}


def zeroed(table):
    """A table whose row 0 is zeros, as padding counts."""
    return np.concatenate([np.zeros((1, table.shape[1])), table[1:]])


def test_words_and_affixes_are_summed():
    inputs = filled(TokenInputs, 3, words=5, affixes=(3, 4))
    found, mask = inputs(TEXT)
    p = arrays(inputs)
    word, first, second = (zeroed(t["embedding"]) for t in (p["words"], p["affixes"][0], p["affixes"][1]))
    expected = [[word[2] + first[2] + second[1], word[1] + second[3], word[4] + first[1] + second[1]],
                [word[3] + first[2] + second[2], np.zeros(3), np.zeros(3)]]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(mask, MASK)


def test_or_concatenated_and_projected():
    inputs = filled(TokenInputs, 3, words=5, affixes=(3, 4), combine="concatenate", affix_dim=2)
    p = arrays(inputs)
    word, first, second = (zeroed(t["embedding"]) for t in (p["words"], p["affixes"][0], p["affixes"][1]))
    row = np.concatenate([word[1], first[0], second[3]])
    expected = row @ p["project"]["kernel"] + p["project"]["bias"]
    found, _ = inputs(TEXT)
    np.testing.assert_allclose(found[0, 1], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1, 1:], 0)


def test_words_alone_are_their_table():
    inputs = filled(TokenInputs, 3, words=5, combine="concatenate")
    assert inputs.project is None
    found, _ = inputs({"words": WORDS, "mask": MASK})
    np.testing.assert_array_equal(found[0], inputs.words.embedding[...][WORDS[0]])


def test_a_word_beyond_the_table_is_not_its_last():
    inputs = filled(TokenInputs, 3, words=4)
    found, _ = inputs({"words": WORDS, "mask": MASK})
    np.testing.assert_array_equal(np.isnan(found).all(-1), [[False, False, True], [False] * 3])


def test_word_dropout_makes_words_unknown_and_leaves_affixes():
    inputs = filled(TokenInputs, 2, words=5, affixes=(3,), word_dropout_rate=0.25)
    batch = {
        "words": jnp.full((40, 50), 4),
        "affixes": jnp.full((40, 50, 1), 2),
        "mask": jnp.ones((40, 50), bool),
    }
    found = np.asarray(inputs(batch, train=True, rngs=nnx.Rngs(dropout=0))[0])
    word, affix = (np.asarray(table.embedding[...]) for table in (inputs.words, inputs.affixes[0]))
    as_itself = (found == word[4] + affix[2]).all(-1)
    assert (as_itself | (found == word[1] + affix[2]).all(-1)).all()
    assert 0.7 < as_itself.mean() < 0.8
    np.testing.assert_array_equal(inputs(batch)[0][0, 0], word[4] + affix[2])


def test_bytes_are_their_table():
    inputs = filled(ByteInputs, 3, bytes=5)
    found, _ = inputs({"bytes": WORDS, "mask": MASK})
    table = inputs.bytes.embedding[...]
    np.testing.assert_array_equal(found[0], table[jnp.array([2, 1, 4])])
    np.testing.assert_array_equal(found[1], [table[3], [0, 0, 0], [0, 0, 0]])


def test_stacked_frames():
    inputs = FrameInputs(4, frames=2, stack=2, rngs=nnx.Rngs(0))
    inputs.project.kernel[...] = jnp.eye(4)
    frames = jnp.arange(1.0, 13.0).reshape(2, 3, 2)
    found, mask = inputs({"frames": jnp.where(MASK[..., None], frames, jnp.nan), "mask": MASK})
    np.testing.assert_array_equal(mask, [[True, True], [True, False]])
    np.testing.assert_array_equal(found, [[[1, 2, 3, 4], [5, 6, 0, 0]], [[7, 8, 0, 0], [0, 0, 0, 0]]])


@pytest.mark.parametrize("length, vectors", [(1, 1), (4, 1), (5, 2), (8, 2)])
def test_frames_make_their_number_over_stack_rounded_up(length, vectors):
    inputs = filled(FrameInputs, 2, frames=1, stack=4)
    for padded in (8, 9):
        batch = {"frames": jnp.ones((1, padded, 1)), "mask": jnp.arange(padded)[None] < length}
        _, mask = inputs(batch)
        assert mask.shape == (1, -(-padded // 4))
        assert mask.sum() == vectors


def test_each_convolution_halves_the_frames():
    """The first vector of two frames has none before it; ReLU cuts what is negative; padding is harmless."""
    inputs = FrameInputs(1, frames=1, subsampling=4, rngs=nnx.Rngs(0))
    inputs.windows[0].kernel[...] = jnp.array([[100.0], [10.0], [1.0]])
    inputs.windows[1].kernel[...] = jnp.array([[1.0], [1.0], [-1.0]])
    inputs.project.kernel[...] = jnp.ones((1, 1))
    for padded in (7, 10):
        mask = jnp.arange(padded)[None] < jnp.array([[7], [2]])
        frames = jnp.where(mask, jnp.array([[1.0], [5.0]]) + jnp.arange(float(padded))[None], jnp.nan)
        found, kept = inputs({"frames": frames[..., None], "mask": mask})
        # After one: 0 1 2, 2 3 4, 4 5 6, 6 7 0 as digits; and 0 5 6.
        np.testing.assert_array_equal(kept[:, :2], [[True, True], [True, False]])
        np.testing.assert_array_equal(found[:, :2, 0], [[0, 234 + 456 - 670], [56, 0]])
        assert kept.shape == (2, -(-padded // 4))
        assert not kept[:, 2:].any()


def test_subsampling_by_what_is_no_power_of_two_is_refused():
    with pytest.raises(ValueError, match="subsampling is 3; it must be a power of two"):
        FrameInputs(2, frames=1, subsampling=3, rngs=nnx.Rngs(0))


def test_a_linear_map_that_never_sees_padding():
    inputs, values = filled(FrameInputs, 4, frames=2), normal(2, 3, 2)

    def loss(inputs, garbage):
        found, _ = inputs({"frames": jnp.where(MASK[..., None], values, garbage), "mask": MASK})
        return jnp.sin(found).sum(), found

    gradients, found = nnx.grad(loss, has_aux=True)(inputs, jnp.nan)
    project = inputs.project
    np.testing.assert_allclose(
        found[0], values[0] @ project.kernel[...] + project.bias[...][None], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(found[1, 1:], 0)
    for leaf in jax.tree.leaves(gradients):
        assert (jnp.isfinite(leaf) & (leaf != 0)).all()


def test_an_unknown_way_to_combine_is_refused():
    with pytest.raises(ValueError, match=r"combine is 'mean'; it must be one of \('sum', 'concatenate'\)"):
        TokenInputs(3, words=5, combine="mean", rngs=nnx.Rngs(0))


def test_an_image_is_squares_of_the_places_of_its_map_row_by_row():
    fields = {"image": (9, 11, 2), "widths": (3, 4), "blocks": (0, 1), "stack": 2}
    inputs, bare = (
        GridInputs(6, positions=kind, rngs=nnx.Rngs(0), **fields) for kind in ("sinusoidal", "none")
    )
    pixels = (jnp.arange(2 * 9 * 11 * 2) % 256).astype(jnp.uint8).reshape(2, 9, 11, 2)
    found, mask = inputs({"image": pixels})
    places = inputs.map.features(pixels.astype(jnp.float32) / 255)[1]
    assert places.shape == (3, 3, 4)
    assert inputs.grid == (2, 2)
    # The third vector is of the third row's first two places, and of a fourth row that is not there.
    expected = inputs.project(jnp.concatenate([places[2, 0], places[2, 1], jnp.zeros(8)]))
    np.testing.assert_allclose(bare({"image": pixels})[0][1, 2], expected, rtol=1e-4, atol=1e-6)
    encoded = positions.sinusoidal_2d(2, 2, 6)[1, 0]
    np.testing.assert_allclose(found[1, 2], expected + encoded, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(mask, np.ones((2, 4), bool))
    before = inputs.map.stem_norm.mean[...]
    inputs({"image": pixels}, train=True)
    assert (inputs.map.stem_norm.mean[...] != before).all()


def test_positions_of_a_grid_are_named():
    with pytest.raises(ValueError, match="positions is 'rotary'; it must be one of"):
        GridInputs(6, image=(5, 7, 2), positions="rotary", rngs=nnx.Rngs(0))
