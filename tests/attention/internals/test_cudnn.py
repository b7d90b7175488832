"""What stands around the kernel, tested with JAX's portable form in the kernel's place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import dot_product_attention
from attention.internals import cudnn
from tests.attention.mechanism import changed, draw

B, N, K = 3, 4, 2


@pytest.fixture
def gpu(monkeypatch):
    def kernel(query, key, value, **options):
        with jax.numpy_dtype_promotion("standard"):
            return jax.nn.dot_product_attention(query, key, value, implementation="xla", **options)

    dot_product_attention.clear_cache()
    monkeypatch.setattr(cudnn, "_on_nvidia", lambda: True)
    monkeypatch.setattr(cudnn, "_kernel", kernel)
    yield
    dot_product_attention.clear_cache()


def half(T=6, H=8, V=8, dtype=jnp.bfloat16):
    return draw((B, T, N, H), (B, T, K, H), (B, T, K, V), dtype=dtype)


def test_needs_an_nvidia_gpu():
    with pytest.raises(ValueError, match="'cudnn' cannot honour the cpu backend"):
        dot_product_attention(*half(), implementation="cudnn")


@pytest.mark.parametrize(
    "changes, options, named",
    [
        ({"dtype": jnp.float32}, {}, "dtype float32"),
        ({"V": 16}, {}, r"a value width .*\(3, 6, 4, 8\).*\(3, 6, 2, 16\)"),
        ({"H": 6, "V": 6}, {}, "head dim 6"),
        ({"H": 256, "V": 256}, {}, "head dim 256"),
        ({"T": 0}, {}, "empty arrays"),
        ({}, {"mask": np.ones((1, 1, 1, 1), bool)}, "mask"),
        ({}, {"bias": np.full((1, 1, 1, 1), -np.inf)}, "bias"),
        ({}, {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}, "dropout_rate=0.5"),
        ({}, {"is_causal": True, "query_offset": 0}, "query_offset"),
        ({}, {"window": (2, 1)}, r"window=\(2, 1\)"),
        ({}, {"return_weights": True}, "return_weights"),
        ({}, {"return_logsumexp": True}, "return_logsumexp"),
    ],
)
def test_refuses_by_name_and_auto_goes_round(gpu, monkeypatch, changes, options, named):
    arrays = half(**changes)
    with pytest.raises(ValueError, match=f"'cudnn' cannot honour {named}"):
        dot_product_attention(*arrays, implementation="cudnn", **options)
    monkeypatch.setattr(cudnn, "_kernel", lambda *arrays, **options: pytest.fail("used cudnn"))
    jax.eval_shape(lambda *arrays: dot_product_attention(*arrays, **options), *arrays)


def test_takes_one_batch_axis(gpu):
    with pytest.raises(ValueError, match=r"query of rank 3, \(6, 4, 8\)"):
        dot_product_attention(*(x[0] for x in half()), implementation="cudnn")


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [None, (2, 0), (2, 3)])
def test_equals_dense(gpu, is_causal, window):
    if window == (2, 3) and not is_causal:
        pytest.skip("refused")
    query, key, value = half()
    options = {"is_causal": is_causal, "window": window}
    if is_causal or window:
        key, value = changed(key, np.s_[0, 3], np.nan), changed(value, np.s_[1, 4, 1], np.inf)
        query = changed(query, np.s_[2, 5], np.nan)
    out = dot_product_attention(query, key, value, implementation="cudnn", **options)
    expected = dot_product_attention(query, key, value, implementation="dense", **options)
    assert out.dtype == jnp.bfloat16
    np.testing.assert_allclose(*(x.astype(jnp.float32) for x in (out, expected)), atol=0.02)


def test_auto_takes_it(gpu, monkeypatch):
    seen = []
    monkeypatch.setattr(cudnn, "_kernel", lambda q, k, v, **o: seen.append(o) or q)
    jax.eval_shape(lambda *arrays: dot_product_attention(*arrays, is_causal=True), *half())
    assert seen == [{"scale": 8**-0.5, "is_causal": True, "local_window_size": None}]


def test_a_kernel_that_is_missing_is_a_value_error(monkeypatch):
    dot_product_attention.clear_cache()
    monkeypatch.setattr(cudnn, "_on_nvidia", lambda: True)
    with pytest.raises(ValueError, match="cannot be honoured on this machine"):
        dot_product_attention(*half(), implementation="cudnn")
