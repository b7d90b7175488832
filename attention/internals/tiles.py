"""The scores of one key head cut into tiles, for `attention.blockwise`: how, and how to walk through them.

A tile is the scores of a block of queries with a block of keys. What belongs to queries, to keys and to both
is cut in the same way, and nothing that is the same for several tiles is ever written out for each.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

# The quickest blocks of each pass over heads of 1024 to 8192 positions of width 64, of 256 to 2048 rows and
# 512 to 8192 keys, on two cores with 1 MiB of second-level cache each; with twice as many rows or keys the
# times differ by less than 5 %, with half as many by 10 %. With a band smaller blocks of keys are quicker:
# more of them are skipped.
_ROWS, KEYS_FORWARD, KEYS_TANGENT, _KEYS_BANDED = 1024, 2048, 1024, 512

Band = tuple[int | None, int | None]
Masks = tuple[Bool[Array, "..."], ...]  # True where a query may attend in all of them


class Plan(NamedTuple):
    """What is known while tracing: who may see whom by position, and how the lengths are cut up.

    Attributes:
        band: how many keys before and after its own position a query sees, None for no limit.
        at_start: whether the first query stands at the first key, by default and so for certain.
        block_size: queries and keys per block, None for the quickest.
        scale: factor on the dot products.
        group: number of query heads that share a key head.
    """

    band: Band | None
    at_start: bool
    block_size: int | None
    scale: float
    group: int
    T: int
    S: int

    @property
    def queries(self) -> int:
        """Queries per block; those of all heads of a group meet a block of keys together."""
        return _even(self.T, self.block_size or max(_ROWS // self.group, 1))

    def keys(self, usual: int) -> int:
        """Keys per block."""
        return _even(self.S, self.block_size or (usual if self.band is None else _KEYS_BANDED))


def _even(length: int, block: int) -> int:
    """The size of the fewest blocks no larger than `block`, with as little as possible to fill up."""
    return math.ceil(length / math.ceil(length / block))


class Tiles:
    """The scores `[G T S]` of one key head cut into tiles, and who sees whom in each of them.

    Attributes:
        grid: how many blocks of queries and of keys there are.
    """

    def __init__(self, plan: Plan, keys: int) -> None:
        self.plan, self.queries, self.keys = plan, plan.queries, keys
        self.grid = math.ceil(plan.T / self.queries), math.ceil(plan.S / keys)

    def by_rows(self, x: Shaped[Array, "*L G T H"]) -> Shaped[Array, "*L I R H"]:
        """What belongs to queries, cut into blocks whose rows are the queries of all heads."""
        tiles = _cut(x, x.ndim - 2, self.queries, self.plan.T, x.ndim - 3)
        return tiles.reshape(*tiles.shape[:-3], -1, tiles.shape[-1])

    def from_rows(self, x: Shaped[Array, "*L I R H"]) -> Shaped[Array, "*L G T H"]:
        """The way back."""
        *lead, count, _, H = x.shape
        x = jnp.moveaxis(x.reshape(*lead, count, self.plan.group, self.queries, H), -4, -3)
        return x.reshape(*lead, self.plan.group, -1, H)[..., : self.plan.T, :]

    def by_columns(self, x: Array, axis: int) -> Array:
        """What belongs to keys, cut into blocks; the same for every block of queries."""
        lead = x.ndim - 2
        return jnp.expand_dims(_cut(x, axis % x.ndim, self.keys, self.plan.S, lead), lead)

    def by_both(self, x: Array | None) -> Array | None:
        """A mask or bias `[*L #G #T #S]` as `[*L I J #G #queries #keys]`, 1 where it does not vary."""
        if x is None:
            return None
        lead = x.ndim - 3
        x = _cut(x, x.ndim - 1, self.keys, self.plan.S, lead)
        return _cut(x, x.ndim - 2, self.queries, self.plan.T, lead)

    def by_index(self, lead: int) -> Int[Array, "*L I"]:
        """The number of each block of queries."""
        return jnp.arange(self.grid[0], dtype=jnp.int32).reshape(*(1,) * lead, -1)

    def needed(self, i: Array, offset: Array | None) -> tuple[Any, Any]:
        """From which to before which block of keys a block of queries sees anything by position."""
        if self.plan.band is None or offset is None:
            return 0, self.grid[1]
        left, right = self.plan.band
        first = offset + i * self.queries
        last = first + self.queries - 1
        count = self.grid[1]
        start = 0 if left is None else jnp.clip((first - left) // self.keys, 0, count)
        stop = count if right is None else jnp.clip((last + right) // self.keys + 1, 0, count)
        return start, stop

    def visible(
        self, i: Array, j: Any, offset: Array | None, masks: Masks
    ) -> Bool[Array, "#G #queries #keys"] | None:
        """Which query of block i sees which key of block j; None if all see all."""
        rules = list(masks)
        key = (j * self.keys + jnp.arange(self.keys, dtype=jnp.int32))[None, None, :]
        if self.plan.S % self.keys:
            rules.append(key < self.plan.S)
        if self.plan.band is not None and offset is not None:
            left, right = self.plan.band
            position = offset + i * self.queries + jnp.arange(self.queries, dtype=jnp.int32)
            ahead = key - position[None, :, None]
            rules += [] if left is None else [ahead >= -left]
            rules += [] if right is None else [ahead <= right]
        return functools.reduce(jnp.logical_and, rules) if rules else None

    def scores(self, row: Any, column: Any, j: Any) -> Float[Array, "R keys"]:
        """One tile of scores, -inf where hidden."""
        scores = row["query"] @ column["key"].T
        visible = self.visible(row["i"], j, row["offset"], column["masks"])
        if visible is None:
            return scores
        scores = scores.reshape(self.plan.group, self.queries, self.keys)
        if column["bias"] is not None:
            scores = scores + column["bias"].astype(scores.dtype)
        return jnp.where(visible, scores, -jnp.inf).reshape(-1, self.keys)


def by_key_head(x: Array, N: int, K: int) -> Array:
    """A mask or bias `[*B #N T S]` with its heads grouped, `[*B #K #G T S]`."""
    *batch, n, t, s = x.shape
    return x.reshape(*batch, *((1, 1) if n == 1 else (K, N // K)), t, s)


def _cut(x: Array, axis: int, block: int, whole: int, to: int) -> Array:
    """Cut an axis into blocks, the last one filled up with zeros, and count them along a new axis `to`.

    An axis of size 1 that stands for all of `whole` is one block for all.
    """
    length = x.shape[axis]
    if length != whole:
        return jnp.expand_dims(x, to)
    count = math.ceil(length / block)
    fill = [(0, 0)] * x.ndim
    fill[axis] = (0, count * block - length)
    x = jnp.pad(x, fill).reshape(*x.shape[:axis], count, block, *x.shape[axis + 1 :])
    return jnp.moveaxis(x, axis, to)


def pick(columns: Any, j: Any) -> Any:
    """Block j of each array, or the one block that stands for all."""
    return jax.tree.map(
        lambda x: x[0] if x.shape[0] == 1 else jax.lax.dynamic_index_in_dim(x, j, keepdims=False), columns
    )


def each_head(
    function: Callable[..., Any],
    sizes: Sequence[int],
    arguments: dict[str, Any],
    places: dict[str, int],
    out_places: Any,
) -> Any:
    """Apply a function to every head of every sequence, and put what it gives where that belongs.

    On a CPU each head is cut out of the arrays as they lie when its turn comes: to bring the heads of all
    sequences to the front, and back afterwards, takes a quarter of the time of attention.

    Args:
        function: of the share of one head in every argument.
        sizes: of the batch axes, and the number of heads.
        arguments: arrays, or trees of them, with the batch axes first; 1 in any axis stands for all.
        places: which axis counts the heads, the first after those of the batch being 0; 0 if not named.
        out_places: the same for what the function gives.
    """
    dims = len(sizes) - 1

    def head(*index: Any) -> Any:
        def share(x: Array, place: int) -> Array:
            for axis, i in ((dims + place, index[-1]), *reversed(list(enumerate(index[:-1])))):
                x = jax.lax.dynamic_index_in_dim(x, 0 if x.shape[axis] == 1 else i, axis, keepdims=False)
            return x

        return function(
            **{
                name: jax.tree.map(functools.partial(share, place=places.get(name, 0)), argument)
                for name, argument in arguments.items()
            }
        )

    if jax.default_backend() != "cpu":  # An accelerator wants many at once.
        for level in reversed(range(len(sizes))):
            varies = [0 if level == other else None for other in range(len(sizes))]
            head = jax.vmap(head, varies, out_places if level == dims else 0)
        return head(*map(jnp.arange, sizes))

    def put(whole: Array, x: Array, place: int, index: Sequence[Any]) -> Array:
        axes = (*range(dims), dims + place)
        at = dict(zip(axes, index, strict=True))
        x = jnp.expand_dims(x, axes)
        return jax.lax.dynamic_update_slice(whole, x, [at.get(axis, 0) for axis in range(x.ndim)])

    def step(n: Any, wholes: Any) -> Any:
        index = jnp.unravel_index(n, sizes)
        return jax.tree.map(functools.partial(put, index=index), wholes, head(*index), out_places)

    def room(x: Any, place: int) -> Array:
        shape = [*sizes[:-1], *x.shape]
        shape.insert(dims + place, sizes[-1])
        return jnp.zeros(shape, x.dtype)

    wholes = jax.tree.map(room, jax.eval_shape(head, *(0,) * len(sizes)), out_places)
    return jax.lax.fori_loop(0, math.prod(sizes), step, wholes)


def each(function: Callable[..., Any], sizes: Sequence[int], *arguments: Any) -> Any:
    """Apply a function at every index of leading axes, the last of them block by block.

    Equal to broadcasting all arguments to `sizes` and mapping over them, without broadcasting.
    """
    if not sizes:
        return function(*arguments)
    size, *rest = sizes
    if size == 1:
        out = each(function, rest, *jax.tree.map(lambda x: x[0], arguments))
        return jax.tree.map(lambda x: x[None], out)
    varying, join = _split(arguments, size)

    def one(some: list[Array]) -> Any:
        return each(function, rest, *join(some))

    # A CPU is kept busy by one head; an accelerator wants many at once.
    if rest and jax.default_backend() != "cpu":
        return jax.vmap(one)(varying)
    return jax.lax.map(one, varying)


def sum_over_blocks(function: Callable[..., Any], size: int, columns: Any) -> Any:
    """The sum of a function of every block and its number."""
    varying, join = _split(columns, size)

    def step(total: Any, at: Any) -> tuple[Any, None]:
        some, j = at
        return jax.tree.map(jnp.add, total, function(join(some), j)), None

    first = jax.eval_shape(lambda: function(pick(columns, 0), 0))
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), first)
    return jax.lax.scan(step, zero, (varying, jnp.arange(size, dtype=jnp.int32)))[0]


def _split(arguments: Any, size: int) -> tuple[list[Array], Callable[[list[Array]], Any]]:
    """The arrays that vary along a leading axis, and how to join what one index has with the others."""
    leaves, tree = jax.tree.flatten(arguments)
    varies = [x.shape[0] == size for x in leaves]

    def join(some: list[Array]) -> Any:
        chosen = iter(some)
        return jax.tree.unflatten(
            tree, (next(chosen) if v else x[0] for x, v in zip(leaves, varies, strict=True))
        )

    return [x for x, v in zip(leaves, varies, strict=True) if v], join
