"""Every mechanism of attention/ that self-attention can be made of, as a table of config words.

A row names a function called `(query, key, value, *, mask, ...)` and says what arrays it needs besides:
those that are learned, by their axes, and those that are drawn once and kept. What a config may set is
read off the signatures, and so is whether a mechanism takes a bias, drops weights or returns them.
`models.mechanisms` makes modules of the rows.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import attention
from attention import local, localness, masks, normalizers, reformer, scores, synthesizer
from attention.block_sparse import draw_random_blocks
from attention.internals import contract, grouped
from attention.performer import orthogonal_projection
from attention.relative_positions import shaw_attention
from errors import unknown

Options = Mapping[str, Any]
Learned = Mapping[str, tuple[str, str | float]]

# The axes of learned arrays, by the options that set their sizes. N, K and H are the layer's.
SIZES = {"L": "max_length", "A": "hidden_dim", "R": "rank", "C": "max_distance"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """One mechanism.

    Attributes:
        function: called `(query, key, value, *, mask, **options, **arrays)`.
        learned: axes and initial values of each learned array. Axes are N query heads, K key heads, head
            dim H, the sizes of `SIZES`, and products and sums of these as `sizes` lists them. Initial values
            are one number, or normal with the variance `1 / size` of the axis named. An axis L is cut to the
            length of the sequence.
        drawn: functions `(key, num_heads, head_dim, **options) -> array`, called once, at construction.
        binds: a name and a function: the arrays are bound to this one, which the mechanism gets by that name.
        prepared: where a score maps the keys before any query counts: that map, `(key, **arrays) -> key`, and
            the score of keys so mapped. A decoder then maps them once, not at every step.
        pattern: `(T, **options, **arrays) -> mask [1 1 T T]`, where the mechanism is a softmax over the keys
            that this mask shows; makes the weights of a mechanism that never forms them.
        reads: whether query and key count. A layer has no projection for what does not.
    """

    function: Callable[..., Any]
    learned: Learned = dataclasses.field(default_factory=dict)
    drawn: Mapping[str, Callable[..., jax.Array]] = dataclasses.field(default_factory=dict)
    binds: tuple[str, Callable[..., jax.Array]] | None = None
    prepared: tuple[Callable[..., jax.Array], Callable[..., jax.Array]] | None = None
    pattern: Callable[..., jax.Array] | None = None
    reads: tuple[str, ...] = ("query", "key")


NORMALIZERS: dict[str, Callable[..., jax.Array]] = {
    "softmax": normalizers.softmax,
    "relu": normalizers.relu,
    "sigmoid": normalizers.sigmoid,
    "identity": normalizers.identity,
    "sparsemax": normalizers.sparsemax,
    "entmax": normalizers.entmax,
    "top_k": normalizers.top_k,
}


def normalizer(chosen: str | Options | tuple) -> Callable[..., jax.Array]:
    """The normaliser of `"sparsemax"` or `{"kind": "top_k", "k": 8}`; a mapping may come as its items.

    Raises:
        UserError: on an unknown word.
    """
    options = {"kind": chosen} if isinstance(chosen, str) else dict(chosen)
    kind = options.pop("kind", "softmax")
    if kind not in NORMALIZERS:
        raise unknown("normalizer", kind, NORMALIZERS)
    return jax.tree_util.Partial(NORMALIZERS[kind], **options)


def _attend(query, key, value, *, score, normalize="softmax", **arguments):
    """The three stages, by any score and a normaliser by word."""
    return attention.attend(query, key, value, score=score, normalize=normalizer(normalize), **arguments)


def _dot_product(query, key, value, *, implementation="auto", normalize="softmax", **arguments):
    """The fast front door for a softmax, `attend` for the other normalisers."""
    if normalize == "softmax":
        return attention.dot_product_attention(query, key, value, implementation=implementation, **arguments)
    if implementation != "auto":
        raise ValueError(f"implementation {implementation!r} is of a softmax, not of normalize {normalize!r}")
    return attention.attend(query, key, value, normalize=normalizer(normalize), **arguments)


def _sharpened_cosine(query, key, *, log_sharpness):
    heads = (1,) * (query.ndim - 3) + (-1, 1, 1)
    return scores.cosine(query, key) * jnp.exp(log_sharpness).reshape(heads)


def _general_keys(key, *, kernel):
    return jnp.einsum("...snk,nhk->...snh", grouped.repeat(key, len(kernel)), kernel)


def _general_prepared(query, key, *, kernel):
    return scores.dot(query, key)


def _additive_keys(key, *, key_kernel, **others):
    return jnp.einsum("...skh,kha->...ska", key, key_kernel)


def _additive_prepared(query, key, *, key_kernel, **others):
    return scores.additive(query, key, key_kernel=None, **others)


def _concat_keys(key, *, kernel, vector):
    keys = grouped.repeat(key, len(kernel))
    return jnp.einsum("...snh,nha->...sna", keys, kernel[:, -key.shape[-1] :])


def _concat_prepared(query, key, *, kernel, vector):
    kernel = kernel[:, : query.shape[-1]]
    return scores.additive(query, key, kernel, None, jnp.zeros_like(vector), vector)


def _localness(query, key, value, *, favour, mask=None, bias=None, **arguments):
    """Scaled dot products and a Gaussian bias, `favour(query, key, lengths) -> [B N T S]`."""
    gaussian = favour(query, key, _lengths("localness", query, key, mask))
    bias = gaussian if bias is None else gaussian + bias.astype(gaussian.dtype)
    return attention.dot_product_attention(query, key, value, mask=mask, bias=bias, **arguments)


def _centred(query, key, lengths, *, log_window):
    return localness.centred(query.shape[-3], window=_per_head(log_window))


def _fixed_window(query, key, lengths, *, log_window, **learned):
    S, window = key.shape[-3], _per_head(log_window)
    return localness.fixed_window(query, S, window=window, lengths=lengths, **learned)


def _layer_window(query, key, lengths, **learned):
    return localness.layer_window(query, key, lengths=lengths, **learned)


def _query_window(query, key, lengths, **learned):
    return localness.query_window(query, key.shape[-3], lengths=lengths, **learned)


def _per_head(log_window):
    return jnp.exp(log_window).reshape(1, -1, 1)


def _local_p(query, key, value, *, radius, kernel, vector, renormalize=False, mask=None, **arguments):
    return local.local_p(
        query,
        key,
        value,
        radius=radius,
        kernel=kernel,
        vector=vector,
        renormalize=renormalize,
        lengths=_lengths("local_p", query, key, mask),
        mask=mask,
        **arguments,
    )


def _lengths(mechanism: str, query: jax.Array, key: jax.Array, mask: jax.Array | None) -> jax.Array | None:
    """The true number of keys of each sequence, of a mask `[B 1 1 S]` with its padding at the end."""
    if mask is None:
        return None
    contract.check_key_mask(mechanism, mask, contract.scores_shape(query, key))
    count = jnp.sum(mask, axis=-1, dtype=jnp.int32)[..., 0, 0]
    return jnp.broadcast_to(count, query.shape[:-3])


def _longformer(query, key, value, *, window, global_positions=(0,), mask=None, scale=None):
    positions = jnp.asarray(global_positions, jnp.int32)
    return attention.longformer_attention(
        query, key, value, window=window, global_positions=positions, mask=mask, scale=scale
    )


def _bigbird(
    query,
    key,
    value,
    *,
    block_size,
    random_blocks,
    window=(1, 1),
    global_blocks=1,
    mask=None,
    scale=None,
):
    return attention.bigbird_attention(
        query,
        key,
        value,
        block_size=block_size,
        random_blocks=random_blocks[: -(-query.shape[-3] // block_size)],
        window=window,
        global_blocks=global_blocks,
        mask=mask,
        scale=scale,
    )


def _reformer(query, key, value, *, rotations, chunk_size, is_causal=False, mask=None):
    """As published: query and key are one vector, the key of length 1, and no position sees itself."""
    squares = jnp.sum(query * query, axis=-1, keepdims=True)
    nonzero = squares > 0  # and both branches of a `where` are differentiated
    key = jnp.where(nonzero, query * jax.lax.rsqrt(jnp.where(nonzero, squares, 1)), 0)
    return attention.reformer_attention(
        query,
        key,
        value,
        rotations=rotations,
        chunk_size=chunk_size,
        is_causal=is_causal,
        hide_self=True,
        mask=mask,
    )


def _sinkhorn(query, key, value, *, block_size, temperature=0.75, iterations=8, mask=None):
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    return attention.sinkhorn_attention(
        query,
        key,
        value,
        block_size=block_size,
        temperature=temperature,
        iterations=iterations,
        mask=mask,
    )


def _draw_projection(key, num_heads, head_dim, *, features=0):
    """Rows for Performer; 0 features stand for `H ln H`, what the paper's bound asks for."""
    return orthogonal_projection(key, features or max(round(head_dim * math.log(head_dim)), 1), head_dim)


def _draw_blocks(
    key, num_heads, head_dim, *, max_length, block_size, count=3, window=(1, 1), global_blocks=1
):
    return draw_random_blocks(
        key, max_length, block_size=block_size, count=count, window=window, global_blocks=global_blocks
    )


def _draw_rotations(key, num_heads, head_dim, *, rounds=2, buckets=8):
    return reformer.draw_rotations(key, rounds, head_dim, buckets)


def _run(T, *, is_causal=False, window=None):
    left, right = window or (T, T)
    return masks.band(T, T, (left, 0 if is_causal else right))


def _band(T, *, window):
    return masks.band(T, T, window)


def _dilated(T, *, window, dilation):
    return masks.dilated(T, T, window, dilation=dilation)


def _strided(T, *, stride):
    return masks.strided(T, stride=stride)


def _window_and_global(T, *, window, global_positions=(0,)):
    is_global = np.isin(np.arange(T), global_positions)[None]
    return masks.band(T, T, window) | masks.global_tokens(jnp.asarray(is_global))


def _window_global_and_random(T, *, block_size, random_blocks, window=(1, 1), global_blocks=1):
    M = -(-T // block_size)
    first = jnp.arange(M)[None] < global_blocks
    listed = jnp.any(random_blocks[:M, :, None] == jnp.arange(M).reshape(1, 1, M), axis=1)
    blocks = masks.band(M, M, window) | masks.global_tokens(first) | listed[None, None]
    spread = jnp.repeat(jnp.repeat(blocks, block_size, axis=-2), block_size, axis=-1)
    return spread[..., :T, :T]


_CENTRE: Learned = {"kernel": ("N H A", "H"), "centre_vector": ("N A", "A")}
_WINDOW: Learned = {"log_window": ("N", math.log(8.0))}  # positions, two standard deviations


def _by_score(score, learned: Learned | None = None, reads=("query", "key"), prepared=None) -> Kind:
    return Kind(_attend, learned or {}, binds=("score", score), reads=reads, prepared=prepared)


def _by_favour(favour, learned: Learned) -> Kind:
    return Kind(_localness, learned, binds=("favour", favour))


KINDS: dict[str, Kind] = {
    # Scores with any normaliser
    "dot_product": Kind(_dot_product),
    "dot": _by_score(scores.dot),
    "cosine": _by_score(_sharpened_cosine, {"log_sharpness": ("N", math.log(10.0))}),
    "general": _by_score(
        scores.general, {"kernel": ("N H H", "H*H")}, prepared=(_general_keys, _general_prepared)
    ),
    "additive": _by_score(
        scores.additive,
        {
            "query_kernel": ("N H A", "H"),
            "key_kernel": ("K H A", "H"),
            "bias": ("N A", 0.0),
            "vector": ("N A", "A"),
        },
        prepared=(_additive_keys, _additive_prepared),
    ),
    "concat": _by_score(
        scores.concat,
        {"kernel": ("N H+H A", "H+H"), "vector": ("N A", "A")},
        prepared=(_concat_keys, _concat_prepared),
    ),
    "negative_squared_distance": _by_score(scores.negative_squared_distance),
    "location": _by_score(scores.location, {"kernel": ("N H L", "H")}, reads=("query",)),
    "synthesizer_dense": _by_score(
        synthesizer.dense,
        {
            "hidden_kernel": ("N H A", "H"),
            "hidden_bias": ("N A", 0.0),
            "kernel": ("N A L", "A"),
            "bias": ("N L", 0.0),
        },
        reads=("query",),
    ),
    "synthesizer_random": _by_score(synthesizer.random, {"matrix": ("N L L", "L")}, reads=()),
    "synthesizer_factorized": _by_score(
        synthesizer.factorized_random,
        {"query_factor": ("N L R", "R"), "key_factor": ("N L R", "R")},
        reads=(),
    ),
    # A softmax that favours keys near a centre
    "localness": _by_favour(_centred, _WINDOW),
    "localness_fixed_window": _by_favour(_fixed_window, {**_CENTRE, **_WINDOW}),
    "localness_layer_window": _by_favour(
        _layer_window, {**_CENTRE, "window_kernel": ("N H A", "H"), "window_vector": ("N A", "A")}
    ),
    "localness_query_window": _by_favour(_query_window, {**_CENTRE, "window_vector": ("N A", "A")}),
    "local_m": Kind(local.local_m),
    "local_p": Kind(_local_p, {"kernel": ("N H A", "H"), "vector": ("N A", "A")}),
    # Relative keys and values; chosen by positions={"kind": "shaw"} as well
    "shaw": Kind(shaw_attention, {"key_table": ("2C+1 H", "H"), "value_table": ("2C+1 H", "H")}),
    # A softmax at less cost
    "blockwise": Kind(attention.blockwise_attention, pattern=_run),
    "banded": Kind(attention.banded_attention, pattern=_band),
    "dilated": Kind(attention.dilated_attention, pattern=_dilated),
    "strided": Kind(attention.strided_attention, pattern=_strided),
    "longformer": Kind(_longformer, pattern=_window_and_global),
    "bigbird": Kind(_bigbird, drawn={"random_blocks": _draw_blocks}, pattern=_window_global_and_random),
    # In place of a softmax
    "linear": Kind(attention.linear_attention),
    "performer": Kind(attention.performer_attention, drawn={"projection": _draw_projection}),
    "cosformer": Kind(attention.cosformer_attention),
    "linformer": Kind(
        attention.linformer_attention,
        {"key_projection": ("L R", "L"), "value_projection": ("L R", "L")},
    ),
    "nystromformer": Kind(attention.nystromformer_attention),
    "reformer": Kind(_reformer, drawn={"rotations": _draw_rotations}, reads=("query",)),
    "sinkhorn": Kind(_sinkhorn),
    "attention_free_full": Kind(attention.attention_free_full, {"position_bias": ("L L", 0.0)}),
    "attention_free_local": Kind(attention.attention_free_local, {"position_bias": ("L L", 0.0)}),
}
KINDS["truncated"] = KINDS["banded"]


def sizes(num_heads: int, num_kv_heads: int, head_dim: int, options: Options) -> dict[str, int]:
    """The length of every axis that a row may name; the optional ones are as long as a head is wide."""
    N, K, H = num_heads, num_kv_heads, head_dim
    chosen = {axis: options.get(name) or H for axis, name in SIZES.items()}
    derived = {"H*H": H * H, "H+H": 2 * H, "2C+1": 2 * chosen["C"] + 1}
    return {"N": N, "K": K, "H": H, **chosen, **derived}
