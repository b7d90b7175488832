"""Attention in three stages: score, normalise, weighted sum."""

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attention import normalizers, scores
from attention.internals import contract, dropout, grouped, unseen

Score = Callable[..., Array]
Normalizer = Callable[..., Array]


@dataclasses.dataclass(frozen=True)
class _WithOptions:
    """A function with options bound; equal options are equal, so one program serves them."""

    function: Callable[..., Any]
    options: tuple[tuple[str, Hashable], ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs, **dict(self.options))


def bind(function: Callable[..., Any]) -> jax.tree_util.Partial:
    """Make a function one that can cross `jax.jit`: parameters as leaves, options in its type.

    Args:
        function: a plain function; or one with arguments bound to it by `jax.tree_util.Partial` or
            `functools.partial`.
    """
    if not isinstance(function, functools.partial):
        return jax.tree_util.Partial(function)
    options = {k: v for k, v in function.keywords.items() if isinstance(v, bool | int | str)}
    parameters = {k: v for k, v in function.keywords.items() if k not in options}
    plain = _WithOptions(function.func, tuple(sorted(options.items())))
    return jax.tree_util.Partial(plain, *function.args, **parameters)


def binding(*names: str) -> Callable[[contract.Function], contract.Function]:
    """Let a compiled function, whose arguments are otherwise arrays, be given functions by these names."""

    def decorate(function: contract.Function) -> contract.Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = {name: bind(kwargs[name]) for name in names if name in kwargs}
            return function(*args, **kwargs | bound)

        return cast(contract.Function, call)

    return decorate


@binding("score", "normalize")
@contract.primitive("dropout_rate", "return_weights")
def attend(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    value: Float[Array, "*B S K V"],
    *,
    score: Score = scores.scaled_dot,
    normalize: Normalizer = normalizers.softmax,
    mask: Bool[Array, "*#B #N #T #S"] | None = None,
    bias: Float[Array, "*#B #N #T #S"] | None = None,
    dropout_rate: float = 0.0,
    dropout_key: PRNGKeyArray | None = None,
    return_weights: bool = False,
) -> Float[Array, "*B T N V"] | tuple[Float[Array, "*B T N V"], Float[Array, "*B N T S"]]:
    """Attention by any score and any normaliser, `out = normalize(score(q, k) + bias, mask) v`.

    Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N.
        value: `[*B S K V]`.
        score: a function `(query, key) -> scores [*B N T S]`, such as those of `attention.scores`.
            Bind the parameters of a learned one by name,
            `jax.tree_util.Partial(scores.general, kernel=W)`: arrays and floats are traced, so that
            they can be differentiated; booleans, integers and strings are compiled in.
        normalize: a function `(scores, mask) -> weights`, such as those of `attention.normalizers`;
            bind its options in the same way.
        mask: boolean, True where a query may attend; `[*B N T S]`, or 1 in any axis. Made by
            `attention.masks`.
        bias: added to the scores, -inf means masked; `[*B N T S]`, or 1 in any axis.
        dropout_rate: share of the weights set to 0, in [0, 1).
        dropout_key: a key of `jax.random.key`, needed where the rate is above 0. At rate 0 it drops
            nothing.
        return_weights: return the weights, before dropout, as well.

    Returns:
        The output `[*B T N V]` in the query's dtype; with `return_weights` a pair of it and the
        weights `[*B N T S]`, in float32 or wider. A row that sees no key has output 0 and weights
        0. What a masked key or value holds, NaN included, changes nothing; a visible one that is
        not finite makes the output of the queries that see it NaN.

    Raises:
        ValueError: shapes that do not fit, a rate outside [0, 1), a missing dropout key.
        TypeError: dtypes that differ, a mask that is not boolean.

    Vaswani et al. (2017), "Attention is all you need"; Bahdanau, Cho and Bengio (2015), "Neural
    machine translation by jointly learning to align and translate".
    """
    shape = contract.check_attention(
        query,
        key,
        value,
        same_width=False,
        mask=mask,
        bias=bias,
        dropout_rate=dropout_rate,
        dropout_key=dropout_key,
    )
    visible, bias = unseen.split_bias(mask, bias)
    finite = unseen.take_out(query, key, value, visible)

    logits = score(finite.query, finite.key)
    contract.check_scores("score", logits, shape)
    if bias is not None:
        logits = logits + bias.astype(logits.dtype)
    weights = normalize(logits, visible)
    contract.check_scores("normalize", weights, shape)
    kept = dropout.drop(weights, dropout_rate, dropout_key)
    sums = finite.restore_sums(grouped.sums(kept, finite.value))

    out = jnp.swapaxes(sums, -2, -3).astype(query.dtype)
    return (out, finite.restore_weights(weights)) if return_weights else out
