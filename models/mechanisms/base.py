"""What all mechanisms have in common: how they are called, what a call may bring, what they hold."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx

from errors import UserError
from models.rngs import named
from spec import Registry, row_of

Array = jax.Array

# What a call may bring besides query, key, value and mask.
BROUGHT = ("bias", "dropout_rate", "return_weights", "query_offset")


class Drawn(nnx.Variable):
    """Random numbers drawn at construction: never trained, the same in training and evaluation."""


class Mechanism(nnx.Module):
    """Attention by a function of attention/, with its options and the arrays it needs besides its inputs.

    A mechanism is a class with the options as arguments. It makes the arrays, ends its construction by
    `_try_out`, and attends in `_attend`, which takes by name what `takes` says and nothing else.

    Args:
        num_heads: query heads N.
        num_kv_heads: key and value heads K.
        head_dim: width H of a head.
        rngs: source of the initial parameters and of what is drawn.

    Attributes:
        reads: which of "query" and "key" count. A layer has no projection for what does not.
        takes: what a call may bring besides a mask, of `BROUGHT`.
        by_place: whether a query needs to know neither its own place nor the other queries, so that a decoder
            can attend place by place.
        in_recurrent: whether a recurrent decoder can use it: it gives weights, and works place by place if
            told which one it is.
        can_prepare: whether `prepare` does something to the keys before any query counts.
        max_length: vectors in the longest sequence, if there is a limit.
    """

    reads: ClassVar[tuple[str, ...]] = ("query", "key")
    takes: ClassVar[frozenset[str]] = frozenset()
    by_place: ClassVar[bool] = False
    in_recurrent: ClassVar[bool] = False
    can_prepare: ClassVar[bool] = False
    max_length: int | None = None

    def __call__(
        self,
        query: Array,
        key: Array,
        value: Array,
        *,
        mask: Array | None = None,
        bias: Array | None = None,
        dropout_rate: float = 0.0,
        dropout_key: Array | None = None,
        return_weights: bool = False,
        query_offset: int | Array | None = None,
        prepared: bool = False,
    ) -> Any:
        """Attend.

        Args:
            query: `[*B T N H]`.
            key: `[*B S K H]`.
            value: `[*B S K V]`.
            mask: boolean, True where a query may attend; as the mechanism takes it, see attention/.
            bias: added to the scores.
            dropout_rate: share of the weights set to 0.
            dropout_key: a key of `jax.random.key`, where the rate is above 0.
            return_weights: return `(output, weights [*B N T S])` instead of the output `[*B T N V]` alone.
            query_offset: the step of the first query, one integer or one for each batch element.
            prepared: whether the keys come from `prepare`.

        Raises:
            UserError: on an argument that the mechanism cannot honour, or a sequence too long for it.
            ValueError: on shapes that do not fit, as of the function of attention/; TypeError likewise.
        """
        brought: dict[str, Any] = {}
        if bias is not None:
            brought["bias"] = bias
        if dropout_rate > 0:
            brought["dropout_rate"] = dropout_rate
        if return_weights:
            brought["return_weights"] = True
        if query_offset is not None:
            brought["query_offset"] = query_offset
        for name in brought:
            if name not in self.takes:
                can = those_that_can(name, row_of(type(self))[0])
                raise UserError(f"attention kind {self.kind!r} cannot honour {name}; {can}")
        if "dropout_rate" in brought:
            brought["dropout_key"] = dropout_key
        if prepared and self.can_prepare:
            brought["prepared"] = True

        length = key.shape[-3]
        if self.max_length is not None and self.max_length < length:
            raise UserError(
                f"attention kind {self.kind!r} has max_length {self.max_length}, "
                f"a sequence has {length} vectors"
            )
        return self._attend(query, key, value, mask=mask, **brought)

    def _attend(self, *arrays: Any, **arguments: Any) -> Any:
        """Attend, with the arguments of a call that `takes` lists, and `mask`."""
        raise NotImplementedError

    def prepare(self, key: Array) -> Array:
        """What the scores need of the keys, `[*B S K H]`, for any number of calls with `prepared=True`."""
        return key

    @property
    def kind(self) -> str:
        """Its word in a config."""
        return row_of(type(self))[1]

    @property
    def sums_to_1(self) -> bool:
        """Whether the weights of a query that sees a key sum to 1, where there are weights."""
        return "return_weights" in self.takes

    def _try_out(self, num_heads: int, num_kv_heads: int, head_dim: int) -> None:
        """Trace a sequence of one vector: the function itself says what options it cannot work with."""
        query = jnp.zeros((1, 1, num_heads, head_dim))
        key = jnp.zeros((1, 1, num_kv_heads, head_dim))
        try:
            jax.eval_shape(lambda *arrays: self(*arrays, mask=jnp.ones((1, 1, 1, 1), bool)), query, key, key)
        except TypeError as error:
            raise ValueError(str(error)) from None


def those_that_can(argument: str, rows: Registry) -> str:
    """The end of an error: which of the rows can honour an argument of a call."""
    can = (word for word, make in rows.items() if argument in getattr(make, "takes", ()))
    return f"these can: {', '.join(can)}"


def normal(rngs: nnx.Rngs, name: str, shape: tuple[int, ...], *, fan: int) -> nnx.Param:
    """A learned array, normal with the variance `1 / fan` to begin with."""
    return nnx.Param(fan**-0.5 * jax.random.normal(named(rngs, name).params(), shape))


def constant(value: float, *shape: int) -> nnx.Param:
    """A learned array, one number to begin with."""
    return nnx.Param(jnp.full(shape, value))


def like(array: nnx.Variable, x: Array) -> Array:
    """An array in the dtype of `x`."""
    return array[...].astype(x.dtype)
