"""A softmax that favours keys near a centre: `attention.localness` and `attention.local`."""

import math
from typing import Annotated, Any, ClassVar

import jax.numpy as jnp
from flax import nnx

import attention
from attention import local, localness
from attention.internals import contract
from models.mechanisms.base import Array, Mechanism, constant, like, normal
from spec import Natural, derived

WINDOW = 8.0  # positions, two standard deviations, to begin with


class Favouring(Mechanism):
    """Scaled dot products and a Gaussian bias around a centre."""

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "dropout_rate", "return_weights"})

    def _favour(self, query: Array, key: Array, lengths: Array | None) -> Array:
        """The bias `[*B N T S]`."""
        raise NotImplementedError

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
    ) -> Any:
        gaussian = self._favour(query, key, _lengths("localness", query, key, mask))
        return attention.dot_product_attention(
            query,
            key,
            value,
            mask=mask,
            bias=gaussian if bias is None else gaussian + bias.astype(gaussian.dtype),
            dropout_rate=dropout_rate,
            dropout_key=dropout_key,
            return_weights=return_weights,
        )


class Localness(Favouring):
    """A Gaussian around the query's own position, its window learned: `attention.localness.centred`."""

    def __init__(self, *, num_heads: int, num_kv_heads: int, head_dim: int, rngs: nnx.Rngs):
        del rngs
        self.log_window = constant(math.log(WINDOW), num_heads)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _favour(self, query: Array, key: Array, lengths: Array | None) -> Array:
        return localness.centred(query.shape[-3], window=_per_head(like(self.log_window, query)))


class LocalnessFixedWindow(Favouring):
    """A Gaussian of one window around a predicted centre: `attention.localness.fixed_window`.

    Args:
        hidden_dim: units of the layer that predicts the centre.
    """

    def __init__(
        self,
        *,
        hidden_dim: Annotated[int, derived(lambda head_dim: head_dim)],
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A = num_heads, head_dim, hidden_dim
        self.kernel = normal(rngs, "kernel", (N, H, A), fan=H)
        self.centre_vector = normal(rngs, "centre_vector", (N, A), fan=A)
        self.log_window = constant(math.log(WINDOW), N)
        self._try_out(N, num_kv_heads, H)

    def _favour(self, query: Array, key: Array, lengths: Array | None) -> Array:
        return localness.fixed_window(
            query,
            key.shape[-3],
            kernel=like(self.kernel, query),
            centre_vector=like(self.centre_vector, query),
            window=_per_head(like(self.log_window, query)),
            lengths=lengths,
        )


class LocalnessLayerWindow(Favouring):
    """A predicted centre, a window predicted for all queries alike: `attention.localness.layer_window`.

    Args:
        hidden_dim: units of the layers that predict centre and window.
    """

    def __init__(
        self,
        *,
        hidden_dim: Annotated[int, derived(lambda head_dim: head_dim)],
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A = num_heads, head_dim, hidden_dim
        self.kernel = normal(rngs, "kernel", (N, H, A), fan=H)
        self.centre_vector = normal(rngs, "centre_vector", (N, A), fan=A)
        self.window_kernel = normal(rngs, "window_kernel", (N, H, A), fan=H)
        self.window_vector = normal(rngs, "window_vector", (N, A), fan=A)
        self._try_out(N, num_kv_heads, H)

    def _favour(self, query: Array, key: Array, lengths: Array | None) -> Array:
        return localness.layer_window(
            query,
            key,
            kernel=like(self.kernel, query),
            centre_vector=like(self.centre_vector, query),
            window_kernel=like(self.window_kernel, query),
            window_vector=like(self.window_vector, query),
            lengths=lengths,
        )


class LocalnessQueryWindow(Favouring):
    """Centre and window predicted for each query: `attention.localness.query_window`.

    Args:
        hidden_dim: units of the layer that predicts centre and window.
    """

    def __init__(
        self,
        *,
        hidden_dim: Annotated[int, derived(lambda head_dim: head_dim)],
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A = num_heads, head_dim, hidden_dim
        self.kernel = normal(rngs, "kernel", (N, H, A), fan=H)
        self.centre_vector = normal(rngs, "centre_vector", (N, A), fan=A)
        self.window_vector = normal(rngs, "window_vector", (N, A), fan=A)
        self._try_out(N, num_kv_heads, H)

    def _favour(self, query: Array, key: Array, lengths: Array | None) -> Array:
        return localness.query_window(
            query,
            key.shape[-3],
            kernel=like(self.kernel, query),
            centre_vector=like(self.centre_vector, query),
            window_vector=like(self.window_vector, query),
            lengths=lengths,
        )


class LocalM(Mechanism):
    """A softmax over a window of keys around the query's own step: `attention.local.local_m`.

    Args:
        radius: keys on each side of the step that it sees.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "dropout_rate", "return_weights", "query_offset"})
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self, *, radius: Natural = 10, num_heads: int, num_kv_heads: int, head_dim: int, rngs: nnx.Rngs
    ):
        del rngs
        self.radius = radius
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
        return local.local_m(
            query,
            key,
            value,
            radius=self.radius,
            query_offset=query_offset,
            mask=mask,
            bias=bias,
            dropout_rate=dropout_rate,
            dropout_key=dropout_key,
            return_weights=return_weights,
        )


class LocalP(Mechanism):
    """A window around a predicted position, and a Gaussian on the weights in it: `attention.local.local_p`.

    Args:
        radius: keys on each side of the position that it sees, two standard deviations.
        renormalize: divide the weights by their sum; as published they sum to less than 1.
        hidden_dim: units of the layer that predicts the position.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "dropout_rate", "return_weights"})
    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        radius: int = 10,
        renormalize: bool = False,
        hidden_dim: Annotated[int, derived(lambda head_dim: head_dim)],
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A = num_heads, head_dim, hidden_dim
        self.radius, self.renormalize = radius, renormalize
        self.kernel = normal(rngs, "kernel", (N, H, A), fan=H)
        self.vector = normal(rngs, "vector", (N, A), fan=A)
        self._try_out(N, num_kv_heads, H)

    @property
    def sums_to_1(self) -> bool:
        """Whether the weights of a query that sees a key sum to 1."""
        return self.renormalize

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
    ) -> Any:
        return local.local_p(
            query,
            key,
            value,
            radius=self.radius,
            kernel=like(self.kernel, query),
            vector=like(self.vector, query),
            renormalize=self.renormalize,
            lengths=_lengths("local_p", query, key, mask),
            mask=mask,
            bias=bias,
            dropout_rate=dropout_rate,
            dropout_key=dropout_key,
            return_weights=return_weights,
        )


def _per_head(log_window: Array) -> Array:
    return jnp.exp(log_window).reshape(1, -1, 1)


def _lengths(mechanism: str, query: Array, key: Array, mask: Array | None) -> Array | None:
    """The true number of keys of each sequence, of a mask `[B 1 1 S]` with its padding at the end."""
    if mask is None:
        return None
    contract.check_key_mask(mechanism, mask, contract.scores_shape(query, key))
    count = jnp.sum(mask, axis=-1, dtype=jnp.int32)[..., 0, 0]
    return jnp.broadcast_to(count, query.shape[:-3])
