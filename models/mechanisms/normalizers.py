"""How scores become weights, as words of a config: the functions of `attention.normalizers`."""

import dataclasses
from typing import Annotated, ClassVar

import jax

from attention import normalizers
from spec import Block, Range, Registry


@dataclasses.dataclass(frozen=True)
class Normalizer:
    """A function `(scores, mask) -> weights`, both `[*B N T S]`, with its options.

    Attributes:
        sums_to_1: whether the weights of a query that sees a key sum to 1.
    """

    sums_to_1: ClassVar[bool] = True

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights, 0 where masked."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Softmax(Normalizer):
    """`exp(a[s])` over their sum: `attention.normalizers.softmax`."""

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.softmax(scores, mask)


@dataclasses.dataclass(frozen=True)
class ReLU(Normalizer):
    """Scores above 0, 0 for the others: `attention.normalizers.relu`.

    Attributes:
        divide: divide by the number of keys that a query sees.
    """

    sums_to_1: ClassVar[bool] = False
    divide: bool = False

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.relu(scores, mask, divide=self.divide)


@dataclasses.dataclass(frozen=True)
class Sigmoid(Normalizer):
    """Each weight by its own score alone: `attention.normalizers.sigmoid`."""

    sums_to_1: ClassVar[bool] = False

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.sigmoid(scores, mask)


@dataclasses.dataclass(frozen=True)
class Identity(Normalizer):
    """The scores themselves: `attention.normalizers.identity`."""

    sums_to_1: ClassVar[bool] = False

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.identity(scores, mask)


@dataclasses.dataclass(frozen=True)
class Sparsemax(Normalizer):
    """The nearest weights that sum to 1, many of them 0: `attention.normalizers.sparsemax`."""

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.sparsemax(scores, mask)


@dataclasses.dataclass(frozen=True)
class Entmax(Normalizer):
    """Between softmax and sparsemax: `attention.normalizers.entmax`.

    Attributes:
        alpha: 1 is softmax, 2 is sparsemax; the larger, the more weights are 0.
    """

    alpha: Annotated[float, Range(1, 2)] = 1.5

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.entmax(scores, mask, alpha=self.alpha)


@dataclasses.dataclass(frozen=True)
class TopK(Normalizer):
    """Softmax over the largest scores of each query: `attention.normalizers.top_k`.

    Attributes:
        k: keys that a query attends to, at most.
    """

    k: int = 8

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.top_k(scores, mask, k=self.k)


@dataclasses.dataclass(frozen=True)
class Hardmax(Normalizer):
    """All weight on the largest score; no gradient reaches the scores: `attention.normalizers.hardmax`."""

    def __call__(self, scores: jax.Array, mask: jax.Array | None) -> jax.Array:
        """The weights."""
        return normalizers.hardmax(scores, mask)


NORMALIZERS = Registry(
    "normaliser",
    {
        "softmax": Softmax,
        "relu": ReLU,
        "sigmoid": Sigmoid,
        "identity": Identity,
        "sparsemax": Sparsemax,
        "entmax": Entmax,
        "top_k": TopK,
        "hardmax": Hardmax,
    },
)

Normalize = Annotated[Block, NORMALIZERS] | str
