"""Scores: how well each query matches each key, `(query, key, *parameters) -> scores [*B N T S]`.

Any function of this form can be given to `attention.attend`. The parameters of a learned score are
arrays, bound by name:

    attend(q, k, v, score=jax.tree_util.Partial(scores.general, kernel=W))

Head n of the query reads key head `n // (N / K)`. Scores are computed and returned in float32, or
in float64 for float64 inputs.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.internals import contract, grouped


@contract.primitive()
def dot(query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"]) -> Float[Array, "*B N T S"]:
    """The dot product, `score = q . k`.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    contract.check_query_key(query, key, same_width=True)
    return grouped.products(query, key)


@contract.primitive()
def scaled_dot(query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"]) -> Float[Array, "*B N T S"]:
    """The scaled dot product, `score = q . k / sqrt(H)`.

    The scale keeps the variance of a score at 1 when the features of q and k have variance 1.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Vaswani et al. (2017), "Attention is all you need".
    """
    contract.check_query_key(query, key, same_width=True)
    return grouped.products(query, key, scale=max(query.shape[-1], 1) ** -0.5)


@contract.primitive()
def cosine(query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"]) -> Float[Array, "*B N T S"]:
    """The cosine of the angle between query and key, `score = q . k / (|q| |k|)`.

    A zero vector has no direction: its scores, and the gradients through it, are 0.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.

    Returns:
        Scores `[*B N T S]` between -1 and 1.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Graves, Wayne and Danihelka (2014), "Neural Turing machines".
    """
    contract.check_query_key(query, key, same_width=True)
    return grouped.products(_direction(query), _direction(key))


def _direction(x: Float[Array, "*B L N H"]) -> Float[Array, "*B L N H"]:
    """`x / |x|` in the working dtype, and 0 where x is 0."""
    x = x.astype(contract.working_dtype(x.dtype))
    # The direction does not depend on this size, so it is a constant to the gradient. Dividing by
    # it first keeps the squares below from over- or underflowing.
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=-1, keepdims=True, initial=0.0))
    nonzero = size > 0
    x = x / jnp.where(nonzero, size, 1.0)
    square = jnp.sum(x * x, axis=-1, keepdims=True)
    # Both branches of a `where` are differentiated: the unused one must be finite as well.
    return jnp.where(nonzero, x * jax.lax.rsqrt(jnp.where(nonzero, square, 1.0)), 0.0)


@contract.primitive()
def general(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    kernel: Float[Array, "N Hq Hk"],
) -> Float[Array, "*B N T S"]:
    """The bilinear score, `score = q W k`, with one W per query head.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N; its head dim may differ from the query's.
        kernel: W, `[N Hq Hk]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    contract.check_query_key(query, key, same_width=False)
    contract.check_floating(query=query, kernel=kernel)
    *_, N, Hq = query.shape
    contract.check_parameter("kernel [N Hq Hk]", kernel, (N, Hq, key.shape[-1]))
    dtype = contract.working_dtype(query.dtype)
    projected = jnp.einsum("...tnh,nhk->...tnk", query.astype(dtype), kernel.astype(dtype))
    return grouped.products(projected, key.astype(dtype))


@contract.primitive()
def additive(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    query_kernel: Float[Array, "N Hq A"],
    key_kernel: Float[Array, "K Hk A"] | None,
    bias: Float[Array, "N A"],
    vector: Float[Array, "N A"],
) -> Float[Array, "*B N T S"]:
    """The perceptron score, `score = v . tanh(Wq q + Wk k + b)`, with A hidden units per head.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N; its head dim may differ from the query's.
        query_kernel: Wq, one per query head, `[N Hq A]`.
        key_kernel: Wk, one per key head, `[K Hk A]`; None where the keys are `Wk k` already, as in a decoder
            whose queries come one by one and whose keys stay.
        bias: b, `[N A]`.
        vector: v, `[N A]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate".
    """
    contract.check_query_key(query, key, same_width=False)
    parameters = {"query_kernel": query_kernel, "key_kernel": key_kernel, "bias": bias, "vector": vector}
    contract.check_floating(query=query, **{name: x for name, x in parameters.items() if x is not None})
    *batch, T, N, Hq = query.shape
    *_, S, K, Hk = key.shape
    A = vector.shape[-1]
    contract.check_parameter("query_kernel [N Hq A]", query_kernel, (N, Hq, A))
    if key_kernel is not None:
        contract.check_parameter("key_kernel [K Hk A]", key_kernel, (K, Hk, A))
    elif Hk != A:
        raise ValueError(f"without a key_kernel the keys must be A = {A} wide, got key {key.shape}")
    contract.check_parameter("bias [N A]", bias, (N, A))
    contract.check_parameter("vector [N A]", vector, (N, A))
    dtype = contract.working_dtype(query.dtype)
    from_query = jnp.einsum("...tnh,nha->...nta", query.astype(dtype), query_kernel.astype(dtype))
    from_query = from_query + bias.astype(dtype).reshape((1,) * len(batch) + (N, 1, A))
    if key_kernel is None:
        from_key = jnp.swapaxes(key.astype(dtype), -3, -2)
    else:
        from_key = jnp.einsum("...skh,kha->...ksa", key.astype(dtype), key_kernel.astype(dtype))
    hidden = jnp.tanh(
        from_query.reshape(*batch, K, N // K, T, 1, A) + from_key.reshape(*batch, K, 1, 1, S, A)
    )
    # A product and a sum fuse with the tanh; a matrix product would store [*B N T S A] first.
    vector = vector.astype(dtype).reshape((1,) * len(batch) + (K, N // K, 1, 1, A))
    return jnp.sum(hidden * vector, axis=-1).reshape(*batch, N, T, S)


@contract.primitive()
def concat(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    kernel: Float[Array, "N Hq+Hk A"],
    vector: Float[Array, "N A"],
) -> Float[Array, "*B N T S"]:
    """A one-layer perceptron on query and key laid end to end, `score = v . tanh(W [q; k])`.

    The same as `additive` with W split into a part for q and one for k, and without b; so no pair is
    ever laid end to end. Costs A `tanh` per score.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N; its head dim may differ from the query's.
        kernel: W, one per query head, `[N Hq+Hk A]`.
        vector: v, `[N A]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    contract.check_query_key(query, key, same_width=False)
    contract.check_floating(query=query, kernel=kernel, vector=vector)
    *_, N, Hq = query.shape
    A = vector.shape[-1]
    contract.check_parameter("kernel [N Hq+Hk A]", kernel, (N, Hq + key.shape[-1], A))
    contract.check_parameter("vector [N A]", vector, (N, A))
    return additive(
        query,
        # The keys of a group meet a W of each of its query heads.
        grouped.repeat(key, N),
        query_kernel=kernel[:, :Hq],
        key_kernel=kernel[:, Hq:],
        bias=jnp.zeros_like(vector),
        vector=vector,
    )


@contract.primitive()
def location(
    query: Float[Array, "*B T N Hq"],
    key: Float[Array, "*B S K Hk"],
    kernel: Float[Array, "N Hq S"],
) -> Float[Array, "*B N T S"]:
    """A score of positions by the query alone, `score[s] = (W q)[s]`.

    It learns where to look, whatever is there: of the keys only their number counts, and the number
    is fixed by W.

    Args:
        query: `[*B T N Hq]`.
        key: `[*B S K Hk]`, K divides N.
        kernel: W, one per query head, `[N Hq S]`.

    Returns:
        Scores `[*B N T S]`.

    Raises:
        ValueError: the shapes do not fit each other; a kernel made for another number of keys.
        TypeError: the dtypes differ or are not floating.

    Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine
    translation".
    """
    contract.check_query_key(query, key, same_width=False)
    contract.check_floating(query=query, kernel=kernel)
    *_, N, Hq = query.shape
    contract.check_parameter("kernel [N Hq S]", kernel, (N, Hq, key.shape[-3]))
    dtype = contract.working_dtype(query.dtype)
    return jnp.einsum("...tnh,nhs->...nts", query.astype(dtype), kernel.astype(dtype))


@contract.primitive()
def negative_squared_distance(
    query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"]
) -> Float[Array, "*B N T S"]:
    """How near the key is to the query, `score = -|q - k|^2 / sqrt(H)`.

    Under `softmax` the weights are those of a Gaussian kernel. A query equal to a key scores exactly
    0. Costs O(T S H) time and O(T S) memory.

    Args:
        query: `[*B T N H]`.
        key: `[*B S K H]`, K divides N.

    Returns:
        Scores `[*B N T S]`, none above 0.

    Raises:
        ValueError: the shapes do not fit each other.
        TypeError: the dtypes differ or are not floating.

    Kim, Papamakarios and Mnih (2021), "The Lipschitz constant of self-attention"; Tsai et al. (2019),
    "Transformer dissection: a unified understanding of transformer's attention via the lens of kernel".
    """
    contract.check_query_key(query, key, same_width=True)
    dtype = contract.working_dtype(query.dtype)
    distances = _squared_distances(query.astype(dtype), key.astype(dtype))
    return -(max(query.shape[-1], 1) ** -0.5) * distances


@jax.custom_jvp
def _squared_distances(
    query: Float[Array, "*B T N H"], key: Float[Array, "*B S K H"]
) -> Float[Array, "*B N T S"]:
    """`|q - k|^2` from the differences, since `|q|^2 + |k|^2 - 2 q . k` cancels where they are close."""
    *batch, T, N, H = query.shape
    *_, S, K, _ = key.shape
    rows = jnp.swapaxes(query, -3, -2).reshape(*batch, K, N // K, T, 1, H)
    columns = jnp.swapaxes(key, -3, -2).reshape(*batch, K, 1, 1, S, H)
    # Fused by the compiler: the differences are never stored.
    return jnp.sum(jnp.square(rows - columns), axis=-1).reshape(*batch, N, T, S)


@_squared_distances.defjvp
def _squared_distances_tangent(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Float[Array, "*B N T S"], Float[Array, "*B N T S"]]:
    """`2 (q - k) . (dq - dk)` by products of matrices, whose gradients are such products again.

    Differentiated as it stands, the sum above would store the differences of all pairs.
    """
    (query, key), (d_query, d_key) = primals, tangents
    of_query = jnp.sum(query * d_query, axis=-1, keepdims=True)
    of_key = grouped.repeat(jnp.sum(key * d_key, axis=-1, keepdims=True), query.shape[-2])
    alone = jnp.swapaxes(of_query, -3, -2) + jnp.moveaxis(of_key, -3, -1)
    mixed = grouped.products(query, d_key) + grouped.products(d_query, key)
    return _squared_distances(query, key), 2 * (alone - mixed)
