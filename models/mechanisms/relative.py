"""Relative keys and values: `attention.relative_positions.shaw_attention`."""

from typing import Any, ClassVar

from flax import nnx

from attention.relative_positions import shaw_attention
from models.mechanisms.base import Array, Mechanism, like, normal


class Shaw(Mechanism):
    """Learned vectors by distance, added to keys and values: `attention.relative_positions.shaw_attention`.

    Args:
        max_distance: the largest distance with a vector of its own; keys further away count as so far.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "dropout_rate", "return_weights", "query_offset"})

    def __init__(
        self, *, max_distance: int = 16, num_heads: int, num_kv_heads: int, head_dim: int, rngs: nnx.Rngs
    ):
        shape = (2 * max_distance + 1, head_dim)
        self.key_table = normal(rngs, "key_table", shape, fan=head_dim)
        self.value_table = normal(rngs, "value_table", shape, fan=head_dim)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None,
        bias: Array | None = None,
        dropout_rate: float = 0.0,
        dropout_key: Array | None = None,
        return_weights: bool = False,
        query_offset: int | Array | None = None,
    ) -> Any:
        return shaw_attention(
            query,
            key,
            value,
            key_table=like(self.key_table, query),
            value_table=like(self.value_table, query),
            query_offset=query_offset,
            mask=mask,
            bias=bias,
            dropout_rate=dropout_rate,
            dropout_key=dropout_key,
            return_weights=return_weights,
        )
