"""Softmax attention by cuDNN's fused kernel on NVIDIA GPUs, for what that kernel can honour.

The kernel computes in half precision with float32 accumulation and stores no scores. Its gradient
is a custom reverse-mode rule: for `jax.jvp` and `jax.jacfwd` use `implementation="dense"`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.internals import unseen


def refusal(query: Array, value: Array, **arguments: Any) -> str | None:
    """Why the kernel cannot honour this call, or None if it can.

    Args:
        query: `[*B T N H]`.
        value: `[*B S K V]`.
        **arguments: every other argument of `dot_product_attention` that restricts the kernel.
    """
    width = query.shape[-1]
    window = arguments["window"]
    if not _on_nvidia():
        return f"the {jax.default_backend()} backend (it needs an NVIDIA GPU)"
    if query.ndim != 4:
        return f"a query of rank {query.ndim}, {query.shape} (it takes [B T N H])"
    if query.dtype not in (jnp.bfloat16, jnp.float16):
        return f"dtype {query.dtype} (it takes bfloat16 and float16)"
    if value.shape[-1] != width:
        return f"a value width other than the head dim, query {query.shape}, value {value.shape}"
    if width % 8 or not 0 < width <= 128:
        return f"head dim {width} (it takes multiples of 8 up to 128)"
    if 0 in query.shape or 0 in value.shape:
        return f"empty arrays, query {query.shape}, value {value.shape}"
    # It takes masks only as half-precision biases, which cannot make a fully masked row 0, and
    # returns the gradient of a bias for some of its shapes only.
    for name in ("mask", "bias", "query_offset"):
        if arguments[name] is not None:
            return name
    for name in ("dropout_rate", "return_weights", "return_logsumexp"):
        if arguments[name]:
            return f"{name}={arguments[name]}"
    if isinstance(window, tuple) and window[1] and not arguments["is_causal"]:
        return f"window={window} (without is_causal it takes only (left, 0))"
    return None


def attention(
    query: Float[Array, "B T N H"],
    key: Float[Array, "B S K H"],
    value: Float[Array, "B S K H"],
    *,
    is_causal: bool,
    window: tuple[int, int] | None,
    scale: float,
) -> Float[Array, "B T N H"]:
    """Attention from arguments that `refusal` has let pass."""
    # A window that ends at the query itself is causal, and a causal one shows nothing after it.
    left = None if window is None else window[0]
    if not is_causal and left is None:
        return _kernel(query, key, value, scale=scale)
    finite = unseen.take_out_causal(query, key, value, left)
    out = _kernel(
        finite.query,
        finite.key,
        finite.value,
        scale=scale,
        is_causal=True,
        local_window_size=None if left is None else (left, 0),
    )
    return jnp.swapaxes(finite.restore_sums(jnp.swapaxes(out, -2, -3)), -2, -3)


def _on_nvidia() -> bool:
    return jax.default_backend() == "gpu" and "cuda" in jax.devices()[0].client.platform_version


def _kernel(query: Array, key: Array, value: Array, **options: Any) -> Array:
    try:
        return jax.nn.dot_product_attention(query, key, value, implementation="cudnn", **options)
    except (NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"implementation='cudnn' cannot be honoured on this machine for query {query.shape}, "
            f"key {key.shape}: {error}"
        ) from error
