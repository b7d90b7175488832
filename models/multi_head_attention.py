"""Multi-head attention: projections around one mechanism of attention/."""

from collections.abc import Mapping

import jax
from flax import nnx
from jaxtyping import Array, Bool, Float

from models import mechanisms
from models.linear import Linear


class MultiHeadAttention(nnx.Module):
    """Attention in N heads: `concat_n(attend(x Wq_n, m Wk_n, m Wv_n)) Wo`.

    Args:
        dim: width D of input and output.
        num_heads: number N of query heads.
        num_kv_heads: number K of key/value heads; divides N; default N. Query head n reads head n // (N/K).
        head_dim: width H of a head; default D / N.
        attention: the mechanism, as `{"kind": word, **arguments}`; see `models.mechanisms`.
        dropout_rate: dropout on the attention weights.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if N does not divide D (and no head_dim is given) or K does not divide N.

    Source: Vaswani et al. 2017, section 3.2.2; grouped heads from Ainslie et al. 2023.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        attention: Mapping | None = None,
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        num_kv_heads = num_kv_heads or num_heads
        if head_dim is None and dim % num_heads:
            raise ValueError(f"dim {dim} is not divisible by num_heads {num_heads}")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads {num_heads} is not divisible by num_kv_heads {num_kv_heads}")
        self.head_dim = head_dim or dim // num_heads
        self.dropout_rate = dropout_rate
        self.query = Linear(dim, num_heads * self.head_dim, rngs=rngs)
        self.key = Linear(dim, num_kv_heads * self.head_dim, rngs=rngs)
        self.value = Linear(dim, num_kv_heads * self.head_dim, rngs=rngs)
        self.output = Linear(num_heads * self.head_dim, dim, rngs=rngs)
        self.mechanism = mechanisms.build(attention, num_heads=num_heads, head_dim=self.head_dim, rngs=rngs)

    def __call__(
        self,
        x: Float[Array, "*B T D"],
        memory: Float[Array, "*B S D"] | None = None,
        *,
        mask: Bool[Array, "..."] | None = None,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Float[Array, "*B T D"] | tuple[Float[Array, "*B T D"], Float[Array, "*B N T S"]]:
        """Attend from `x` to `memory` (to itself where None).

        Args:
            x: queries `[*B, T, D]`.
            memory: keys and values `[*B, S, D]`.
            mask: boolean, True = may attend, as made by `attention.masks`.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: also return the weights `[*B, N, T, S]`; the output stays the same.
        """
        memory = x if memory is None else memory
        heads = (-1, self.head_dim)
        arguments: dict = {"mask": mask}
        if rngs is not None and self.dropout_rate > 0:
            arguments.update(dropout_rate=self.dropout_rate, dropout_key=rngs.dropout())
        if return_weights:
            arguments.update(return_weights=True)
        result = self.mechanism(
            self.query(x).reshape(*x.shape[:-1], *heads),
            self.key(memory).reshape(*memory.shape[:-1], *heads),
            self.value(memory).reshape(*memory.shape[:-1], *heads),
            **arguments,
        )
        mixed: jax.Array = result[0] if return_weights else result
        output = self.output(mixed.reshape(*x.shape[:-1], -1))
        return (output, result[1]) if return_weights else output
