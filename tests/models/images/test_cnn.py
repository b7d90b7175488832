"""The residual network: shapes, normalisation, and how far it sees."""

import jax
import numpy as np
import pytest
from flax import nnx

from models.images.cnn import CNN, ResidualBlock, receptive_field
from tests.models.parameters import filled, normal, run, shaped

SIZES = {"image_shape": (9, 12, 2), "num_classes": 5, "widths": (4, 6), "blocks": (1, 1)}
IMAGES = np.asarray(normal(3, 9, 12, 2))


@jax.jit
def evaluate(cnn, images):
    return cnn(images), cnn.stem_norm


@jax.jit
def train(cnn, images):
    return cnn(images, train=True), nnx.split(cnn, nnx.Param, ...)[2], cnn.stem(images)


def test_stages_halve_the_image():
    made = [shaped(CNN, **SIZES, stem_stride=stride) for stride in (1, 2)]
    shapes = [jax.eval_shape(lambda cnn: cnn.features(IMAGES), cnn).shape for cnn in made]
    assert shapes == [(3, 5, 6, 6), (3, 3, 3, 6)]


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_company_is_seen_in_training_alone_and_by_batch_norm_alone(norm):
    cnn = filled(CNN, norm=norm, **SIZES)
    others = IMAGES * np.array([1, 2, 2], np.float32).reshape(3, 1, 1, 1)
    logits, after = evaluate(cnn, IMAGES)
    assert logits.shape == (3, 5)
    np.testing.assert_allclose(evaluate(cnn, others)[0][0], logits[0], rtol=1e-4, atol=1e-5)
    trained, statistics, stem = train(cnn, IMAGES)
    seen = np.abs(trained[0] - train(cnn, others)[0][0]).max() > 1e-3
    assert seen == (norm == "batch")
    if norm == "group":
        assert not jax.tree.leaves(statistics)
        return
    # Running statistics move a tenth towards the batch, in training alone.
    stem = np.asarray(stem, np.float64)
    for name, of_batch in (("mean", stem.mean((0, 1, 2))), ("var", stem.var((0, 1, 2)))):
        before = np.asarray(getattr(cnn.stem_norm, name)[...])
        np.testing.assert_allclose(
            statistics["stem_norm"][name][...], 0.9 * before + 0.1 * of_batch, rtol=1e-4, atol=1e-5
        )
        np.testing.assert_array_equal(getattr(after, name)[...], before)


@pytest.mark.parametrize("width", [8, 28])
def test_groups_divide_any_width(width):
    """Groups of at most 8 channels, each normalised over its channels and positions."""
    norm = filled(ResidualBlock, 2, width, 1, norm="group").norm1
    size = norm.group_size
    assert 1 < size <= 8
    x = normal(1, 4, 4, width, seed=5)
    grouped = np.asarray(x, np.float64).reshape(1, 16, width // size, size)
    centred = grouped - grouped.mean(axis=(1, 3), keepdims=True)
    expected = (centred / np.sqrt(centred.var(axis=(1, 3), keepdims=True) + 1e-6)).reshape(x.shape)
    expected = expected * np.asarray(norm.scale[...]) + np.asarray(norm.bias[...])
    np.testing.assert_allclose(run(norm, x), expected, rtol=1e-4, atol=1e-5)


def test_block_is_the_formula_with_a_shortcut_of_1_by_1():
    block, x = filled(ResidualBlock, 2, 3, 2, norm="batch"), normal(1, 4, 4, 2)

    def normalised(norm, y):
        mean, var, scale, bias = (np.asarray(v[...]) for v in (norm.mean, norm.var, norm.scale, norm.bias))
        return (np.asarray(y) - mean) / np.sqrt(var + 1e-5) * scale + bias

    y = np.maximum(normalised(block.norm1, run(block.conv1, x)), 0)
    y = normalised(block.norm2, run(block.conv2, y))
    shortcut = np.asarray(x)[:, ::2, ::2] @ np.asarray(block.shortcut.kernel[...])[0, 0]
    found = run(block, x, train=False)
    np.testing.assert_allclose(found, np.maximum(shortcut + y, 0), rtol=1e-4, atol=1e-5)
    assert shaped(ResidualBlock, 2, 2, 1, norm="batch").shortcut is None


@pytest.mark.parametrize(
    "sizes, side",
    [
        ({"widths": (2, 3), "blocks": (1, 2)}, 21),
        ({"widths": (2, 3), "blocks": (1, 1), "stem_stride": 2}, 23),
    ],
)
def test_receptive_field_is_where_the_gradient_is(sizes, side):
    # With all positive numbers no path is cut by a relu, and none cancels another.
    model = filled(CNN, image_shape=(32, 32, 1), num_classes=2, positive=True, **sizes)
    image = np.abs(normal(1, 32, 32, 1)) + np.float32(1)

    def middle(image):
        found = model.features(image)
        return found[0, found.shape[1] // 2, found.shape[1] // 2].sum()

    seen = jax.jit(jax.grad(middle))(image)
    rows, columns = (np.flatnonzero(np.any(seen[0, :, :, 0] != 0, axis=axis)) for axis in (1, 0))
    assert receptive_field(**sizes) == side
    assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == (side, side)


def test_the_field_of_a_stage_by_hand():
    """A stem of 3 and two more of each convolution."""
    assert receptive_field((2,), (1,)) == 7


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"widths \(4, 6\) and blocks \(1,\) differ in length"):
        CNN(**(SIZES | {"blocks": (1,)}), rngs=nnx.Rngs(0))
