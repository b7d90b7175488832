"""The convolutional decoder: the contract of all, by hand, how far it sees, its gradients to the encoder."""

import math

import jax
import numpy as np

from models.decoders.convolutional import ConvolutionalDecoder
from models.decoders.decoder import Memory
from tests.models.decoders.decoder_contract import check_decoder
from tests.models.parameters import filled, normal, real, run


def test_it_is_a_decoder():
    check_decoder(filled(ConvolutionalDecoder, 4, num_layers=2, hidden_dim=5), 4)


def test_two_places_by_hand():
    decoder = filled(ConvolutionalDecoder, 1, num_layers=1, kernel_size=2, hidden_dim=1)
    (layer,) = decoder.layers
    for linear, kernel in (
        (layer.convolution.taps, [[4, 0], [2, 0]]),  # 2 x before + x
        (decoder.input, [[1]]),
        (layer.query, [[1]]),
        (layer.context, [[3]]),
        (decoder.output, [[2]]),
    ):
        linear.kernel[...] = np.array(kernel, np.float32)
        linear.bias[...] = np.zeros(len(kernel[0]), np.float32)
    one = math.log(3) / math.sqrt(2)  # of which the query is log 3
    memory = Memory(
        np.array([1, 0, 0], np.float32).reshape(1, 3, 1),
        np.array([[True, True, False]]),
        np.array([1, 4, 0], np.float32).reshape(1, 3, 1),
    )
    found = run(decoder, np.array([0, one], np.float32).reshape(1, 2, 1), memory, return_weights=True)
    np.testing.assert_allclose(found.weights[0], [[[[1 / 2, 1 / 2, 0], [3 / 4, 1 / 4, 0]]]], rtol=1e-6)
    # Half of what was convolved and of 3 times what was seen of (1 + 1, 0 + 4), sqrt(1/2) of what came in.
    places = [(0 + 3 * 3) / 2, (one + 3 * 2.5) / 2 + one / math.sqrt(2)]
    np.testing.assert_allclose(found.vectors.reshape(-1), np.multiply(2, places), rtol=1e-6)


def test_a_place_sees_one_place_further_back_with_every_layer_of_size_two():
    decoder = filled(ConvolutionalDecoder, 2, num_layers=2, kernel_size=2, hidden_dim=3)
    memory = Memory(normal(1, 4, 2), np.ones((1, 4), bool), normal(1, 4, 2, seed=2))
    slopes = jax.jit(jax.grad(lambda y: decoder(y, memory).vectors[0, 3].sum()))(normal(1, 6, 2, seed=3))
    np.testing.assert_array_equal(np.flatnonzero(np.abs(slopes[0]).sum(-1)), [1, 2, 3])


def test_gradients_of_all_layers_together_are_half_of_one_to_the_encoder_alone():
    decoder = filled(ConvolutionalDecoder, 2, num_layers=3, hidden_dim=2)
    vectors, inputs, mask = normal(1, 5, 2), normal(1, 5, 2, seed=2), real(4, of=5)

    def source(vectors, inputs):
        return decoder.start(Memory(vectors, mask, inputs), 7).memory[:2]

    both = jax.jit(lambda *x: jax.jvp(source, x, x))
    (keys, values), (keys_slope, values_slope) = both(vectors, inputs)
    vectors, inputs = np.asarray(vectors), np.asarray(inputs)
    np.testing.assert_array_equal(keys[:, :, 0], vectors)
    np.testing.assert_allclose(keys_slope[:, :, 0], vectors / 6, rtol=1e-6)
    # sqrt(4) for the four vectors there are, and sqrt(1/2) for a sum of two.
    np.testing.assert_allclose(values[:, :, 0], math.sqrt(2) * (vectors + inputs), rtol=1e-5)
    np.testing.assert_allclose(values_slope[:, :, 0], math.sqrt(2) * (vectors / 6 + inputs), rtol=1e-5)
