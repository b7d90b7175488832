import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attention
from attention import convolution, masks, scores
from tests.attention.mechanism import changed

# Input, kernel and options: even and odd kernels, strides that leave a rest, paddings wider than the kernel.
CASES = {
    "1-D, odd, same": ((7,), (3,), {}),
    "1-D, even, same": ((7,), (4,), {}),
    "1-D, even, stride": ((8,), (2,), {"strides": 3}),
    "1-D, valid": ((7,), (4,), {"padding": "VALID"}),
    "1-D, causal": ((7,), (3,), {"padding": ((2, 0),)}),
    "1-D, dilated": ((9,), (3,), {"dilation": 3}),
    "1-D, wide padding": ((3,), (2,), {"padding": ((4, 5),), "strides": 2}),
    "1-D, cropped": ((7,), (3,), {"padding": ((-1, 0),)}),
    "2-D, same": ((4, 5), (3, 3), {}),
    "2-D, even, stride": ((5, 6), (2, 4), {"strides": (2, 3)}),
    "2-D, 1 x 1, stride": ((5, 4), (1, 1), {"strides": 2}),
    "2-D, valid, dilated": ((6, 7), (3, 2), {"padding": "VALID", "dilation": (2, 3)}),
    "2-D, explicit": ((4, 3), (3, 2), {"padding": ((2, 0), (1, 3)), "strides": (1, 2), "dilation": 2}),
    "3-D": ((3, 2, 4), (2, 1, 3), {"strides": (1, 1, 2)}),
    "kernel larger than the input": ((2,), (3,), {"padding": "VALID"}),
}


def draw(*shapes, seed=0, dtype=jnp.float64):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def lax_convolution(x, kernel, strides=1, padding="SAME", dilation=1):
    axes = kernel.ndim - 2
    strides, dilation = ((s,) * axes if isinstance(s, int) else s for s in (strides, dilation))
    spatial = "XYZ"[:axes]
    numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    return jax.lax.conv_general_dilated(
        x, kernel, strides, padding, rhs_dilation=dilation, dimension_numbers=numbers
    )


@pytest.mark.parametrize("case", CASES)
def test_equals_the_convolution(case, x64):
    size, taps, options = CASES[case]
    x, kernel = draw((2, *size, 3), (*taps, 3, 4))
    # exp(-100) of a neighbour is below what float64 resolves.
    alpha = 100.0 if case == "2-D, even, stride" else math.inf

    @jax.jit
    def both(x, kernel):
        out = convolution.convolve(x, kernel, **options, alpha=alpha)
        return out, lax_convolution(x, kernel, **options)

    out, expected = both(x, kernel)
    assert out.shape == expected.shape
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_equals_loops(x64):
    x, kernel = draw((5, 4, 2), (3, 2, 2, 3))
    expected = np.zeros((3, 2, 3))
    for i, j, r, c in np.ndindex(3, 2, 3, 2):
        row, column = 2 * i - 1 + r, 2 * j - 0 + c
        if 0 <= row < 5 and 0 <= column < 4:
            expected[i, j] += np.asarray(x)[row, column] @ np.asarray(kernel)[r, c]
    out = convolution.convolve(x, kernel, strides=2)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_by_hand():
    # Kernel (1, 10, 100) on 1, 2, 3, 4, a zero at either end
    x, kernel = np.arange(1.0, 5.0)[:, None], jnp.array([1.0, 10.0, 100.0])[:, None, None]
    assert convolution.convolve(x, kernel)[:, 0].tolist() == [210, 321, 432, 43]
    assert convolution.convolve(x, kernel, strides=2)[:, 0].tolist() == [321, 43]
    assert convolution.convolve(x, kernel, padding="VALID")[:, 0].tolist() == [321, 432]


def test_each_head_picks_one_key_and_none_in_the_padding():
    made = convolution.heads(np.ones((3, 1, 1)), (4,))
    out, weights = attention.attend(
        made.query, made.key, np.ones((4, 3, 1)), score=scores.dot, mask=made.mask, return_weights=True
    )
    left, own, right = np.eye(4, k=-1), np.eye(4), np.eye(4, k=1)
    np.testing.assert_array_equal(weights, [left, own, right])
    np.testing.assert_array_equal(out[..., 0], weights.sum(-1).T)


def test_scores_are_the_quadratic_encoding(x64):
    made = convolution.heads(np.ones((3, 2, 1, 1)), (4, 5), strides=2, alpha=1.5)
    given = np.asarray(scores.dot(made.query, made.key))
    places = np.array(list(np.ndindex(4, 5)))
    for n, (r, c) in enumerate(np.ndindex(3, 2)):
        for t, (i, j) in enumerate(np.ndindex(2, 3)):
            # 4 rows, stride 2, 3 taps: SAME pads one below; 5 columns, 2 taps: one at the right.
            centre = np.array([2 * i + r, 2 * j + c])
            quadratic = -1.5 * ((places - centre) ** 2).sum(-1)
            np.testing.assert_allclose(np.ptp(given[n, t] - quadratic), 0, atol=1e-12)


def test_a_finite_alpha_errs_by_its_exponential(x64):
    x, kernel = draw((2, 6, 6, 3), (3, 3, 3, 4))
    expected = lax_convolution(x, kernel)
    errors = [
        np.abs(convolution.convolve(x, kernel, alpha=alpha) - expected).max()
        for alpha in (6.0, 7.0, 8.0, 16.0)
    ]
    # Four neighbours with exp(-alpha) of the weight each: the error falls by e for each 1 of alpha.
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], math.e, rtol=0.02)
    assert 1e-3 < errors[0] / math.exp(-6) / np.abs(expected).max() < 10
    assert errors[3] < 1e-4


@pytest.mark.parametrize("alpha", [math.inf, 40.0])
def test_gradients_are_those_of_the_convolution(alpha, x64):
    x, kernel = draw((2, 5, 4, 3), (3, 2, 3, 4))
    tangents = tuple(draw(x.shape, kernel.shape, seed=1))

    def everything(convolve):
        def gradients(*arrays):
            return jax.grad(lambda *a: jnp.sum(jnp.sin(convolve(*a))), (0, 1))(*arrays)

        return jax.jit(partial(jax.jvp, gradients))(
            (x, kernel), tangents
        )  # gradient and Hessian-vector product

    ours = everything(partial(convolution.convolve, strides=2, alpha=alpha))
    expected = everything(partial(lax_convolution, strides=2))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-11), ours, expected)


def test_a_nan_pixel_shows_where_the_kernel_sees_it_and_nowhere_else():
    x, kernel = draw((2, 6, 6, 3), (3, 3, 3, 4), dtype=jnp.float32)
    clean = convolution.convolve(x, kernel)
    dirty = np.asarray(convolution.convolve(changed(x, np.s_[1, 2, 3], np.nan), kernel))
    spoilt = np.zeros(dirty.shape, bool)
    spoilt[1, 1:4, 2:5] = True
    np.testing.assert_array_equal(np.isnan(dirty), spoilt)
    np.testing.assert_array_equal(dirty[~spoilt], np.asarray(clean)[~spoilt])


def test_batch_axes_and_batch_mates():
    x, kernel = draw((2, 3, 5, 2), (2, 2, 4), dtype=jnp.float32)
    whole = convolution.convolve(x, kernel)
    assert whole.shape == (2, 3, 5, 4)
    np.testing.assert_array_equal(convolution.convolve(changed(x, np.s_[1:], 7.0), kernel)[0], whole[0])
    np.testing.assert_allclose(
        jax.vmap(lambda x: convolution.convolve(x, kernel))(x), whole, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(convolution.convolve(x[0, 0], kernel), whole[0, 0], rtol=1e-5, atol=1e-6)
    assert convolution.convolve(x[:, :, :0], kernel).shape == (2, 3, 0, 4)
    assert convolution.convolve(x[:0], kernel).shape == (0, 3, 5, 4)


def test_bfloat16_rounds_once():
    x, kernel = draw((2, 6, 3), (3, 3, 4), dtype=jnp.bfloat16)
    exact = lax_convolution(x.astype(jnp.float32), kernel.astype(jnp.float32))
    out = convolution.convolve(x, kernel)
    assert out.dtype == jnp.bfloat16
    np.testing.assert_array_equal(out, exact.astype(jnp.bfloat16))


def test_exports_for_accelerators():
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((2, 6, 6, 3), (3, 3, 3, 4))]
    program = jax.jit(partial(convolution.convolve, strides=2))
    exported = jax.export.export(program, platforms=("cuda", "tpu"))(*arrays)
    assert exported.out_avals[0].shape == (2, 3, 3, 4)


@pytest.mark.parametrize("window, layers", [((1, 1), 3), ((2, 0), 2), ((0, 3), 1), ((2, 1), 0)])
def test_receptive_field_is_where_the_gradient_is(window, layers):
    left, right = convolution.receptive_field(window, layers)

    def middle(x):
        for _ in range(layers):
            mask = masks.band(15, 15, window, batch_dims=0)
            x = attention.attend(x, x, x, mask=mask)
        return x[7].sum()

    seen = np.flatnonzero(jax.jit(jax.grad(middle))(np.ones((15, 1, 1)))[:, 0, 0])
    assert (7 - seen.min(), seen.max() - 7) == (left, right)


@pytest.mark.parametrize("size", [3, 5])
def test_a_stack_of_convolutions_sees_what_as_many_banded_heads_see(size):
    def middle(x):
        for _ in range(3):
            x = convolution.convolve(x, np.ones((size, 1, 1)))
        return x[9, 0]

    seen = np.flatnonzero(jax.jit(jax.grad(middle))(np.ones((19, 1)))[:, 0])
    left, right = convolution.receptive_field((size // 2, size // 2), 3)
    assert (9 - seen.min(), seen.max() - 9) == (left, right)


@pytest.mark.parametrize(
    "x, kernel, options, words",
    [
        ((2, 7, 3), (3, 4, 5), {}, ["(2, 7, 3)", "(3, 4, 5)"]),
        ((7, 3), (3, 3, 3, 5), {}, ["(7, 3)", "(3, 3, 3, 5)"]),
        ((7, 3), (3, 5), {}, ["(7, 3)", "(3, 5)"]),
        ((7, 3), (3, 3, 5), {"padding": "FULL"}, ["'FULL'", "SAME"]),
        ((7, 3), (3, 3, 5), {"padding": ((1, 1), (0, 0))}, ["pair for each axis", "(7,)"]),
        ((7, 3), (3, 3, 5), {"strides": 0}, ["strides", "(0,)"]),
        ((7, 3), (3, 3, 5), {"dilation": (1, 2)}, ["dilation", "(1, 2)"]),
        ((7, 3), (3, 3, 5), {"alpha": 0.0}, ["alpha", "0.0"]),
        ((7, 3), (3, 3, 5), {"alpha": math.nan}, ["alpha", "nan"]),
    ],
)
def test_what_does_not_fit_is_refused(x, kernel, options, words, untyped):
    with pytest.raises(ValueError) as error:
        convolution.convolve(np.ones(x), np.ones(kernel), **options)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_wrong_windows_and_layers_are_refused(untyped):
    with pytest.raises(TypeError, match="pair"):
        convolution.receptive_field(3)
    with pytest.raises(ValueError, match="layers"):
        convolution.receptive_field((1, 1), -1)
