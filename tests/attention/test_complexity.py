import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import (
    attention_free,
    complexity,
    convolution,
    cosformer,
    linear,
    linformer,
    masks,
    nystromformer,
    performer,
    reformer,
    sinkhorn,
    synthesizer,
)
from attention.complexity import Size

SIZE = Size(T=192, N=2, H=64, S=256, V=80, B=3)
SQUARE = Size(T=256, N=2, H=64)


def arrays(size):
    T, S, H, V = size.of_head
    return [np.zeros((size.B, *shape)) for shape in ((T, size.N, H), (S, size.N, H), (S, size.N, V))]


def scored(score):
    """`attend` by a score with parameters."""
    return lambda q, k, v, **parameters: attention.attend(q, k, v, score=Partial(score, **parameters))


def counted(function, *arrays, **parameters):
    """FLOPs as XLA counts them in the compiled program."""
    return jax.jit(function).lower(*arrays, **parameters).compile().cost_analysis()["flops"]


def assert_within(share, function, cost, *arrays, **parameters):
    """XLA also counts what is done to single numbers, so its count is the larger one, by a share at most."""
    ratio = counted(function, *arrays, **parameters) / cost.flops
    assert 1 <= ratio <= 1 + share


def test_dense_is_what_xla_counts():
    assert_within(0.05, attention.attend, complexity.dense(SIZE), *arrays(SIZE))


def test_recurrent_is_what_xla_counts():
    size = Size(T=6, N=2, H=32, B=16)
    D = size.N * size.H

    def elman(x, W, U):
        h = np.zeros((size.B, D))
        for t in range(size.T):
            h = jnp.tanh(x[:, t] @ W + h @ U)
        return h

    cost = complexity.recurrent(size)
    assert_within(0.05, elman, cost, np.zeros((size.B, size.T, D)), *np.zeros((2, D, D)))


@pytest.mark.parametrize("separable", [False, True])
def test_convolutional_is_what_xla_counts(separable):
    size, K = Size(T=64, N=2, H=32, B=2), 5
    D = size.N * size.H

    def convolve(x, kernel, groups=1):
        numbers = ("NTC", "TIO", "NTC")
        return jax.lax.conv_general_dilated(
            x, kernel, (1,), "VALID", dimension_numbers=numbers, feature_group_count=groups
        )

    x = np.zeros((size.B, size.T + K - 1, D))  # padded, so that no tap falls outside
    if not separable:
        assert_within(0.01, convolve, complexity.convolutional(size, K), x, np.zeros((K, D, D)))
    else:
        cost = complexity.separable_convolutional(size, K)
        assert_within(
            0.01, lambda x, k, W: convolve(x, k, D) @ W, cost, x, np.zeros((K, 1, D)), np.zeros((D, D))
        )


N, L, H, M = SQUARE.N, SQUARE.T, SQUARE.H, 32
# Each as a program without loops, whose body XLA would count once however often it runs; the shapes of its
# parameters; its cost; and the share of other operations. Reformer has its masks and its sort besides.
LOWERED = {
    "linear": (linear.linear_attention, {}, complexity.linear(SQUARE), 0.05),
    "performer": (
        performer.performer_attention,
        {"projection": (96, H)},
        complexity.performer(SQUARE, 96),
        0.05,
    ),
    "cosformer": (
        partial(cosformer.cosformer_attention, max_length=L),
        {},
        complexity.cosformer(SQUARE),
        0.05,
    ),
    "linformer": (
        linformer.linformer_attention,
        {"key_projection": (L, M)},
        complexity.linformer(SQUARE, M),
        0.05,
    ),
    "nystromformer": (
        partial(nystromformer.nystromformer_attention, landmarks=M, iterations=1),
        {},
        complexity.nystromformer(SQUARE, M, iterations=1),
        0.05,
    ),
    "reformer": (
        partial(reformer.reformer_attention, chunk_size=M),
        {"rotations": (2, H, 2)},
        complexity.reformer(SQUARE, M, num_buckets=4, rounds=2),
        0.15,
    ),
    "sinkhorn": (
        partial(sinkhorn.sinkhorn_attention, block_size=M),
        {},
        complexity.sinkhorn(SQUARE, M),
        0.05,
    ),
    "synthesizer_dense": (
        scored(synthesizer.dense),
        {"hidden_kernel": (N, H, 48), "hidden_bias": (N, 48), "kernel": (N, 48, L), "bias": (N, L)},
        complexity.synthesizer_dense(SQUARE, 48),
        0.05,
    ),
    "synthesizer_random": (
        scored(synthesizer.random),
        {"matrix": (N, L, L)},
        complexity.synthesizer_random(SQUARE),
        0.05,
    ),
    "synthesizer_factorized_random": (
        scored(synthesizer.factorized_random),
        {"query_factor": (N, L, 8), "key_factor": (N, L, 8)},
        complexity.synthesizer_factorized_random(SQUARE, 8),
        0.05,
    ),
    "attention_free": (
        partial(attention_free.attention_free_full, block_size=L),
        {"position_bias": (L, L)},
        complexity.attention_free(SQUARE),
        0.05,
    ),
}


@pytest.mark.parametrize("name", LOWERED)
def test_mechanisms_are_what_xla_counts(name):
    function, shapes, cost, share = LOWERED[name]
    parameters = {parameter: np.zeros(shape) for parameter, shape in shapes.items()}
    assert_within(share, function, cost, *arrays(SQUARE), **parameters)


def test_convolution_as_attention_is_dense_attention_with_a_head_for_each_offset():
    # D -> F features by K heads: the projections, and the dense sums without the scores of positions.
    x, kernel = np.zeros((16, 64)), np.zeros((3, 64, 32))
    sums = complexity.dense(Size(T=16, N=3, H=2, V=32)).flops
    projections = 2 * 16 * 3 * 64 * 32
    ratio = counted(convolution.convolve, x, kernel) / (sums + projections)
    assert 1 <= ratio < 1.15


def reach(step):
    """Applications of a layer `[T T]`, True where a query sees a key, until no more pairs are added."""
    seen, path = step, 1
    while True:
        further = (seen.astype(int) @ step.astype(int)) > 0
        if (further == seen).all():
            return path
        seen, path = further, path + 1


T = 21
PATTERNS = {
    "banded": (lambda: band((2, 3)), lambda size: complexity.banded(size, (2, 3))),
    "causal band": (lambda: band((4, 0)), lambda size: complexity.banded(size, (4, 0))),
    "wide band": (lambda: band((30, 30)), lambda size: complexity.banded(size, (30, 30))),
    "longformer": (lambda: with_global(band((2, 2)), 3), lambda size: complexity.longformer(size, (2, 2), 3)),
    "no global": (lambda: band((2, 2)), lambda size: complexity.longformer(size, (2, 2), 0)),
    "strided": (lambda: strided(4), lambda size: complexity.strided(size, 4)),
}


def band(window):
    return np.asarray(masks.band(T, T, window, batch_dims=0))[0]


def with_global(mask, g):
    mask = mask.copy()
    mask[:g], mask[:, :g] = True, True
    return mask


def strided(stride):
    t, s = np.ogrid[:T, :T]
    return (s <= t) & ((t - s < stride) | ((t - s) % stride == 0))


@pytest.mark.parametrize("name", PATTERNS)
def test_sparse_patterns_cost_their_pairs_and_connect_in_their_paths(name):
    pattern, cost = PATTERNS[name]
    mask, size = pattern(), Size(T=T, N=3, H=5, V=7, B=2)
    found = cost(size)
    assert found.flops == 2 * 2 * 3 * mask.sum() * (5 + 7)
    assert found.bytes == 4 * 2 * 3 * (T * (5 + 5 + 7 + 7) + mask.sum())
    assert found.path_length == reach(mask)


@pytest.mark.parametrize("K, path", [(3, 20), (4, 20), (5, 10), (41, 1), (1, math.inf)])
def test_paths_of_convolutions(K, path):
    assert complexity.convolutional(Size(T=T), K).path_length == path
    if K > 1:
        assert reach(band((K // 2, (K - 1) // 2))) == path


@pytest.mark.parametrize("K", [2, 3, 5, 21])
def test_dilated_convolutions_connect_in_logarithmically_many_layers(K):
    ahead = np.arange(T) - np.arange(T)[:, None]
    seen, layers = np.eye(T, dtype=bool), 0
    while (seen != (ahead <= 0)).any():
        taps = np.isin(ahead, -(K**layers) * np.arange(K))
        seen, layers = (seen.astype(int) @ taps.astype(int)) > 0, layers + 1
    assert complexity.dilated_convolutional(Size(T=T), K).path_length == layers


def test_bigbird_by_hand():
    # Six blocks of 2, the first one global: 11 pairs of blocks, 13 in the band of the others, 5 random.
    cost = complexity.bigbird(Size(T=12, H=5), block_size=2, num_random=1)
    assert cost.flops == 2 * 4 * (11 + 13 + 5) * (5 + 5)
    assert cost.path_length == 2
    everything = complexity.bigbird(Size(T=12, H=5), block_size=2, num_random=6)
    assert everything.flops == complexity.dense(Size(T=12, H=5)).flops


def test_table_1_by_hand():
    size = Size(T=10, N=2, H=4, B=3)
    # Self-attention n^2 d, two products of 2 FLOPs; its inputs and output 4 n d, its weights n^2 a head.
    assert complexity.dense(size) == (4 * 3 * 100 * 8, 4 * 3 * (4 * 80 + 2 * 100), 1, 1)
    # Recurrent n d^2, two products; n steps.
    assert complexity.recurrent(size) == (4 * 3 * 10 * 64, 4 * (3 * 2 * 80 + 2 * 64), 10, 10)
    # Convolutional k n d^2.
    assert complexity.convolutional(size, 3) == (2 * 3 * 3 * 10 * 64, 4 * (3 * 2 * 80 + 3 * 64), 1, 9)
    # Restricted r n d, less what the ends cut off.
    assert complexity.banded(size, (1, 1)).flops == 4 * 3 * (3 * 10 - 2) * 8


GROWTH = {
    "dense": (2, complexity.dense),
    "blockwise": (2, complexity.blockwise),
    "synthesizer_dense": (2, lambda size: complexity.synthesizer_dense(size, 32)),
    "synthesizer_random": (2, complexity.synthesizer_random),
    "synthesizer_factorized_random": (2, lambda size: complexity.synthesizer_factorized_random(size, 8)),
    "attention_free": (2, complexity.attention_free),
    "strided": (1.5, lambda size: complexity.strided(size, math.isqrt(size.T))),
    "banded": (1, lambda size: complexity.banded(size, (15, 16))),
    "longformer": (1, lambda size: complexity.longformer(size, (16, 16), 4)),
    "bigbird": (1, lambda size: complexity.bigbird(size, 16, num_random=3)),
    "graph": (1, lambda size: complexity.graph(size, 8 * size.T)),
    "linear": (1, complexity.linear),
    "performer": (1, lambda size: complexity.performer(size, 64)),
    "cosformer": (1, complexity.cosformer),
    "linformer": (1, lambda size: complexity.linformer(size, 64)),
    "nystromformer": (1, lambda size: complexity.nystromformer(size, 32)),
    "reformer": (1, lambda size: complexity.reformer(size, 64, 16, 2)),
    "sinkhorn": (1.5, lambda size: complexity.sinkhorn(size, math.isqrt(size.T))),
    "recurrent": (1, complexity.recurrent),
    "convolutional": (1, lambda size: complexity.convolutional(size, 3)),
}


@pytest.mark.parametrize("name", GROWTH)
def test_costs_grow_as_said(name):
    power, cost = GROWTH[name]
    small, large = (cost(Size(T=4**n)) for n in (12, 14))
    assert math.log(large.flops / small.flops, 16) == pytest.approx(power, abs=0.01)
    bytes_power = 1 if name == "blockwise" else power
    assert math.log(large.bytes / small.bytes, 16) == pytest.approx(bytes_power, abs=0.05)


def test_a_window_is_a_pair(untyped):
    with pytest.raises(TypeError, match="pair"):
        complexity.banded(SQUARE, [3])
    with pytest.raises(ValueError, match="negative"):
        complexity.banded(SQUARE, (3, -1))
