"""Attention as pure functions on arrays: score, normalise, weighted sum.

    import attention
    out, weights = attention.attend(q, k, v, mask=attention.masks.causal(T, S), return_weights=True)

Arrays are `[*B T N H]`: batch axes, length, heads, head dim. `attend` takes any score and any
normaliser; `dot_product_attention` is the fast form of the usual choice. What they promise, masked
rows, precision, gradients, errors, is the same for every function here.
"""

from attention import masks, normalizers, positions, scores
from attention.dot_product import dot_product_attention
from attention.stages import attend

__all__ = ["attend", "dot_product_attention", "masks", "normalizers", "positions", "scores"]
