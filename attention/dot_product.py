"""The fast front door: softmax attention on scaled dot products, by the best implementation."""

import math
from typing import Literal, NamedTuple

import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attention import masks
from attention.blockwise import blockwise_attention
from attention.internals import contract, cudnn
from attention.internals.dense import dense

IMPLEMENTATIONS = ("auto", "dense", "blockwise", "cudnn")


class Threshold(NamedTuple):
    """How many scores there must be for "auto" to go block by block."""

    per_head: int
    in_all: int


# On a CPU blocks are quicker once the scores no longer fit in its caches; below, storing them costs less
# than walking through them, and with short sequences walking through the heads costs most. Measured on two
# cores with 1 MiB of second-level cache each and 32 MiB of third, float32, by python -m benchmarks.attention:
# dense takes half the time of blocks at 256 positions, and 1.2 to 1.5 times as much at 512 and 577.
# Elsewhere the limit is one of memory, 1 GiB of float32 scores, and not measured.
THRESHOLDS = {"cpu": Threshold(per_head=2**18, in_all=2**23)}
ELSEWHERE = Threshold(per_head=2**19, in_all=2**28)


@contract.primitive(
    "is_causal",
    "window",
    "scale",
    "dropout_rate",
    "return_weights",
    "return_logsumexp",
    "implementation",
)
def dot_product_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    is_causal: bool = False,
    query_offset: int | Int[Array, "..."] | None = None,
    window: tuple[int, int] | None = None,
    scale: float | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
    return_logsumexp: bool = False,
    implementation: Literal["auto", "dense", "blockwise", "cudnn"] = "auto",
) -> Float[Array, "*B T N V"] | tuple[Array, ...]:
    """Softmax attention, `out = softmax(scale * Q K^T + bias) V`, over the visible keys.

    Equal to `attend(query, key, value, mask=..., bias=...)`, and quicker. Head n of the query reads
    key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis.
        is_causal: show each query only the keys up to its own position.
        query_offset: position of the first query among the keys, one integer or one per batch
            element `[*B]`; needed with `is_causal` or `window` where T differs from S.
        window: `(left, right)`, show only so many keys on each side of the query's own position,
            which is always included: (3, 0) shows four keys.
        scale: factor on the dot products, `1 / sqrt(H)` if None. A Python number; put a learned one
            on the query.
        dropout_rate: share of the weights set to 0, in [0, 1).
        dropout_key: a key of `jax.random.key`, needed where the rate is above 0. At rate 0 it drops
            nothing.
        return_weights: return the weights, before dropout, as well.
        return_logsumexp: return the logarithm of each row's sum of exponentials as well.
        implementation: "dense" stores all scores; "blockwise" stores none, and so has no weights to
            drop or return; "cudnn" is the fused GPU kernel (no mask, bias or dropout, half precision
            only); "auto" takes cudnn wherever it can do what is asked, then blockwise where there
            are so many scores that it is quicker or that they should not be stored, else dense. A
            choice that cannot be honoured is an error. All but cudnn can be differentiated to any
            order in either mode; where "auto" would take cudnn, ask for another by name to use
            `jax.jvp`.

    Returns:
        The output `[*B T N V]` in the query's dtype; or a tuple of the output, the weights
        `[*B N T S]` and the log-sum-exp `[*B N T]`, of those that were asked for, both in float32
        or wider. A row that sees no key has output 0, weights 0 and log-sum-exp -inf.

    Raises:
        ValueError: shapes that do not fit, or an argument out of its range or ambiguous.
        TypeError: dtypes that differ, or an argument of the wrong kind.

    Vaswani et al. (2017), "Attention is all you need".
    """
    shape = contract.check_attention(
        query, key, value, mask=mask, bias=bias, dropout_rate=dropout_rate, dropout_key=dropout_key
    )
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(f"unknown implementation {implementation!r}; allowed: {', '.join(IMPLEMENTATIONS)}")
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    contract.check_band(shape, is_causal, query_offset, window)

    if implementation in ("auto", "cudnn"):
        refusal = cudnn.refusal(
            query,
            value,
            mask=mask,
            bias=bias,
            is_causal=is_causal,
            query_offset=query_offset,
            window=window,
            dropout_rate=dropout_rate,
            return_weights=return_weights,
            return_logsumexp=return_logsumexp,
        )
        if refusal is None:
            return cudnn.attention(query, key, value, is_causal=is_causal, window=window, scale=scale)
        if implementation == "cudnn":
            raise ValueError(f"implementation='cudnn' cannot honour {refusal}; use 'dense' or 'blockwise'")

    if implementation in ("auto", "blockwise"):
        refusal = _blockwise_refusal(dropout_rate, return_weights)
        if refusal is None and (implementation == "blockwise" or _blockwise_pays(shape)):
            return blockwise_attention(
                query,
                key,
                value,
                mask=mask,
                bias=bias,
                is_causal=is_causal,
                query_offset=query_offset,
                window=window,
                scale=scale,
                return_logsumexp=return_logsumexp,
            )
        if implementation == "blockwise":
            raise ValueError(f"implementation='blockwise' cannot honour {refusal}; use 'dense'")

    positions = _positions_mask(shape, is_causal, query_offset, window)
    if positions is not None:
        mask = positions if mask is None else mask & positions
    result = dense(
        query,
        key,
        value,
        mask,
        bias,
        scale=scale,
        dropout_rate=dropout_rate,
        dropout_key=dropout_key,
    )
    wanted = [True, return_weights, return_logsumexp]
    returned = tuple(part for part, want in zip(result, wanted, strict=True) if want)
    return returned if len(returned) > 1 else returned[0]


def _blockwise_refusal(dropout_rate: float, return_weights: bool) -> str | None:
    if dropout_rate > 0:
        return f"dropout_rate={dropout_rate}"
    return "return_weights=True" if return_weights else None


def _blockwise_pays(scores: contract.Shape) -> bool:
    threshold = THRESHOLDS.get(jax.default_backend(), ELSEWHERE)
    return math.prod(scores[-2:]) >= threshold.per_head and math.prod(scores) >= threshold.in_all


def _positions_mask(
    scores: contract.Shape,
    is_causal: bool,
    query_offset: int | Array | None,
    window: tuple[int, int] | None,
) -> Bool[Array, "*#B 1 T S"] | None:
    *batch, _, T, S = scores
    mask = masks.causal(T, S, query_offset, batch_dims=len(batch)) if is_causal else None
    if window is not None:
        band = masks.band(T, S, window, query_offset, batch_dims=len(batch))
        mask = band if mask is None else mask & band
    return mask
