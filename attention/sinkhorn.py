"""Sparse Sinkhorn attention: each block of queries sees its own block of keys and one sorted to it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention import scores, stages
from attention.internals import contract, softmax_parts, unseen


@stages.binding("sort")
@contract.primitive("block_size", "iterations")
def sinkhorn_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    block_size: int,
    sort: stages.Score = scores.scaled_dot,
    temperature: float | Float[Array, ""] = 0.75,
    iterations: int = 8,
    mask: Bool[Array, "*#B 1 1 T"] | None = None,
) -> Float[Array, "*B T N V"]:
    """Attention to one's own block and one sorted to it, `out = softmax(Q [K; P K]^T / sqrt(H)) [V; P V]`.

    `P = balance(exp(sort(mean q, mean k) / temperature))` is a soft permutation: queries and keys are
    averaged over blocks, and columns and rows are divided in turn by their sums, until P is nearly doubly
    stochastic. Key c of sorted block i is the sum over j of `P[i, j]` times key c of block j. With a
    single block this is dense attention. There is no causal form: the balancing of one block looks at
    all of them.

    Args:
        query: `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        block_size: positions in a block, 1 or more; the last block may be shorter.
        sort: a score `(query means [*B G N H], key means [*B G K H]) -> [*B N G G]` of the G blocks, such
            as those of `attention.scores`, or `synthesizer.dense` for the paper's sorting network. Bind
            parameters by `jax.tree_util.Partial`, in float32 or wider as the means are. Noise, for the
            Gumbel-Sinkhorn operator, is for it to add.
        temperature: divides the scores of the blocks; as it falls, P nears a permutation.
        iterations: number of times columns and rows are balanced, 0 or more.
        mask: boolean `[*B 1 1 T]`, True where a position exists, as a key and as a query. Blocks of which
            nothing exists take no part in the sorting. A masked key is a zero vector in the sums that make
            sorted keys, and takes its share `P[i, j]` out of the softmax.

    Returns:
        The output `[*B T N V]` in the query's dtype, 0 at positions that do not exist.

    Raises:
        ValueError: shapes that do not fit, numbers of queries and keys that differ, counts out of range,
            or a mask that differs between queries, as a causal one.
        TypeError: dtypes that differ, a mask that is not boolean.

    Costs O(T b + T^2 / b) time and O(T b + T^2 / b^2) memory for blocks of b.

    Tay, Bahri, Yang, Metzler and Juan (2020), "Sparse Sinkhorn attention".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("sinkhorn_attention", shape)
    contract.check_key_mask("sinkhorn_attention", mask, shape)
    if block_size < 1 or iterations < 0:
        raise ValueError(
            f"block_size must be 1 or more and iterations 0 or more, got {block_size} and {iterations}"
        )
    *batch, N, T, _ = shape
    G = max(-(-T // block_size), 1)
    dtype = contract.working_dtype(query.dtype)

    exists = unseen.existing(mask, batch, T)
    exists = _blocks(exists[..., None, None], G, block_size)[..., 0]
    q, k, v = (_blocks(unseen.hide(x, mask).astype(dtype), G, block_size) for x in (query, key, value))

    size = jnp.maximum(jnp.sum(exists, axis=-1, dtype=dtype), 1.0)[..., None]
    q_means, k_means = (jnp.swapaxes(jnp.sum(x, axis=-2) / size, -2, -3) for x in (q, k))
    logits = sort(q_means, k_means)
    contract.check_scores("sort", logits, (*batch, N, G, G))
    used = jnp.any(exists, axis=-1)
    order = _balance(logits.astype(dtype) / temperature, used[..., :, None] & used[..., None, :], iterations)

    k, v = (jnp.repeat(x, N // x.shape[-4], axis=-4) for x in (k, v))
    k_sorted, v_sorted = (jnp.einsum("...ij,...jch->...ich", order, x) for x in (k, v))
    share = jnp.einsum("...ij,...jc->...ic", order, jnp.broadcast_to(exists, k.shape[:-1]).astype(dtype))
    products = jnp.einsum("...qh,...ch->...qc", q, jnp.concatenate([k, k_sorted], axis=-2))
    seen = jnp.concatenate([jnp.broadcast_to(exists, share.shape), share > 0], axis=-1)
    exponentials, _, _ = softmax_parts.undivided(
        products * max(query.shape[-1], 1) ** -0.5, seen[..., None, :]
    )
    # The share of what exists is in the sorted values already.
    sums = jnp.einsum("...qc,...cv->...qv", exponentials, jnp.concatenate([v, v_sorted], axis=-2))
    counts = jnp.concatenate([jnp.ones_like(share), share], axis=-1)
    total = jnp.einsum("...qc,...c->...q", exponentials, counts)[..., None]
    out = sums / jnp.where(total == 0, 1.0, total)
    out = jnp.swapaxes(out.reshape(*batch, N, G * block_size, -1)[..., :T, :], -2, -3)
    return unseen.hide(out, mask).astype(query.dtype)


def _blocks(x: Float[Array, "*B T N H"] | Bool[Array, "*B T N H"], G: int, size: int) -> Array:
    """Cut the length into G blocks, filled up with zeros: `[*B N G size H]`."""
    *batch, T, N, H = x.shape
    filled = jnp.pad(x, [(0, 0)] * len(batch) + [(0, G * size - T), (0, 0), (0, 0)])
    return jnp.swapaxes(filled, -2, -3).reshape(*batch, N, G, size, H)


def _balance(
    logits: Float[Array, "*B N G G"], used: Bool[Array, "*B #N G G"], iterations: int
) -> Float[Array, "*B N G G"]:
    """The exponentials with rows that sum to 1 and, by and by, columns as well; 0 where not used."""

    def normalized(logits: Float[Array, "*B N G G"]) -> Float[Array, "*B N G G"]:
        _, total, shift = softmax_parts.undivided(logits, used)
        return jnp.where(used, logits - shift - jnp.log(total), 0.0)

    def step(_: int | Int[Array, ""], logits: Float[Array, "*B N G G"]) -> Float[Array, "*B N G G"]:
        # Used are blocks, not pairs of them, so the transposed matrix has the same used entries.
        return normalized(jnp.swapaxes(normalized(jnp.swapaxes(logits, -1, -2)), -1, -2))

    logits = jax.lax.fori_loop(0, iterations, step, normalized(logits))
    return jnp.where(used, jnp.exp(logits), 0.0)
