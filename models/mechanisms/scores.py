"""Any score with any normaliser: `attention.attend`."""

import math
from typing import Annotated, Any, ClassVar, Literal

import jax.numpy as jnp
from flax import nnx
from jax.tree_util import Partial

import attention
from attention import scores, synthesizer
from attention.internals import grouped
from models.mechanisms.base import Array, Mechanism, constant, like, normal
from models.mechanisms.normalizers import NORMALIZERS, Normalize, Normalizer, Softmax
from spec import derived


class Scored(Mechanism):
    """`normalize(score(query, key) + bias, mask) value`.

    Attributes:
        normalize: how scores become weights.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"bias", "dropout_rate", "return_weights"})
    normalize: Normalizer

    @property
    def sums_to_1(self) -> bool:
        """Whether the weights of a query that sees a key sum to 1."""
        return self.normalize.sums_to_1

    def _score(self, query: Array, key: Array) -> Partial:
        """The score, its arrays bound to it."""
        raise NotImplementedError

    def _score_of_prepared(self, query: Array) -> Partial:
        """The score of keys that `prepare` made, where it makes some."""
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
        prepared: bool = False,
    ) -> Any:
        if prepared:
            value = grouped.repeat(value, key.shape[-2])  # keys may have become one for each query head
        return attention.attend(
            query,
            key,
            value,
            score=self._score_of_prepared(query) if prepared else self._score(query, key),
            normalize=self.normalize,
            mask=mask,
            bias=bias,
            dropout_rate=dropout_rate,
            dropout_key=dropout_key,
            return_weights=return_weights,
        )


class DotProduct(Scored):
    """Scaled dot products: `attention.dot_product_attention`, for a softmax.

    Args:
        implementation: how a softmax is computed; "auto" chooses by device, size and dtype.
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        implementation: Literal["auto", "dense", "blockwise", "cudnn"] = "auto",
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.implementation: Any = implementation
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        if implementation != "auto" and self.normalize != Softmax():
            raise ValueError(f"implementation {implementation!r} is of the normaliser softmax alone")
        if implementation != "cudnn":  # which depends on the device, and on the dtype and the mask of a call
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
        prepared: bool = False,
    ) -> Any:
        del prepared
        arguments: dict[str, Any] = {
            "mask": mask,
            "bias": bias,
            "dropout_rate": dropout_rate,
            "dropout_key": dropout_key,
            "return_weights": return_weights,
        }
        if self.normalize == Softmax():
            return attention.dot_product_attention(
                query, key, value, implementation=self.implementation, **arguments
            )
        return attention.attend(query, key, value, normalize=self.normalize, **arguments)


class Dot(Scored):
    """Dot products without a scale: `attention.scores.dot`.

    Args:
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(scores.dot)


class Cosine(Scored):
    """Cosines, times a learned number for each head: `attention.scores.cosine`.

    Args:
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.log_sharpness = constant(math.log(10.0), num_heads)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(_sharpened_cosine, log_sharpness=like(self.log_sharpness, query))


def _sharpened_cosine(query: Array, key: Array, *, log_sharpness: Array) -> Array:
    heads = (1,) * (query.ndim - 3) + (-1, 1, 1)
    return scores.cosine(query, key) * jnp.exp(log_sharpness).reshape(heads)


class General(Scored):
    """A bilinear form for each head: `attention.scores.general`.

    Args:
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True
    can_prepare: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.kernel = normal(rngs, "kernel", (num_heads, head_dim, head_dim), fan=head_dim**2)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def prepare(self, key: Array) -> Array:
        """`W k`, one for each query head."""
        kernel = like(self.kernel, key)
        return jnp.einsum("...snk,nhk->...snh", grouped.repeat(key, len(kernel)), kernel)

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(scores.general, kernel=like(self.kernel, query))

    def _score_of_prepared(self, query: Array) -> Partial:
        return Partial(scores.dot)


class Additive(Scored):
    """A perceptron on the sum of mapped query and key: `attention.scores.additive`.

    Args:
        hidden_dim: units of the hidden layer.
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True
    can_prepare: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_dim: int = 32,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, K, H, A = num_heads, num_kv_heads, head_dim, hidden_dim
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.query_kernel = normal(rngs, "query_kernel", (N, H, A), fan=H)
        self.key_kernel = normal(rngs, "key_kernel", (K, H, A), fan=H)
        self.bias = constant(0.0, N, A)
        self.vector = normal(rngs, "vector", (N, A), fan=A)
        self._try_out(N, K, H)

    def prepare(self, key: Array) -> Array:
        """`Wk k`."""
        return jnp.einsum("...skh,kha->...ska", key, like(self.key_kernel, key))

    def _score(self, query: Array, key: Array) -> Partial:
        return self._bound(query, like(self.key_kernel, query))

    def _score_of_prepared(self, query: Array) -> Partial:
        return self._bound(query, None)

    def _bound(self, query: Array, key_kernel: Array | None) -> Partial:
        return Partial(
            scores.additive,
            query_kernel=like(self.query_kernel, query),
            key_kernel=key_kernel,
            bias=like(self.bias, query),
            vector=like(self.vector, query),
        )


class Concat(Scored):
    """A perceptron on query and key laid end to end: `attention.scores.concat`.

    Args:
        hidden_dim: units of the hidden layer.
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True
    can_prepare: ClassVar[bool] = True

    def __init__(
        self,
        *,
        hidden_dim: int = 32,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A = num_heads, head_dim, hidden_dim
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.kernel = normal(rngs, "kernel", (N, 2 * H, A), fan=2 * H)
        self.vector = normal(rngs, "vector", (N, A), fan=A)
        self._try_out(N, num_kv_heads, H)

    def prepare(self, key: Array) -> Array:
        """The keys' part of `W [q; k]`, one for each query head."""
        kernel = like(self.kernel, key)
        keys = grouped.repeat(key, len(kernel))
        return jnp.einsum("...snh,nha->...sna", keys, kernel[:, -key.shape[-1] :])

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(scores.concat, kernel=like(self.kernel, query), vector=like(self.vector, query))

    def _score_of_prepared(self, query: Array) -> Partial:
        vector = like(self.vector, query)
        return Partial(
            scores.additive,
            query_kernel=like(self.kernel, query)[:, : query.shape[-1]],
            key_kernel=None,
            bias=jnp.zeros_like(vector),
            vector=vector,
        )


class NegativeSquaredDistance(Scored):
    """How near a key is to the query: `attention.scores.negative_squared_distance`.

    Args:
        normalize: how scores become weights.
    """

    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        del rngs
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(scores.negative_squared_distance)


class Location(Scored):
    """A score of positions by the query alone: `attention.scores.location`.

    Args:
        max_length: vectors in the longest sequence.
        normalize: how scores become weights.
    """

    reads: ClassVar[tuple[str, ...]] = ("query",)
    by_place: ClassVar[bool] = True
    in_recurrent: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_length: int = 512,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.max_length = max_length
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.kernel = normal(rngs, "kernel", (num_heads, head_dim, max_length), fan=head_dim)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        return Partial(scores.location, kernel=like(self.kernel, query)[..., : key.shape[-3]])


class SynthesizerDense(Scored):
    """Scores of positions by a perceptron on the query alone: `attention.synthesizer.dense`.

    Args:
        max_length: vectors in the longest sequence.
        hidden_dim: units of the hidden layer.
        normalize: how scores become weights.
    """

    reads: ClassVar[tuple[str, ...]] = ("query",)
    by_place: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_length: int = 512,
        hidden_dim: Annotated[int, derived(lambda head_dim: head_dim)],
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        N, H, A, L = num_heads, head_dim, hidden_dim, max_length
        self.max_length = max_length
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.hidden_kernel = normal(rngs, "hidden_kernel", (N, H, A), fan=H)
        self.hidden_bias = constant(0.0, N, A)
        self.kernel = normal(rngs, "kernel", (N, A, L), fan=A)
        self.bias = constant(0.0, N, L)
        self._try_out(N, num_kv_heads, H)

    def _score(self, query: Array, key: Array) -> Partial:
        length = key.shape[-3]
        return Partial(
            synthesizer.dense,
            hidden_kernel=like(self.hidden_kernel, query),
            hidden_bias=like(self.hidden_bias, query),
            kernel=like(self.kernel, query)[..., :length],
            bias=like(self.bias, query)[..., :length],
        )


class SynthesizerRandom(Scored):
    """Scores that are learned themselves, one for each pair of positions: `attention.synthesizer.random`.

    Args:
        max_length: vectors in the longest sequence.
        normalize: how scores become weights.
    """

    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        max_length: int = 512,
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.max_length = max_length
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        self.matrix = normal(rngs, "matrix", (num_heads, max_length, max_length), fan=max_length)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        length = key.shape[-3]
        return Partial(synthesizer.random, matrix=like(self.matrix, query)[:, :length, :length])


class SynthesizerFactorized(Scored):
    """Learned scores of pairs of positions, of low rank: `attention.synthesizer.factorized_random`.

    Args:
        max_length: vectors in the longest sequence.
        rank: of the matrix of scores.
        normalize: how scores become weights.
    """

    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        max_length: int = 512,
        rank: Annotated[int, derived(lambda head_dim: head_dim)],
        normalize: Normalize = "softmax",
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        self.max_length = max_length
        self.normalize = NORMALIZERS.build(normalize, "normalize")
        shape = (num_heads, max_length, rank)
        self.query_factor = normal(rngs, "query_factor", shape, fan=rank)
        self.key_factor = normal(rngs, "key_factor", shape, fan=rank)
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _score(self, query: Array, key: Array) -> Partial:
        length = key.shape[-3]
        return Partial(
            synthesizer.factorized_random,
            query_factor=like(self.query_factor, query)[:, :length],
            key_factor=like(self.key_factor, query)[:, :length],
        )
