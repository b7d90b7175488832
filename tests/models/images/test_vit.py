"""The Vision Transformer: cutting into patches, positions, pooling."""

import jax
import numpy as np
import pytest

from attention import positions as position_encodings
from models.images.vit import ViT, patches
from tests.models.parameters import arrays, filled, normal, program, run, shaped

# 2 x 3 patches of 2 x 2 pixels and 3 channels: every size another.
IMAGE, PATCH, DIM, CLASSES = (4, 6, 3), 2, 8, 5
IMAGES = np.asarray(normal(2, *IMAGE))


def vit(make=filled, **arguments):
    sizes = {"patch_size": PATCH, "dim": DIM, "num_layers": 1, "num_heads": 2, "hidden_dim": 7}
    return make(ViT, image_shape=IMAGE, num_classes=CLASSES, **(sizes | arguments))


def test_patches_row_by_row():
    image = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1)
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
    image = np.arange(16, dtype=np.float32).reshape(1, 2, 4, 2)
    np.testing.assert_array_equal(
        patches(image, 2)[0], [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    )


def swapped(images):
    """The images with their first and last patch exchanged."""
    other = images.copy()
    other[:, 2:, 4:], other[:, :2, :2] = images[:, :2, :2], images[:, 2:, 4:]
    return other


@pytest.mark.parametrize(
    "pool, positions", [("mean", "learned"), ("class", "sinusoidal"), ("mean", "none"), ("class", "none")]
)
def test_logits_are_embed_positions_encoder_pool_head(pool, positions):
    """Without positions an image is a bag of patches, with them it is not; weights change no logits."""
    model = vit(pool=pool, positions=positions)
    p = arrays(model)
    x = np.asarray(patches(IMAGES, PATCH)) @ p["embed"]["kernel"] + p["embed"]["bias"]
    if positions == "learned":
        x = x + p["position_table"]
    if positions == "sinusoidal":
        x = x + np.asarray(position_encodings.sinusoidal_2d(2, 3, DIM)).reshape(1, 6, DIM)
    if pool == "class":
        x = np.concatenate([np.repeat(p["class_token"], 2, axis=0), x], axis=1)

    @jax.jit
    def both(model, x, images):
        return model.encoder(x), model(images), *model(images, return_weights=True)

    encoded, logits, same, weights = both(model, x.astype(np.float32), IMAGES)
    encoded = np.asarray(encoded)
    pooled = encoded[:, 0] if pool == "class" else encoded.mean(axis=1)
    expected = pooled @ p["head"]["kernel"] + p["head"]["bias"]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(same, logits)
    tokens = 6 + (pool == "class")
    assert [w.shape for w in weights] == [(2, 2, tokens, tokens)]
    other = both(model, x.astype(np.float32), swapped(IMAGES))[1]
    assert np.allclose(other, logits, rtol=1e-4, atol=1e-5) == (positions == "none")


def test_patch_size_1_makes_every_pixel_a_token():
    model = vit(shaped, patch_size=1, pool="class")
    assert model.embed.in_features == IMAGE[-1]
    logits, weights = jax.eval_shape(lambda model: model(IMAGES, return_weights=True), model)
    assert logits.shape == (2, CLASSES)
    assert [w.shape for w in weights] == [(2, 2, 1 + 4 * 6, 1 + 4 * 6)]


def test_train_changes_nothing_but_dropout_does():
    model = vit(shaped, dropout_rate=0.5)
    assert program(model, IMAGES, train=True) == program(model, IMAGES) == program(vit(shaped), IMAGES)
    assert "random_bits" in program(model, IMAGES, seed=0)


def test_a_mechanism_works_by_word():
    """Padding to blocks and the like, inside a compiled model."""
    model = vit(attention={"kind": "banded", "window": (1, 1)}, norm="post", num_kv_heads=1)
    assert np.isfinite(run(model, IMAGES)).all()
