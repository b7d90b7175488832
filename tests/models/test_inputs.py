"""From columns to vectors: tables by hand, unknown words, stacked frames; padding is 0 whatever it holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention import positions
from errors import UserError
from models.inputs import INPUTS, ByteInputs, FrameInputs, GridInputs, TokenInputs, build
from tests.models.parameters import arrays, filled, normal, program, real, run, shaped

MASK = real(3, 1, of=3)
WORDS = np.array([[2, 1, 4], [3, 0, 0]], np.int32)
AFFIXES = np.array([[[2, 1], [0, 3], [1, 1]], [[2, 2], [9, 9], [0, 0]]], np.int32)
TEXT = {"words": WORDS, "affixes": AFFIXES, "mask": MASK}


def zeroed(table):
    """A table whose row 0 is zeros, as padding counts."""
    return np.concatenate([np.zeros((1, table.shape[1])), table[1:]])


def test_words_and_affixes_are_summed():
    inputs = filled(TokenInputs, 3, words=5, affixes=(3, 4))
    found, mask = run(inputs, TEXT)
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
    found, _ = run(inputs, TEXT)
    np.testing.assert_allclose(found[0, 1], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1, 1:], 0)


@pytest.mark.parametrize("make, sizes", [(TokenInputs, {"words": 4}), (ByteInputs, {"bytes": 4})])
def test_words_or_bytes_alone_are_their_table(make, sizes):
    """Beyond the table is no vector, not its last; at padding it is nothing."""
    (column,) = sizes
    inputs = filled(make, 3, **sizes)
    found, _ = run(inputs, {column: np.array([[2, 1, 4], [3, 9, 0]], np.int32), "mask": MASK})
    table = np.asarray(getattr(inputs, column).embedding[...])
    assert len(arrays(inputs)) == 1
    np.testing.assert_array_equal(found, [[table[2], table[1], 3 * [np.nan]], [table[3], 3 * [0], 3 * [0]]])


def test_word_dropout_makes_words_unknown_and_leaves_affixes():
    inputs = filled(TokenInputs, 2, words=5, affixes=(3,), word_dropout_rate=0.25)
    batch = {
        "words": np.full((40, 50), 4, np.int32),
        "affixes": np.full((40, 50, 1), 2, np.int32),
        "mask": np.ones((40, 50), bool),
    }

    @jax.jit
    def both(inputs, batch):
        return inputs(batch, train=True, rngs=nnx.Rngs(dropout=0))[0], inputs(batch)[0]

    found, sure = (np.asarray(x) for x in both(inputs, batch))
    word, affix = (np.asarray(table.embedding[...]) for table in (inputs.words, inputs.affixes[0]))
    as_itself = (found == word[4] + affix[2]).all(-1)
    assert (as_itself | (found == word[1] + affix[2]).all(-1)).all()
    assert 0.7 < as_itself.mean() < 0.8
    np.testing.assert_array_equal(sure[0, 0], word[4] + affix[2])


def test_stacked_frames():
    """T of them make T over the stack, rounded up; real is what holds a real one."""
    inputs = filled(FrameInputs, 4, frames=2, stack=2)
    inputs.project.kernel[...], inputs.project.bias[...] = (
        np.eye(4, dtype=np.float32),
        np.zeros(4, np.float32),
    )
    frames = np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2)
    found, mask = run(inputs, {"frames": np.where(MASK[..., None], frames, np.float32(np.nan)), "mask": MASK})
    np.testing.assert_array_equal(mask, [[True, True], [True, False]])
    np.testing.assert_array_equal(found, [[[1, 2, 3, 4], [5, 6, 0, 0]], [[7, 8, 0, 0], [0, 0, 0, 0]]])
    four = filled(FrameInputs, 2, frames=1, stack=4)
    for padded in (8, 9):
        mask = real(1, 4, 5, 8, of=padded)
        _, kept = run(four, {"frames": np.ones((4, padded, 1), np.float32), "mask": mask})
        assert kept.shape == (4, -(-padded // 4))
        assert kept.sum(axis=1).tolist() == [1, 1, 2, 2]


def test_each_convolution_halves_the_frames():
    """The first vector of two frames has none before it; ReLU cuts what is negative; padding is harmless."""
    inputs = filled(FrameInputs, 1, frames=1, subsampling=4)
    for layer, kernel in zip((*inputs.windows, inputs.project), ([100, 10, 1], [1, 1, -1], [1]), strict=True):
        layer.kernel[...] = np.array(kernel, np.float32)[:, None]
        layer.bias[...] = np.zeros(1, np.float32)
    for padded in (7, 10):
        mask = real(7, 2, of=padded)
        frames = np.where(mask, np.array([[1], [5]]) + np.arange(padded), np.nan).astype(np.float32)
        found, kept = run(inputs, {"frames": frames[..., None], "mask": mask})
        # After one: 0 1 2, 2 3 4, 4 5 6, 6 7 0 as digits; and 0 5 6.
        np.testing.assert_array_equal(kept[:, :2], [[True, True], [True, False]])
        np.testing.assert_array_equal(found[:, :2, 0], [[0, 234 + 456 - 670], [56, 0]])
        assert kept.shape == (2, -(-padded // 4))
        assert not kept[:, 2:].any()


def test_a_linear_map_that_never_sees_padding():
    inputs, values = filled(FrameInputs, 4, frames=2), np.asarray(normal(2, 3, 2))

    @jax.jit
    def learn(inputs, frames):
        structure, params = nnx.split(inputs)

        def loss(params):
            found, _ = nnx.merge(structure, params)({"frames": frames, "mask": MASK})
            return jnp.sin(found).sum(), found

        return jax.grad(loss, has_aux=True)(params)

    gradients, found = learn(inputs, np.where(MASK[..., None], values, np.float32(np.nan)))
    p = arrays(inputs)["project"]
    np.testing.assert_allclose(found[0], values[0] @ p["kernel"] + p["bias"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1, 1:], 0)
    for leaf in jax.tree.leaves(gradients):
        assert (np.isfinite(leaf) & (np.asarray(leaf) != 0)).all()


def test_an_image_is_squares_of_the_places_of_its_map_row_by_row():
    fields = {"image": (9, 11, 2), "widths": (3, 4), "blocks": (0, 1), "stack": 2}
    inputs, bare = (filled(GridInputs, 6, positions=kind, **fields) for kind in ("sinusoidal", "none"))
    pixels = (np.arange(2 * 9 * 11 * 2) % 256).astype(np.uint8).reshape(2, 9, 11, 2)

    @jax.jit
    def see(inputs, pixels):
        return *inputs({"image": pixels}), inputs.map.features(pixels.astype(jnp.float32) / 255)

    found, mask, places = (np.asarray(x) for x in see(inputs, pixels))
    assert places.shape == (2, 3, 3, 4)
    assert inputs.grid == (2, 2)
    # The third vector is of the third row's first two places, and of a fourth row that is not there.
    p = arrays(inputs)["project"]
    four = np.concatenate([places[1, 2, 0], places[1, 2, 1], np.zeros(8)])
    expected = four @ p["kernel"] + p["bias"]
    np.testing.assert_allclose(see(bare, pixels)[0][1, 2], expected, rtol=1e-4, atol=1e-5)
    encoded = positions.sinusoidal_2d(2, 2, 6)[1, 0]
    np.testing.assert_allclose(found[1, 2], expected + encoded, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(mask, np.ones((2, 4), bool))

    @jax.jit
    def train(inputs, pixels):
        inputs({"image": pixels}, train=True)
        return inputs.map.stem_norm.mean[...]

    assert (train(inputs, pixels) != inputs.map.stem_norm.mean[...]).all()


COLUMNS = {"words": 5, "bytes": 7, "frames": 2, "image": (5, 7, 2)}
BATCHES = {
    "words": WORDS,
    "bytes": WORDS,
    "frames": np.asarray(normal(2, 3, 2)),
    "image": np.asarray(normal(2, 5, 7, 2)),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_dropout_needs_rngs(kind):
    batch = {kind: BATCHES[kind], "mask": MASK}
    dropping, sure = (
        shaped(build, {"kind": kind, "dropout_rate": rate}, {kind: COLUMNS[kind]}, dim=4)
        for rate in (0.5, 0.0)
    )
    assert program(dropping, batch, train=True) == program(sure, batch, train=True)
    assert "random_bits" in program(dropping, batch, seed=0)


@pytest.mark.parametrize(
    "block, columns, message",
    [
        (
            "bytes",
            {"words": 5},
            "config.model.inputs.kind is 'bytes'; the data set has words, so it must be 'words'",
        ),
        ("word", {"words": 5}, "unknown inputs in config.model.inputs 'word'. Did you mean 'words'?"),
        (
            {"kind": "words", "combine": "mean"},
            {"words": 5},
            "inputs.combine is 'mean'; it must be one of sum, conc",
        ),
        ({"kind": "words", "words": 5}, {"words": 5}, "'words'"),
        (
            {"kind": "frames", "stack": 0},
            {"frames": 1},
            "inputs.stack is 0; it must be an integer, at least 1",
        ),
        (
            {"kind": "frames", "subsampling": 3},
            {"frames": 1},
            "subsampling is 3; it must be one of 1, 2, 4, 8, 16",
        ),
        (
            {"kind": "image", "positions": "rotary"},
            {"image": (5, 7, 2)},
            "positions is 'rotary'; it must be one of",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(block, columns, message):
    with pytest.raises(UserError) as error:
        shaped(build, block, columns, dim=6)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
