"""A CNN and the self-attention network made of it."""

import jax
import numpy as np
import pytest
from flax import nnx

from attention import convolution
from models.convolution_as_attention import PixelAttention, as_attention
from models.images.cnn import CNN
from models.layers.convolution import Conv
from tests.models.parameters import filled, normal

# Odd sizes, so that halving them leaves a rest; two channels, and one, for which Conv has a way of its own.
SIZES = {"num_classes": 5, "widths": (3, 4), "blocks": (1, 1)}


@pytest.mark.parametrize("channels, stem_stride", [(1, 1), (2, 2)])
def test_the_whole_network_gives_the_same_logits(channels, stem_stride):
    cnn = filled(CNN, image_shape=(7, 6, channels), stem_stride=stem_stride, **SIZES)
    images = normal(4, 7, 6, channels)
    both = jax.jit(lambda cnn, images: (cnn(images), as_attention(cnn)(images)))
    expected, logits = (np.asarray(found) for found in both(cnn, images))
    np.testing.assert_allclose(logits, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(logits.argmax(-1), expected.argmax(-1))


def test_no_convolution_is_left_and_the_cnn_stays_as_it_was():
    cnn = filled(CNN, image_shape=(7, 6, 1), **SIZES)
    network = as_attention(cnn)

    def count(model, kind):
        return sum(isinstance(module, kind) for _, module in nnx.iter_modules(model))

    # A stem, two convolutions in each block, and a shortcut where the width changes
    assert (count(cnn, Conv), count(cnn, PixelAttention)) == (6, 0)
    assert (count(network, Conv), count(network, PixelAttention)) == (0, 6)
    # The same numbers, arranged as nine heads
    assert network.stem.value_kernel.shape == (9, 1, 3)
    heads = convolution.heads(cnn.stem.kernel[...], (7, 6))
    np.testing.assert_array_equal(network.stem.value_kernel[...], heads.value_kernel)
