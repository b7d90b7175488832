"""What a mechanism says of itself to be held to the identities, and what those are tried with."""

import dataclasses
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from tests.attention import oracle


class Sizes(NamedTuple):
    """All different, so that a swapped axis fails."""

    B: int = 3
    T: int = 5
    S: int = 7
    N: int = 4
    K: int = 2
    H: int = 6
    V: int = 8

    @property
    def arrays(self):
        """The shapes of query, key and value."""
        B, T, S, N, K, H, V = self
        return (B, T, N, H), (B, S, K, H), (B, S, K, V)

    @property
    def scores(self):
        return self.B, self.N, self.T, self.S


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """One row of the catalogue as the identities see it.

    Attributes:
        name: unique.
        call: `(query, key, value, *, mask=None, bias=None) -> out`, with whatever else it needs bound. It
            must work for any sizes: parameters are made with `parameter` from the shapes of the arguments.
        weights: the oracle, `(query, key, visible, bias) -> weights [B N T S]` in float64 numpy, written
            independently of the implementation. `visible` and `bias` are full `[B N T S]` arrays; `visible`
            has the mask and the pattern in it. Where every channel has weights of its own, [B N T S V].
        beside: what it adds to the weighted sum of the values, `(weights, V) -> [B T N V]`.
        mask: what a mask may say. "any": which query sees which key. "keys": which keys exist.
            "positions": which positions exist, as keys and as queries.
        bias: whether it takes one.
        square: whether T must equal S.
        one_width: whether H must equal V.
        bag_of_words: whether, without encodings of positions, the order of the keys does not matter.
        pattern: `(T, S) -> bool [T S]`, who may see whom by the mechanism's own making.
        causal: whether query t sees the keys up to t at most without a mask that says so.
        with_block_size: `block_size -> call`, all of which give the same result.
        with_window: `window -> call`, all of which give different results.
        random: whether it draws noise of the shape of the scores, so another one for an element than a batch.
        differentiable: whether its gradient is that of its output, which a straight-through one is not.
        shift_invariant: whether adding a number to all scores changes nothing.
        own_derivative: whether it has a rule of differentiation of its own, which has to have a derivative.
        lean: whether it is `attend` with a score, a normaliser or a bias that never sees what is masked, so
            that other rows have the proofs about masks, batches and the order of keys, and this one is held
            to its oracle, its derivatives and its precision. A normaliser's use of the mask is in
            test_normalizers.py.
        rtol: relative precision of its float32 results.
    """

    name: str
    call: Callable[..., Any]
    weights: Callable[..., Any] = oracle.weights  # of softmax on scaled dot products
    beside: Callable[..., Any] | None = None
    mask: Literal["any", "keys", "positions"] = "any"
    bias: bool = True
    square: bool = False
    one_width: bool = False
    bag_of_words: bool = True
    pattern: Callable[[int, int], Any] | None = None
    causal: bool = False
    with_block_size: Callable[[int], Callable[..., Any]] | None = None
    with_window: Callable[[tuple[int, int]], Callable[..., Any]] | None = None
    random: bool = False
    differentiable: bool = True
    shift_invariant: bool = False
    own_derivative: bool = False
    lean: bool = False
    rtol: float = 1e-5

    @property
    def sizes(self) -> Sizes:
        return self.fit(Sizes(T=7) if self.square else Sizes())

    def fit(self, sizes: Sizes) -> Sizes:
        """The sizes nearest to these which the mechanism takes."""
        sizes = sizes._replace(T=sizes.S) if self.square else sizes
        return sizes._replace(V=sizes.H) if self.one_width else sizes

    def expected(self, query, key, value, mask=None, bias=None):
        """Output `[B T N V]` and weights by the oracle."""
        query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
        (B, T, N, _), S = query.shape, value.shape[1]
        visible = np.broadcast_to(True if mask is None else mask, (B, N, T, S))
        if self.pattern is not None:
            visible = visible & self.pattern(T, S)
        bias = np.broadcast_to(0.0 if bias is None else np.asarray(bias, np.float64), (B, N, T, S))
        weights = self.weights(query, key, visible, bias)
        return self.output(weights, value), weights

    def output(self, weights, value):
        """Output `[B T N V]` of given weights."""
        sums = weighted_sum(weights, value)
        return sums if self.beside is None else sums + self.beside(weights, value.shape[-1])

    def narrow(self, mask):
        """A mask `[B N T S]` cut down to what the mechanism may be told: for keys, the last query's view."""
        if self.mask == "any":
            return mask
        B, _, T, S = mask.shape
        return mask[:, :1, -1:] if T else np.ones((B, 1, 1, S), bool)

    def seen(self, mask):
        """The mask of scores `[B N T S]` that `narrow(mask)` stands for."""
        seen = np.broadcast_to(self.narrow(mask), mask.shape)
        return seen if self.pattern is None else seen & self.pattern(*mask.shape[-2:])


def weighted_sum(weights, value):
    """Output `[B T N V]` of weights `[B N T S]`, or `[B N T S V]` where channels have their own."""
    values = np.repeat(np.asarray(value, np.float64), weights.shape[1] // value.shape[2], axis=2)
    return np.einsum("bntsv,bsnv->btnv" if weights.ndim == 5 else "bnts,bsnv->btnv", weights, values)


def parameter(name: str, *shape: int) -> np.ndarray:
    """A learned parameter, always the same for one name and shape, which bfloat16 holds exactly."""
    draw = np.random.default_rng(zlib.crc32(repr((name, shape)).encode()))
    return np.round(16 * draw.normal(size=shape)) / 16


def draw(*shapes, dtype=np.float32, seed=0):
    """Arrays of numpy, since every operation of JAX outside a program is a program of its own to compile."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def changed(array, index, value):
    """A copy with something else at an index."""
    array = np.array(array)
    array[index] = value
    return array


def random_mask(sizes: Sizes):
    """A mask in which the first query sees nothing, the second one everything, the last all but one key."""
    mask = np.random.default_rng(2).random(sizes.scores) < 0.6
    mask[:, :, 0], mask[:, :, 1], mask[:, :, -1] = False, True, True
    mask[:, :, -1, 3] = False
    return mask


def padding_mask(sizes: Sizes, lengths):
    """Hide all but the first keys of each sequence, `[B N T S]`."""
    shown = np.arange(sizes.S) < np.reshape(lengths, (-1, 1, 1, 1))
    return np.broadcast_to(shown, sizes.scores).copy()


class Evaluated(NamedTuple):
    """What is asked of a mechanism, in numpy."""

    out: np.ndarray
    d_query: np.ndarray
    d_key: np.ndarray
    d_value: np.ndarray
    d_bias: np.ndarray
    tangent: np.ndarray
    mapped: np.ndarray

    @property
    def gradients(self):
        return self[1:5]


@partial(jax.jit, static_argnums=0)
def _evaluated(mechanism, form, mask, primals, tangents):
    def call(query, key, value, bias, mask):
        given = {"bias": bias} if mechanism.bias else {}
        return mechanism.call(query, key, value, mask=mask, **given)

    def mapped(*primals):
        return jax.vmap(call)(*primals, mask)

    out, pull = jax.vjp(partial(call, mask=mask), *primals)
    # Forwards over a map, backwards over a batch.
    found, tangent = jax.jvp(partial(call, mask=mask) if mechanism.random else mapped, primals, tangents)
    return Evaluated(out, *pull(form), tangent, found)


def directions(mechanism, seed):
    """Where to differentiate towards: in query, key, value and bias."""
    *arrays, bias = draw(*mechanism.sizes.arrays, mechanism.sizes.scores, dtype=np.float64, seed=seed)
    return *arrays, bias * mechanism.bias


def evaluate(mechanism, arrays, mask=None, bias=0.0, rows=slice(None)) -> Evaluated:
    """The output; gradients of a random form on some of its queries; the tangent; and the map over a batch.

    In float64, and in one shape for all tests, so that one program serves them.
    """
    sizes = mechanism.sizes
    B, T, _, N, _, _, V = sizes
    mask = np.ones(sizes.scores, bool) if mask is None else np.broadcast_to(mask, sizes.scores)
    mask = mechanism.narrow(mask)
    form = np.zeros((B, T, N, V))
    form[:, rows] = draw(form.shape, dtype=np.float64, seed=3)[0][:, rows]
    if mechanism.mask == "positions":
        form = form * mask[:, 0, 0, :, None, None]
    primals = (*(np.asarray(x, np.float64) for x in arrays), np.broadcast_to(np.float64(bias), sizes.scores))
    with jax.enable_x64(True):
        found = _evaluated(mechanism, form, mask, primals, directions(mechanism, 6))
        return Evaluated(*map(np.asarray, found))
