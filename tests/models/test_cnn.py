"""The residual network: shapes, normalisation, and how far it sees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.images import VARIANTS
from models.images.cnn import CNN, ResidualBlock, receptive_field
from tests.models.parameters import filled, normal

SIZES = {"image_shape": (9, 12, 2), "num_classes": 5, "widths": (4, 6), "blocks": (1, 1)}
IMAGES = normal(3, 9, 12, 2)


@pytest.fixture(scope="module")
def cnn():
    """One compiled forward pass `(norm, images, train) -> (logits, statistics)`."""
    models = {norm: nnx.split(filled(CNN, norm=norm, **SIZES), nnx.Param, ...) for norm in ("batch", "group")}

    @jax.jit(static_argnames=("structure", "train"))
    def step(structure, params, statistics, images, train):
        model = nnx.merge(structure, params, statistics)
        return model(images, train=train), nnx.split(model, nnx.Param, ...)[2]

    return lambda norm, images, train: step(*models[norm], images, train)


def features(model, images):
    """What the mean over positions is taken of."""
    x = jax.nn.relu(model.stem_norm(model.stem(images), use_running_average=True))
    for block in model.blocks:
        x = block(x, train=False)
    return x


def test_stages_halve_the_image():
    model = filled(CNN, **SIZES)
    shapes = nnx.eval_shape(features, model, IMAGES).shape
    assert shapes == (3, 5, 6, 6)
    halved = filled(CNN, **SIZES, stem_stride=2)
    assert nnx.eval_shape(features, halved, IMAGES).shape == (3, 3, 3, 6)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_alone_or_in_a_batch_is_the_same_at_evaluation(cnn, norm):
    logits, _ = cnn(norm, IMAGES, False)
    alone, _ = cnn(norm, IMAGES[:1], False)
    assert logits.shape == (3, 5)
    np.testing.assert_allclose(alone[0], logits[0], rtol=1e-4, atol=1e-5)


def test_batch_norm_sees_the_batch_in_training_and_group_norm_does_not(cnn):
    batch_mates_changed = IMAGES.at[1:].multiply(2.0)
    for norm, seen in (("batch", True), ("group", False)):
        logits, _ = cnn(norm, IMAGES, True)
        others, _ = cnn(norm, batch_mates_changed, True)
        assert (np.abs(logits[0] - others[0]).max() > 1e-3) == seen


def test_running_statistics_move_a_tenth_towards_the_batch_in_training_alone(cnn):
    model = filled(CNN, norm="batch", **SIZES)
    stem = np.asarray(model.stem(IMAGES), np.float64)
    _, trained = cnn("batch", IMAGES, True)
    for statistic, of_batch in (("mean", stem.mean((0, 1, 2))), ("var", stem.var((0, 1, 2)))):
        before = np.asarray(getattr(model.stem_norm, statistic)[...])
        np.testing.assert_allclose(
            trained["stem_norm"][statistic][...], 0.9 * before + 0.1 * of_batch, rtol=1e-4, atol=1e-5
        )
    _, evaluated = cnn("batch", IMAGES, False)
    np.testing.assert_array_equal(evaluated["stem_norm"]["mean"][...], model.stem_norm.mean[...])


def test_group_norm_keeps_no_statistics(cnn):
    assert not jax.tree.leaves(cnn("group", IMAGES, True)[1])


@pytest.mark.parametrize("width", [8, 28])
def test_groups_divide_any_width(width):
    """Groups of at most 8 channels, each normalised over its channels and positions."""
    block = filled(ResidualBlock, 2, width, 1, norm="group")
    size = block.norm1.group_size
    assert 1 < size <= 8
    x = normal(1, 4, 4, width, seed=5)
    grouped = np.asarray(x, np.float64).reshape(1, 16, width // size, size)
    centred = grouped - grouped.mean(axis=(1, 3), keepdims=True)
    expected = centred / np.sqrt(centred.var(axis=(1, 3), keepdims=True) + 1e-6)
    expected = expected.reshape(x.shape) * np.asarray(block.norm1.scale[...]) + np.asarray(
        block.norm1.bias[...]
    )
    np.testing.assert_allclose(block.norm1(x), expected, rtol=1e-4, atol=1e-5)


def test_block_is_the_formula_with_a_shortcut_of_1_by_1():
    block, x = filled(ResidualBlock, 2, 3, 2, norm="batch"), normal(1, 4, 4, 2)

    def normalised(norm, y):
        mean, var, scale, bias = (np.asarray(v[...]) for v in (norm.mean, norm.var, norm.scale, norm.bias))
        return (np.asarray(y) - mean) / np.sqrt(var + 1e-5) * scale + bias

    y = np.maximum(normalised(block.norm1, block.conv1(x)), 0)
    y = normalised(block.norm2, block.conv2(jnp.asarray(y)))
    shortcut = np.asarray(x[:, ::2, ::2]) @ np.asarray(block.shortcut.kernel[...])[0, 0]
    np.testing.assert_allclose(block(x, train=False), np.maximum(shortcut + y, 0), rtol=1e-4, atol=1e-5)
    assert filled(ResidualBlock, 2, 2, 1, norm="batch").shortcut is None


@pytest.mark.parametrize(
    "sizes, side",
    [
        ({"widths": (2,), "blocks": (1,)}, 7),
        ({"widths": (2, 3), "blocks": (1, 2)}, 21),
        ({"widths": (2, 3), "blocks": (1, 1), "stem_stride": 2}, 23),
    ],
)
def test_receptive_field_is_where_the_gradient_is(sizes, side):
    # With all positive numbers no path is cut by a relu, and none cancels another.
    model = filled(CNN, image_shape=(32, 32, 1), num_classes=2, positive=True, **sizes)
    image = jnp.abs(normal(1, 32, 32, 1)) + 1.0
    middle = features(model, image).shape[1] // 2
    seen = nnx.jit(jax.grad(lambda image: features(model, image)[0, middle, middle].sum()))(image)
    rows, columns = (np.flatnonzero(np.any(seen[0, :, :, 0] != 0, axis=axis)) for axis in (1, 0))
    assert receptive_field(**sizes) == side
    assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == (side, side)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_sees_the_whole_of_a_pointed_digits_image(variant):
    """From any place in it: 2 * 16 - 1 pixels."""
    assert receptive_field(**VARIANTS[variant]["cnn"]) >= 31


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"blocks": (1,)}, r"widths \(4, 6\) and blocks \(1,\) differ in length"),
        ({"norm": "layer"}, r"norm is 'layer'; it must be one of \('batch', 'group'\)"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CNN(**(SIZES | arguments), rngs=nnx.Rngs(0))
