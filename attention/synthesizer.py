"""Synthesizers: scores that never compare a query with a key.

They are scores like those of `attention.scores`, `(query, key, *parameters) -> [*B N T S]`, and so go with
every normaliser, mask and bias:

    attend(q, k, v, score=jax.tree_util.Partial(synthesizer.random, matrix=R))

Of the key they use the number S alone; their parameters are made for that length.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.internals import contract


@contract.primitive()
def dense(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    hidden_kernel: Float[Array, "N Hq A"],
    hidden_bias: Float[Array, "N A"],
    kernel: Float[Array, "N A S"],
    bias: Float[Array, "N S"],
) -> Float[Array, "*B N T S"]:
    """Scores of all positions predicted from the query, `score[s] = (relu(q W1 + b1) W2 + b2)[s]`.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, of which only the shape counts.
        hidden_kernel: W1, `[N Hq A]`.
        hidden_bias: b1, `[N A]`.
        kernel: W2, `[N A S]`.
        bias: b2, `[N S]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Costs O(T S) time and memory.

    Tay et al. (2021), "Synthesizer: rethinking self-attention for transformer models".
    """
    N, _, S = _checked(
        query, key, hidden_kernel=hidden_kernel, hidden_bias=hidden_bias, kernel=kernel, bias=bias
    )
    Hq, A = query.shape[-1], hidden_kernel.shape[-1]
    contract.check_parameter("hidden_kernel [N Hq A]", hidden_kernel, (N, Hq, A))
    contract.check_parameter("hidden_bias [N A]", hidden_bias, (N, A))
    contract.check_parameter("kernel [N A S]", kernel, (N, A, S))
    contract.check_parameter("bias [N S]", bias, (N, S))
    dtype = contract.working_dtype(query.dtype)
    ones = (1,) * (query.ndim - 3)
    hidden = jnp.einsum("...tnh,nha->...nta", query.astype(dtype), hidden_kernel.astype(dtype))
    hidden = jax.nn.relu(hidden + hidden_bias.astype(dtype).reshape(*ones, N, 1, A))
    scores = jnp.einsum("...nta,nas->...nts", hidden, kernel.astype(dtype))
    return scores + bias.astype(dtype).reshape(*ones, N, 1, S)


@contract.primitive()
def random(
    query: Float[Array, "*B T N Hq"], key: Float[Array, "*B S K Hk"], matrix: Float[Array, "N T S"]
) -> Float[Array, "*B N T S"]:
    """Scores that are parameters themselves, the same for every input, `score[t, s] = R[t, s]`.

    Args:
        query: `[*B T N Hq]`, of which only the shape counts.
        key: `[*B S K Hk]`, of which only the shape counts.
        matrix: R, `[N T S]`, random and trained or not.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Costs O(T S) time and memory.

    Tay et al. (2021), "Synthesizer: rethinking self-attention for transformer models".
    """
    sizes = _checked(query, key, matrix=matrix)
    contract.check_parameter("matrix [N T S]", matrix, sizes)
    shape = contract.scores_shape(query, key)
    scores = matrix.astype(contract.working_dtype(query.dtype))
    return jnp.broadcast_to(scores.reshape((1,) * (len(shape) - 3) + sizes), shape)


@contract.primitive()
def factorized_random(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    query_factor: Float[Array, "N T R"],
    key_factor: Float[Array, "N S R"],
) -> Float[Array, "*B N T S"]:
    """Random scores of rank R, `score[t, s] = R1[t] . R2[s]`, with O(T + S) parameters instead of O(T S).

    Args:
        query: `[*B T N Hq]`, of which only the shape counts.
        key: `[*B S K Hk]`, of which only the shape counts.
        query_factor: R1, `[N T R]`.
        key_factor: R2, `[N S R]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Costs O(T S) time and memory.

    Tay et al. (2021), "Synthesizer: rethinking self-attention for transformer models".
    """
    N, T, S = _checked(query, key, query_factor=query_factor, key_factor=key_factor)
    R = query_factor.shape[-1]
    contract.check_parameter("query_factor [N T R]", query_factor, (N, T, R))
    contract.check_parameter("key_factor [N S R]", key_factor, (N, S, R))
    dtype = contract.working_dtype(query.dtype)
    matrix = jnp.einsum("ntr,nsr->nts", query_factor, key_factor, preferred_element_type=dtype)
    shape = contract.scores_shape(query, key)
    return jnp.broadcast_to(matrix.reshape((1,) * (len(shape) - 3) + (N, T, S)), shape)


def _checked(query: Array, key: Array, **parameters: Array) -> tuple[int, int, int]:
    contract.check_query_key(query, key, same_width=False)
    contract.check_floating(query=query, **parameters)
    *_, N, T, S = contract.scores_shape(query, key)
    return N, T, S
