"""Linear attention: the exponential of the softmax replaced by a kernel with few features."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention import kernel, stages
from attention.internals import contract

FeatureMap = Callable[..., Array]


@contract.primitive()
def elu_plus_one(x: Float[Array, "*B H"]) -> Float[Array, "*B H"]:
    """The feature map `phi(x) = elu(x) + 1`: x + 1 where x is positive, e^x elsewhere; always positive.

    Args:
        x: any array, taken element by element.

    Returns:
        An array of the same shape and dtype.

    Katharopoulos et al. (2020), "Transformers are RNNs".
    """
    positive = x > 0
    # Both branches of a `where` are differentiated: the unused one must not overflow.
    return jnp.where(positive, x + 1, jnp.exp(jnp.where(positive, 0.0, x)))


@stages.binding("feature_map")
@contract.primitive("is_causal", "block_size")
def linear_attention(
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    feature_map: FeatureMap = elu_plus_one,
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
    is_causal: bool = False,
    block_size: int = 128,
) -> Float[Array, "*B T N V"]:
    """Attention with weights `phi(q) . phi(k)`, divided by their sum: a kernel in place of a softmax.

    Equal to `attend` with the score `phi(q) . phi(k)` and weights divided by their sum, for
    `O((T + S) M V)` in time and `O((T + S) M)` in memory with M features. `linear_attention_step` is the
    causal form one position at a time. Head n of the query reads key and value head `n // (N / K)`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.
        value: `[*B S K V]`.
        feature_map: phi, a function of the last axis, `[*B L N H] -> [*B L N M]`, in float32 or wider.
            Features should not be negative: weights of both signs may sum to nearly 0. Bind the
            parameters of a learned one by name, as for a score of `attend`.
        mask: boolean, True where a key exists; `[*B 1 1 S]`, as `masks.padding` makes it.
        is_causal: show each query only the keys up to its own position; T equals S.
        block_size: how many positions the causal form takes at once; changes nothing but speed.

    Returns:
        The output `[*B T N V]` in the query's dtype; 0 for a query that sees no key, or whose weights
        are all 0.

    Raises:
        ValueError: shapes that do not fit, a mask that differs between queries or heads, is_causal
            where T differs from S.
        TypeError: dtypes that differ, a mask that is not boolean.

    Katharopoulos et al. (2020), "Transformers are RNNs: fast autoregressive transformers with linear
    attention".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_key_mask("linear attention", mask, shape)
    contract.check_at_least_one("block_size", block_size)
    if is_causal:
        contract.check_self_attention("causal linear attention", shape)
    return kernel.attention(
        query,
        key,
        value,
        *_features(feature_map),
        mask=mask,
        is_causal=is_causal,
        block_size=block_size,
    )


@stages.binding("feature_map")
@contract.primitive()
def linear_attention_start(
    key: Float[Array, "*B S K H"],
    value: Float[Array, "*B S K V"],
    *,
    feature_map: FeatureMap = elu_plus_one,
    mask: Bool[Array, "*#B 1 1 S"] | None = None,
) -> kernel.State:
    """The state of the recurrent form after some keys: a memory to be asked, or with S = 0 an empty one.

    Args:
        key: `[*B S K H]`.
        value: `[*B S K V]`.
        feature_map: as for `linear_attention`.
        mask: boolean, True where a key exists; `[*B 1 1 S]`.

    Returns:
        The sums over these keys, M features by V + 1 numbers per key head, whatever S is.

    Raises:
        ValueError: shapes that do not fit.
        TypeError: dtypes that differ, a mask that is not boolean.

    Katharopoulos et al. (2020), "Transformers are RNNs".
    """
    shape = contract.check_attention(key, key, value, mask=mask)
    contract.check_key_mask("linear attention", mask, shape)
    return kernel.start(key, value, _features(feature_map)[1], mask)


@stages.binding("feature_map")
@contract.primitive("block_size")
def linear_attention_step(
    state: kernel.State,
    query: Float[Array, "*B T N H"],
    key: Float[Array, "*B T K H"],
    value: Float[Array, "*B T K V"],
    *,
    feature_map: FeatureMap = elu_plus_one,
    mask: Bool[Array, "*#B 1 1 T"] | None = None,
    block_size: int = 128,
) -> tuple[Float[Array, "*B T N V"], kernel.State]:
    """The recurrent form, `state += phi(k) (v, 1)^T`, then `out = phi(q) . state`, one position or more.

    From an empty state and step by step, in steps of any length, it gives what causal `linear_attention`
    gives at once.

    Args:
        state: of the keys before, by `linear_attention_start` or an earlier step.
        query: the next T positions, often one, `[*B T N H]`.
        key: `[*B T K H]`, K divides N.
        value: `[*B T K V]`.
        feature_map: as for `linear_attention`.
        mask: boolean, True where a key exists; `[*B 1 1 T]`.
        block_size: as for `linear_attention`.

    Returns:
        The output `[*B T N V]` in the query's dtype, and the state after these keys.

    Raises:
        ValueError: shapes that do not fit each other or the state.
        TypeError: dtypes that differ, a mask that is not boolean.

    Katharopoulos et al. (2020), "Transformers are RNNs".
    """
    shape = contract.check_attention(query, key, value, mask=mask)
    contract.check_self_attention("a step of linear attention", shape)
    contract.check_key_mask("linear attention", mask, shape)
    contract.check_at_least_one("block_size", block_size)
    *batch, _, K, V = value.shape
    *leading, _, width = state.sums.shape
    if leading != [*batch, K] or width != V + 1:
        raise ValueError(
            f"state {state.sums.shape} is not one of values {value.shape}: "
            f"it must be [*B K M V+1], with {(*batch, K)} and {V + 1}"
        )
    return kernel.step(state, query, key, value, *_features(feature_map), mask, block_size)


def _features(feature_map: FeatureMap) -> tuple[kernel.QueryFeatures, kernel.KeyFeatures]:
    def features(x: Float[Array, "*B L N H"]) -> Float[Array, "*B L N M"]:
        made = feature_map(x)
        if made.shape[:-1] != x.shape[:-1]:
            raise ValueError(
                f"feature_map must change the last axis alone, but made {made.shape} from {x.shape}"
            )
        contract.check_floating(features=made, inputs=x)
        return made

    return features, lambda key: (features(key), None)
