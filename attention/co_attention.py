"""Co-attention: a passage reads a question, and the question reads the passage, by one affinity.

Query heads belong to the passage; keys and values to the question.
"""

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from attention import scores, stages
from attention.internals import contract, grouped


class CoAttention(NamedTuple):
    """What each side has read of the other.

    Attributes:
        passage: for each position of the passage, the question's values, `[*B T N V]`.
        question: for each position of the question, the passage's vectors, `[*B S N H]`.
    """

    passage: Float[Array, "*B T N V"]
    question: Float[Array, "*B S N H"]


@stages.binding("score")
@contract.primitive()
def co_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    *,
    score: stages.Score = scores.scaled_dot,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
) -> CoAttention:
    """Both directions of one affinity `L`, `softmax_s(L) v` and `softmax_t(L)^T q`.

    The first alone is `attend` with passage queries, which R-Net gates (`gate`).

    Args:
        query: of the passage, `[*B T N H]`.
        key: of the question, `[*B S K Hk]`, K divides N.
        value: of the question, `[*B S K V]`.
        score: how L is made of query and key, as in `attend`.
        mask: boolean, True where passage position t and question position s may see each other;
            `[*B N T S]`, or 1 in any axis. Paddings of both sides are combined with `&`.
        bias: added to L, -inf means masked; `[*B N T S]`, or 1 in any axis.

    Returns:
        A `CoAttention`. A position that sees none of the other side has 0.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, a mask that is not boolean.

    O(T S). Lu et al. (2016), "Hierarchical question-image co-attention for visual question
    answering"; Xiong, Zhong and Socher (2017), "Dynamic coattention networks for question answering".
    """

    def transposed(x: Array) -> Array:
        return jnp.swapaxes(x, -1, -2)

    def affinity(question: Array, passage: Array) -> Array:
        return transposed(score(passage, question[..., :: N // K, :]))

    passage = stages.attend(query, key, value, score=score, mask=mask, bias=bias)
    N, K = query.shape[-2], key.shape[-2]
    question = stages.attend(
        grouped.repeat(key, N),
        query,
        query,
        score=Partial(affinity),
        mask=None if mask is None else transposed(mask),
        bias=None if bias is None else transposed(bias),
    )
    return CoAttention(cast(Array, passage), cast(Array, question))


@contract.primitive()
def gate(
    passage: Float[Array, "*B T D"], context: Float[Array, "*B T C"], kernel: Float[Array, "D+C D+C"]
) -> Float[Array, "*B T D+C"]:
    """Let through what matters of a passage and what it has read, `sigmoid(W [p; c]) * [p; c]`.

    Args:
        passage: p, `[*B T D]`.
        context: c, what it has read of the question, `[*B T C]`.
        kernel: W, `[D+C D+C]`; its last axis is that of the output.

    Returns:
        `[*B T D+C]`, which R-Net gives to a recurrent layer.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ.

    O(T (D + C)^2). Wang et al. (2017), "Gated self-matching networks for reading comprehension and
    question answering".
    """
    contract.check_floating(passage=passage, context=context, kernel=kernel)
    if passage.shape[:-1] != context.shape[:-1]:
        raise ValueError(
            f"passage [*B T D] and context [*B T C] must agree in all axes but the last, "
            f"got {passage.shape} and {context.shape}"
        )
    both = jnp.concatenate([passage, context], axis=-1)
    width = both.shape[-1]
    contract.check_parameter("kernel [D+C D+C]", kernel, (width, width))
    dtype = contract.working_dtype(both.dtype)
    opening = jnp.einsum("...i,io->...o", both, kernel, preferred_element_type=dtype)
    return (jax.nn.sigmoid(opening) * both.astype(dtype)).astype(both.dtype)
