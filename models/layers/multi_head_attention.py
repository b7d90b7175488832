"""Multi-head attention: projections around one mechanism of attention/."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from errors import UserError
from models.layers.linear import Linear
from models.mechanisms import MECHANISMS, those_that_can
from models.positions import RELATIVE
from models.rngs import named
from spec import Block


class MultiHeadAttention(nnx.Module):
    """Attention in N heads: `concat_n(attend(x Wq_n, m Wk_n, m Wv_n)) Wo`.

    A mechanism that reads no keys, or no queries either, has no projection for them.

    Args:
        dim: width D of input and output.
        num_heads: number N of query heads.
        num_kv_heads: number K of key/value heads; divides N; default N. Query head n reads head n // (N/K).
        head_dim: width H of a head; default D / N.
        attention: the mechanism, a block of `models.mechanisms.MECHANISMS` or its word alone.
        positions: relative positions, a block of `models.positions.RELATIVE` or its word alone.
        dropout_rate: dropout on the attention weights.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if N does not divide D (and no other head_dim is given) or K does not divide N.
        UserError: on a block of attention or positions that does not work, or where the mechanism has no
            weights to drop, no scores to add a bias to, or no keys to turn.

    Source: Vaswani et al. 2017, section 3.2.2; grouped heads from Ainslie et al. 2023.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        attention: Annotated[Block, MECHANISMS] | str = "dot_product",
        positions: Annotated[Block, RELATIVE] | str = "none",
        dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        num_kv_heads = num_kv_heads or num_heads
        if dim % num_heads and head_dim in (None, dim // num_heads):  # which a config derives
            raise ValueError(f"dim {dim} is not divisible by num_heads {num_heads}; give another head_dim")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads {num_heads} is not divisible by num_kv_heads {num_kv_heads}")
        kind = MECHANISMS.chosen(attention, "attention")
        _check(kind, positions)
        if dropout_rate > 0 and "dropout_rate" not in _takes(kind):
            raise UserError(f"attention kind {kind!r} has no weights to drop: its dropout_rate must be 0")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = head_dim or dim // num_heads
        self.dropout_rate = dropout_rate
        reads = MECHANISMS[kind].reads
        queries, keys = num_heads * self.head_dim, num_kv_heads * self.head_dim
        self.query = Linear(dim, queries, rngs=named(rngs, "query")) if "query" in reads else None
        self.key = Linear(dim, keys, rngs=named(rngs, "key")) if "key" in reads else None
        self.value = Linear(dim, keys, rngs=named(rngs, "value"))
        self.output = Linear(queries, dim, rngs=named(rngs, "output"))
        self.mechanism = MECHANISMS.build(
            attention,
            "attention",
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=self.head_dim,
            rngs=named(rngs, "mechanism"),
        )
        self.relative = RELATIVE.build(
            positions,
            "positions",
            num_heads=num_heads,
            head_dim=self.head_dim,
            rngs=named(rngs, "relative"),
        )

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

        Raises:
            ValueError: if there are relative positions and a memory.
            UserError: if the mechanism cannot return weights.
        """
        if memory is not None and self.relative is not None:
            raise ValueError(
                f"{type(self.relative).__name__} positions are those of self-attention; there is a memory"
            )
        key, value = self.project(x if memory is None else memory)
        return self.attend(x, key, value, mask=mask, rngs=rngs, return_weights=return_weights)

    def project(
        self, memory: Float[Array, "*B S D"], index: Int[Array, "*B"] | None = None
    ) -> tuple[Float[Array, "*B S K H"], Float[Array, "*B S K H"]]:
        """The keys and values of vectors, such as are made once and attended to place by place.

        Args:
            memory: vectors `[*B, S, D]`.
            index: where the first of them stands, for rotary positions; None means 0.
        """
        key = _heads(self.key, memory, self.num_kv_heads, self.head_dim)
        value = _heads(self.value, memory, self.num_kv_heads, self.head_dim)
        return (key if self.relative is None else self.relative.turn(key, index)), value

    def attend(
        self,
        x: Float[Array, "*B T D"],
        key: Float[Array, "*B S K H"],
        value: Float[Array, "*B S K H"],
        *,
        index: Int[Array, "*B"] | None = None,
        mask: Bool[Array, "..."] | None = None,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Attend from `x` to keys and values that `project` made.

        Args:
            x: queries `[*B, T, D]`.
            key: `[*B, S, K, H]`.
            value: `[*B, S, K, H]`.
            index: where the first query stands, for rotary positions; None means 0.
            mask: boolean, True = may attend, as made by `attention.masks`.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: also return the weights `[*B, N, T, S]`; the output stays the same.

        Raises:
            ValueError: on an index where positions are a bias, which is that of whole sequences.
            UserError: if the mechanism cannot return weights.
        """
        query = _heads(self.query, x, self.num_heads, self.head_dim)
        arguments: dict = {"mask": mask}
        if self.relative is not None:
            if index is not None and not self.relative.by_place:
                raise ValueError(
                    f"{type(self.relative).__name__} positions are a bias of whole sequences, not by place"
                )
            query = self.relative.turn(query, index)
            if (bias := self.relative.bias(x.shape[-2])) is not None:
                arguments.update(bias=bias)
        if rngs is not None and self.dropout_rate > 0:
            arguments.update(dropout_rate=self.dropout_rate, dropout_key=rngs.dropout())
        if return_weights:
            arguments.update(return_weights=True)
        result = self.mechanism(query, key, value, **arguments)
        mixed: jax.Array = result[0] if return_weights else result
        output = self.output(mixed.reshape(*x.shape[:-1], -1))
        return (output, result[1]) if return_weights else output


def _heads(projection: Linear | None, x: Float[Array, "*B T D"], heads: int, head_dim: int) -> jax.Array:
    """`[*B T heads head_dim]`; zeros where nothing reads them."""
    shape = (*x.shape[:-1], heads, head_dim)
    return jnp.zeros(shape, x.dtype) if projection is None else projection(x).reshape(shape)


def weights_dropped(dropout_rate: float, attention: Block | str) -> float:
    """The rate of dropout where every mechanism named has weights to drop, else 0."""
    several = attention if isinstance(attention, list | tuple) else [attention]
    kinds = [MECHANISMS.chosen(each, "attention") for each in several]
    return dropout_rate if all("dropout_rate" in _takes(kind) for kind in kinds if kind != "none") else 0.0


def _takes(kind: str) -> frozenset[str]:
    return MECHANISMS[kind].takes


def _check(attention: str, positions: Block | str) -> None:
    """Raises a UserError if this attention can't do with these relative positions."""
    kind = RELATIVE.chosen(positions, "positions")
    if kind == "none":
        return
    needs = RELATIVE[kind].needs
    if needs == "keys" and MECHANISMS[attention].reads == ():
        raise UserError(
            f"positions kind {kind!r} turns queries and keys; attention kind {attention!r} reads none"
        )
    if needs == "bias" and "bias" not in _takes(attention):
        raise UserError(
            f"positions kind {kind!r} is a bias, which attention kind {attention!r} cannot honour; "
            f"{those_that_can('bias')}"
        )
