"""The Vision Transformer: cutting into patches, positions, pooling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention import positions as position_encodings
from errors import UserError
from models import variants
from models.images.vit import ViT, patches
from tests.models.parameters import arrays, filled, normal

# 2 x 3 patches of 2 x 2 pixels and 3 channels: every size another.
IMAGE, PATCH, DIM, CLASSES = (4, 6, 3), 2, 8, 5
IMAGES = normal(2, *IMAGE)


def vit(**arguments):
    sizes = {"patch_size": PATCH, "dim": DIM, "num_layers": 1, "num_heads": 2}
    return filled(ViT, image_shape=IMAGE, num_classes=CLASSES, **(sizes | arguments))


run = jax.jit(lambda module, x: module(x))


def test_patches_row_by_row():
    image = jnp.arange(24.0).reshape(1, 4, 6, 1)
    np.testing.assert_array_equal(
        patches(image, 2)[0],
        [
            [0, 1, 6, 7],
            [2, 3, 8, 9],
            [4, 5, 10, 11],
            [12, 13, 18, 19],
            [14, 15, 20, 21],
            [16, 17, 22, 23],
        ],
    )


def test_channels_stay_together():
    image = jnp.arange(16.0).reshape(1, 2, 4, 2)
    np.testing.assert_array_equal(
        patches(image, 2)[0], [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    )


@pytest.mark.parametrize("pool", ["mean", "class"])
@pytest.mark.parametrize("positions", ["learned", "none", "sinusoidal"])
def test_logits_are_embed_positions_encoder_pool_head(pool, positions):
    model = vit(pool=pool, positions=positions)
    p = arrays(model)
    x = np.asarray(patches(IMAGES, PATCH)) @ p["embed"]["kernel"] + p["embed"]["bias"]
    if positions == "learned":
        x = x + p["position_table"]
    if positions == "sinusoidal":
        x = x + np.asarray(position_encodings.sinusoidal_2d(2, 3, DIM)).reshape(1, 6, DIM)
    if pool == "class":
        x = np.concatenate([np.repeat(p["class_token"], 2, axis=0), x], axis=1)
    x = np.asarray(run(model.encoder, jnp.asarray(x, jnp.float32)))
    pooled = x[:, 0] if pool == "class" else x.mean(axis=1)
    expected = pooled @ p["head"]["kernel"] + p["head"]["bias"]
    np.testing.assert_allclose(run(model, IMAGES), expected, rtol=1e-4, atol=1e-5)


def swapped(images):
    """The images with their first and last patch exchanged."""
    last = images[:, 2:, 4:]
    return images.at[:, 2:, 4:].set(images[:, :2, :2]).at[:, :2, :2].set(last)


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_without_positions_an_image_is_a_bag_of_patches(pool):
    model = vit(pool=pool, positions="none")
    np.testing.assert_allclose(model(swapped(IMAGES)), model(IMAGES), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_with_positions_it_is_not(positions):
    model = vit(positions=positions)
    assert np.abs(model(swapped(IMAGES)) - model(IMAGES)).max() > 1e-3


def test_patch_size_1_makes_every_pixel_a_token():
    model = vit(patch_size=1, pool="class")
    assert model.embed.in_features == IMAGE[-1]
    logits, weights = model(IMAGES, return_weights=True)
    assert logits.shape == (2, CLASSES)
    assert [w.shape for w in weights] == [(2, 2, 1 + 4 * 6, 1 + 4 * 6)]


def test_weights_on_request_change_no_logits():
    model = vit()
    logits, weights = model(IMAGES, return_weights=True)
    np.testing.assert_array_equal(logits, model(IMAGES))
    assert [w.shape for w in weights] == [(2, 2, 6, 6)]


def test_train_changes_nothing_but_dropout_does():
    model = vit(dropout_rate=0.5)
    np.testing.assert_array_equal(model(IMAGES, train=True), model(IMAGES))
    dropped = jax.jit(lambda seed: model(IMAGES, rngs=nnx.Rngs(dropout=jax.random.key(seed))))
    np.testing.assert_array_equal(dropped(0), dropped(0))
    assert (dropped(0) != dropped(1)).all()


def test_hidden_dim_is_four_times_dim_unless_given():
    assert vit().encoder.blocks[0].feed_forward.input.out_features == 4 * DIM
    assert vit(hidden_dim=11).encoder.blocks[0].feed_forward.input.out_features == 11


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"patch_size": 3}, "patch_size 3 does not tile an image of 4 x 6 pixels"),
        ({"pool": "max"}, r"pool is 'max'; it must be one of \('mean', 'class'\)"),
        ({"positions": "rotary"}, "positions is 'rotary'; it must be one of"),
        ({"num_heads": 5}, "dim 32 is not divisible by num_heads 5"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(fields, message):
    model = {"kind": "vit", "variant": "xs", "patch_size": 2} | fields
    with pytest.raises(UserError, match="config.model: " + message) as error:
        variants.build(model, image_shape=IMAGE, num_classes=CLASSES, rngs=nnx.Rngs(0))
    assert "\n" not in str(error.value)
