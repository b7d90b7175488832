"""Attention as pure functions on arrays: score, normalise, weighted sum.

    import attention
    out, weights = attention.attend(q, k, v, mask=attention.masks.causal(T, S), return_weights=True)

Arrays are `[*B T N H]`: batch axes, length, heads, head dim. `attend` takes any score and any
normaliser; `dot_product_attention` is the fast form of the usual choice; every `..._attention` takes the
same first three arguments and either equals `attend` under some mask, at less cost, or approximates it.
What they promise, masked rows, precision, gradients, errors, is the same for every function here.
`attention.catalogue` lists them all.
"""

from attention import (
    co_attention,
    complexity,
    convolution,
    hard,
    local,
    localness,
    masks,
    normalizers,
    pooling,
    positions,
    relative_positions,
    scores,
    synthesizer,
)
from attention.attention_free import attention_free_full, attention_free_local
from attention.banded import banded_attention
from attention.block_sparse import bigbird_attention, longformer_attention
from attention.blockwise import blockwise_attention
from attention.cosformer import cosformer_attention
from attention.dot_product import dot_product_attention
from attention.graph import gat_attention, graph_attention
from attention.linear import linear_attention
from attention.linformer import linformer_attention
from attention.nystromformer import nystromformer_attention
from attention.performer import performer_attention
from attention.reformer import reformer_attention
from attention.sinkhorn import sinkhorn_attention
from attention.stages import attend
from attention.strided import dilated_attention, strided_attention

__all__ = [
    "attend",
    "attention_free_full",
    "attention_free_local",
    "banded_attention",
    "bigbird_attention",
    "blockwise_attention",
    "co_attention",
    "complexity",
    "convolution",
    "cosformer_attention",
    "dilated_attention",
    "dot_product_attention",
    "gat_attention",
    "graph_attention",
    "hard",
    "linear_attention",
    "linformer_attention",
    "local",
    "localness",
    "longformer_attention",
    "masks",
    "normalizers",
    "nystromformer_attention",
    "performer_attention",
    "pooling",
    "positions",
    "reformer_attention",
    "relative_positions",
    "scores",
    "sinkhorn_attention",
    "strided_attention",
    "synthesizer",
]
