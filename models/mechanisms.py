"""The attention mechanisms a config can name: `attention={"kind": "banded", "window": (15, 15)}`.

`build` makes a module of a row of `models.mechanism_kinds`. It holds the arrays that the mechanism needs
besides query, key and value, and is called like `attention.attend`.
"""

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

import attention
from attention.internals import grouped
from errors import UserError, unknown
from models.mechanism_kinds import KINDS, SIZES, Kind, normalizer, sizes

MECHANISMS = tuple(KINDS)

# What a call may bring, and what only a call of the function by hand can make use of.
CALL = ("mask", "bias", "dropout_rate", "dropout_key", "return_weights")
BY_HAND = ("query_offset", "centre", "lengths", "score", "favour", "sort", "feature_map", "return_logsumexp")


class Drawn(nnx.Variable):
    """Random numbers drawn at construction: never trained, the same in training and evaluation."""


class Mechanism(nnx.Module):
    """One mechanism with its options, learned arrays and drawn arrays.

    Args:
        kind: config word, one of `MECHANISMS`.
        options: arguments of the mechanism.
        num_heads: query heads N.
        num_kv_heads: key and value heads K.
        head_dim: width H of a head.
        rngs: source of the initial parameters and of what is drawn.

    Raises:
        UserError: on an option that the mechanism does not have, lacks or cannot work with.
    """

    def __init__(
        self,
        kind: str,
        options: Mapping[str, Any],
        *,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rngs: nnx.Rngs,
    ):
        row = KINDS[kind]
        self.kind = kind
        _check_options(kind, options)
        # As items, since what is static in a module must be hashable.
        self.options = tuple(sorted((name, _hashable(value)) for name, value in options.items()))
        length_of = sizes(num_heads, num_kv_heads, head_dim, options)
        for name, (axes, initial) in row.learned.items():
            shape = tuple(length_of[axis] for axis in axes.split())
            if isinstance(initial, str):
                values = length_of[initial] ** -0.5 * jax.random.normal(rngs.params(), shape)
            else:
                values = jnp.full(shape, initial)
            setattr(self, name, nnx.Param(values))
        for name, draw in row.drawn.items():
            chosen = _for(draw, dict(self.options))
            with _user_errors(kind):
                setattr(self, name, Drawn(draw(rngs.params(), num_heads, head_dim, **chosen)))
        self._try_out(num_heads, num_kv_heads, head_dim)

    def _try_out(self, num_heads: int, num_kv_heads: int, head_dim: int) -> None:
        """Trace a sequence of one vector: the mechanism itself says what options it cannot work with."""
        query = jnp.zeros((1, 1, num_heads, head_dim))
        key = jnp.zeros((1, 1, num_kv_heads, head_dim))
        with _user_errors(self.kind):
            if "normalize" in dict(self.options):
                jax.eval_shape(normalizer(dict(self.options)["normalize"]), jnp.zeros((1, 1, 1, 1)))
            jax.eval_shape(lambda *arrays: self(*arrays, mask=jnp.ones((1, 1, 1, 1), bool)), query, key, key)

    def __call__(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        *,
        mask: jax.Array | None = None,
        bias: jax.Array | None = None,
        dropout_rate: float = 0.0,
        dropout_key: jax.Array | None = None,
        return_weights: bool = False,
        query_offset: int | jax.Array | None = None,
        prepared: bool = False,
    ) -> Any:
        """Attend; arguments and result as of `attention.attend`.

        Besides, `query_offset` is the step of the first query, one integer or one for each batch element,
        where a mechanism counts steps; and `prepared` says that the keys come from `prepare`.

        Raises:
            UserError: on an argument that the mechanism cannot honour, or a sequence too long for it.
        """
        row, options = KINDS[self.kind], dict(self.options)
        arguments: dict[str, Any] = {"mask": mask}
        if bias is not None:
            arguments["bias"] = bias
        if dropout_rate > 0:
            arguments |= {"dropout_rate": dropout_rate, "dropout_key": dropout_key}
        if return_weights and row.pattern is None:
            arguments["return_weights"] = True
        if query_offset is not None:
            arguments["query_offset"] = query_offset
        for name in arguments:
            if not honours(self.kind, name):
                raise UserError(f"attention kind {self.kind!r} cannot honour {name}; {those_that_can(name)}")

        length = key.shape[-3]
        if options.get("max_length", length) < length:
            raise UserError(
                f"attention kind {self.kind!r} has max_length {options['max_length']}, "
                f"a sequence has {length} vectors"
            )
        arrays = self._arrays(length, query.dtype)
        if row.binds is None:
            arguments |= arrays
        else:
            name, function = row.binds
            if prepared and row.prepared is not None:
                _, function = row.prepared
                value = grouped.repeat(value, key.shape[-2])  # keys may have become one for each query head
            arguments[name] = jax.tree_util.Partial(function, **arrays)
        out = row.function(query, key, value, **arguments, **_for(row.function, options))
        if not return_weights or row.pattern is None:
            return out

        visible = row.pattern(length, **_for(row.pattern, options | arrays))
        scale = options.get("scale")
        scaled = query if scale is None else query * (scale * query.shape[-1] ** 0.5)
        mask = visible if mask is None else visible & mask
        return out, attention.attend(scaled, key, value, mask=mask, return_weights=True)[1]

    def prepare(self, key: jax.Array) -> jax.Array:
        """What the scores need of the keys, `[*B S K H]`, for any number of calls with `prepared=True`."""
        mapped = KINDS[self.kind].prepared
        return key if mapped is None else mapped[0](key, **self._arrays(key.shape[-3], key.dtype))

    def _arrays(self, length: int, dtype: Any) -> dict[str, jax.Array]:
        """The learned and drawn arrays by name, for a sequence of `length` keys."""
        row = KINDS[self.kind]
        arrays = {
            name: _cut(getattr(self, name)[...], axes, length) for name, (axes, _) in row.learned.items()
        } | {name: getattr(self, name)[...] for name in row.drawn}
        for name, array in arrays.items():
            if jnp.issubdtype(array.dtype, jnp.floating):
                arrays[name] = array.astype(dtype)
        return arrays


def build(
    attention: Mapping | None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    head_dim: int,
    rngs: nnx.Rngs,
) -> Mechanism:
    """The module for `{"kind": word, **options}`; None means `{"kind": "dot_product"}`.

    Args:
        attention: config block. `kind` is one of `MECHANISMS`; the options are those of the function of
            attention/ that it stands for, and where they apply `normalize` (a word of
            `models.mechanism_kinds.NORMALIZERS`, or `{"kind": word, **options}`), `max_length` (the longest
            sequence), `hidden_dim` and `rank` (by default the head's width).
        num_heads: query heads N.
        num_kv_heads: key and value heads K; None means N.
        head_dim: width H of a head.
        rngs: source of the initial parameters and of what is drawn.

    Raises:
        UserError: on an unknown kind, and as for `Mechanism`.
    """
    options = dict(attention or {})
    kind = kind_of(attention)
    options.pop("kind", None)
    return Mechanism(
        kind,
        options,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads or num_heads,
        head_dim=head_dim,
        rngs=rngs,
    )


def kind_of(attention: Mapping | None) -> str:
    """The config word of a block.

    Raises:
        UserError: if there is no such mechanism.
    """
    kind = dict(attention or {}).get("kind", "dot_product")
    if kind not in KINDS:
        raise unknown("attention kind", kind, KINDS)
    return kind


def honours(kind: str, argument: str) -> bool:
    """Whether a mechanism can do with `bias`, `dropout_rate` or `return_weights` what they say."""
    row = KINDS[kind]
    parameters = inspect.signature(row.function).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    by_pattern = argument == "return_weights" and row.pattern is not None
    return takes_all or by_pattern or argument in parameters


def those_that_can(argument: str) -> str:
    """The end of an error: which mechanisms can honour an argument."""
    return f"these can: {', '.join(kind for kind in KINDS if honours(kind, argument))}"


def _options(row: Kind) -> dict[str, bool]:
    """The names of the options of a mechanism, and whether each is needed."""
    arrays = row.learned.keys() | row.drawn.keys()
    found: dict[str, bool] = {}
    for function in (row.function, *row.drawn.values()):
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in {*CALL, *BY_HAND, *arrays}:
                found[name] = found.get(name, False) or parameter.default is inspect.Parameter.empty
    for axes, _ in row.learned.values():
        for axis, name in SIZES.items():
            if axis in axes:
                # Others are by default as wide as a head, but how long sequences get nobody can guess.
                found[name] = name in ("max_length", "max_distance")
    return found


def _check_options(kind: str, options: Mapping[str, Any]) -> None:
    allowed = _options(KINDS[kind])
    for name, value in options.items():
        if name not in allowed:
            raise unknown(f"argument of attention kind {kind!r}", name, allowed)
        if name in ("max_length", "features") or name in SIZES.values():
            least = 1 if allowed[name] else 0
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UserError(
                    f"attention kind {kind!r}: {name} is {value!r}; it must be a whole number from {least} on"
                )
    missing = [name for name, needed in allowed.items() if needed and name not in options]
    if missing:
        raise UserError(f"attention kind {kind!r} needs {', '.join(missing)}; it takes {', '.join(allowed)}")


def _hashable(value: Any) -> Any:
    """Lists, as of a config read back from JSON, as tuples; a mapping as its items."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return value
    if hasattr(value, "items"):
        return tuple(sorted((name, _hashable(v)) for name, v in value.items()))
    return tuple(_hashable(v) for v in value)


def _for(function, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a function takes by name."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in parameters}


def _cut(array: jax.Array, axes: str, length: int) -> jax.Array:
    """An array with its axes of positions cut to the length of a sequence."""
    return array[tuple(slice(length) if axis == "L" else slice(None) for axis in axes.split())]


@contextlib.contextmanager
def _user_errors(kind: str) -> Iterator[None]:
    """What a mechanism refuses, as the error of a config."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UserError(f"attention kind {kind!r}: {error}") from None
