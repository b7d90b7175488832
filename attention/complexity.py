"""What a layer costs: FLOPs, bytes, steps that must follow each other, and how far signals travel.

Table 1 of "Attention is all you need" in numbers, for every mechanism of this package and for the
layers it is compared with. Counted is the mechanism alone, without the projections around it:

- FLOPs of its matrix products, two for each multiplication with its addition. What is done to single
  scores or features, softmax for one, is left out; at 64 features a head that is below 5 %.
- Bytes of what is read and written once each: inputs, parameters, output, and the arrays that the
  plain form keeps in between, such as the weights.
- Steps of the layer that cannot be taken side by side.
- The largest number of applications of the layer, between any two positions that a stack of it
  connects, after which one has reached the other.

    size = complexity.Size(T=4096, N=8, H=64)
    complexity.dense(size).flops / complexity.banded(size, window=(64, 64)).flops
"""

import math
from typing import NamedTuple

from attention.internals import contract


class Size(NamedTuple):
    """The arrays a layer is given: query `[B T N H]`, key `[B S N H]`, value `[B S N V]`.

    Recurrent and convolutional layers have N * H features, in and out.

    Attributes:
        T: queries.
        N: heads.
        H: features of a head.
        S: keys; 0 for as many as queries.
        V: features of a value; 0 for as many as H.
        B: batch elements.
        itemsize: bytes of a number.
    """

    T: int
    N: int = 1
    H: int = 64
    S: int = 0
    V: int = 0
    B: int = 1
    itemsize: int = 4

    @property
    def of_head(self) -> tuple[int, int, int, int]:
        """T, S, H and V."""
        return self.T, self.S or self.T, self.H, self.V or self.H


class Cost(NamedTuple):
    """What one application of a layer costs.

    Attributes:
        flops: floating-point operations of its matrix products.
        bytes: read and written once each.
        sequential_steps: operations that must follow each other.
        path_length: applications between any two positions that are connected, at most; infinite where
            nothing bounds it.
    """

    flops: int
    bytes: int
    sequential_steps: int = 1
    path_length: int | float = 1


def dense(size: Size) -> Cost:
    """`attend` and every mechanism that scores each query with each key: Vaswani et al. (2017)."""
    T, S, H, V = size.of_head
    return _of_heads(size, 2 * T * S * (H + V), stored=T * S)


def blockwise(size: Size, block_size: int = 512) -> Cost:
    """The same without storing the weights, block after block of keys: Rabe and Staats (2021)."""
    T, S, H, V = size.of_head
    return _of_heads(size, 2 * T * S * (H + V), stored=T, steps=math.ceil(S / block_size))


def banded(size: Size, window: tuple[int, int]) -> Cost:
    """Restricted self-attention, `(left, right)` keys besides its own: Vaswani et al. (2017)."""
    left, right = contract.check_window(window)
    pairs = _band(size.T, left, right)
    return _of_pairs(size, pairs, _hops(size.T, left, right))


def longformer(size: Size, window: tuple[int, int], num_global: int) -> Cost:
    """A band, and global positions that see all and are seen by all: Beltagy et al. (2020)."""
    pairs, path = _with_global(size.T, window, num_global)
    return _of_pairs(size, pairs, path)


def bigbird(
    size: Size,
    block_size: int,
    num_random: int,
    window: tuple[int, int] = (1, 1),
    global_blocks: int = 1,
) -> Cost:
    """Blocks: a window, global ones, random ones for each other block of queries: Zaheer et al. (2020)."""
    blocks = math.ceil(size.T / block_size)
    pairs, path = _with_global(blocks, window, global_blocks)
    pairs = min(pairs + num_random * max(blocks - global_blocks, 0), blocks**2)
    return _of_pairs(size, pairs * block_size**2, path)


def strided(size: Size, stride: int) -> Cost:
    """Causal: the last `stride` keys, and before them every `stride`-th one: Child et al. (2019)."""
    T, near = size.T, _band(size.T, stride - 1, 0)
    full, rest = divmod(T, stride)
    far = stride * full * (full - 1) // 2 + rest * full  # query t sees t // stride of them
    return _of_pairs(size, near + far, 1 if stride >= T else 2)


def graph(size: Size, num_edges: int) -> Cost:
    """One score for each edge: Velickovic et al. (2018)."""
    return _of_pairs(size, num_edges, math.inf)


def linear(size: Size, num_features: int = 0) -> Cost:
    """Two products with features of queries and keys, as many as H if 0: Katharopoulos et al. (2020).

    Not causal. The causal form adds the products inside its blocks of b queries, 2 T b (C + V), and takes
    T / b steps.
    """
    T, S, H, V = size.of_head
    C = num_features or H
    # The normaliser is the sum of one more value, 1.
    return _of_heads(size, 2 * (T + S) * C * (V + 1), stored=(T + S + V + 1) * C)


def performer(size: Size, num_features: int) -> Cost:
    """Linear attention on random features: Choromanski et al. (2021)."""
    T, S, H, _ = size.of_head
    features = size.B * size.N * 2 * (T + S) * H * num_features
    cost = linear(size, num_features)
    return cost._replace(flops=cost.flops + features)


def cosformer(size: Size) -> Cost:
    """Linear attention on 2 H features, cosine and sine of position: Qin et al. (2022)."""
    return linear(size, 2 * size.H)


def linformer(size: Size, projected: int) -> Cost:
    """Keys and values projected to a fixed length, then dense: Wang et al. (2020)."""
    T, S, H, V = size.of_head
    flops = 2 * projected * (S + T) * (H + V)
    return _of_heads(size, flops, stored=projected * (H + V + T), parameters=2 * projected * S)


def nystromformer(size: Size, num_landmarks: int, iterations: int = 6) -> Cost:
    """Three softmaxes around landmarks, and an iterated pseudo-inverse: Xiong et al. (2021)."""
    T, S, H, V = size.of_head
    m = num_landmarks
    landmarks = 2 * m * H * (T + S)
    scores = 2 * m * H * (T + m + S)
    inverse = iterations * 4 * 2 * m**3
    sums = 2 * m * V * (S + m + T)
    stored = m * (T + S + 2 * m)
    return _of_heads(size, landmarks + scores + inverse + sums, stored=stored, steps=1 + iterations)


def reformer(size: Size, chunk_size: int, num_buckets: int, rounds: int = 1) -> Cost:
    """Sorted by hash, each chunk of a bucket with itself and the one before: Kitaev et al. (2020).

    Without the sort. Which positions meet is up to the hash, so no path length is sure.
    """
    T, _, H, V = size.of_head
    # Enough chunks however the positions are spread over the buckets.
    chunks = min((T + num_buckets * (chunk_size - 1)) // chunk_size, T)
    pairs = chunks * chunk_size * 2 * chunk_size
    flops = rounds * (2 * T * H * (num_buckets // 2) + 2 * pairs * (H + V))
    return _of_heads(size, flops, stored=rounds * pairs, path=math.inf)


def sinkhorn(size: Size, block_size: int, iterations: int = 8) -> Cost:
    """Each block with itself and with a sorted mixture of all blocks: Tay et al. (2020)."""
    T, _, H, V = size.of_head
    blocks = math.ceil(T / block_size)
    sorting = 2 * blocks**2 * (H + block_size * (H + V + 1))
    pairs = blocks * block_size * 2 * block_size
    flops = sorting + 2 * pairs * (H + V + 1)
    return _of_heads(size, flops, stored=pairs + blocks**2, steps=1 + iterations)


def synthesizer_dense(size: Size, hidden: int) -> Cost:
    """Weights made from each query alone by a perceptron: Tay et al. (2021)."""
    T, S, H, V = size.of_head
    flops = 2 * T * hidden * (H + S) + 2 * T * S * V
    return _of_heads(size, flops, stored=T * S, parameters=hidden * (H + S), keys=False)


def synthesizer_random(size: Size) -> Cost:
    """Weights that are parameters: Tay et al. (2021)."""
    T, S, _, V = size.of_head
    return _of_heads(size, 2 * T * S * V, stored=T * S, parameters=T * S, queries=False, keys=False)


def synthesizer_factorized_random(size: Size, rank: int) -> Cost:
    """Weights that are parameters, a product of two of low rank: Tay et al. (2021)."""
    T, S, _, V = size.of_head
    sums = _of_heads(size, 2 * T * S * V, stored=T * S, parameters=rank * (T + S), queries=False, keys=False)
    # One product for the whole batch.
    return sums._replace(flops=sums.flops + size.N * 2 * T * S * rank)


def attention_free(size: Size) -> Cost:
    """Position biases weigh keys and values feature by feature, in two sums: Zhai et al. (2021)."""
    T, S, _, V = size.of_head
    return _of_heads(size, 4 * T * S * V, stored=T * S + 2 * S * V, parameters=T * S)


def recurrent(size: Size) -> Cost:
    """`h[t] = tanh(W x[t] + U h[t-1])` with N * H units: Elman (1990)."""
    T, D = size.T, size.N * size.H
    return _of_layer(size, 2 * T * 2 * D * D, parameters=2 * D * D, steps=T, path=T)


def convolutional(size: Size, kernel_size: int) -> Cost:
    """A convolution over N * H channels, not causal: LeCun et al. (1989)."""
    T, D = size.T, size.N * size.H
    path = _hops(T, kernel_size // 2, (kernel_size - 1) // 2)
    return _of_layer(size, 2 * T * kernel_size * D * D, parameters=kernel_size * D * D, path=path)


def dilated_convolutional(size: Size, kernel_size: int) -> Cost:
    """A causal one whose dilation is K times as large in each layer: Kalchbrenner et al. (2016)."""
    layers = 1
    while kernel_size > 1 and kernel_size**layers < size.T:
        layers += 1
    path = layers if kernel_size > 1 else math.inf
    return convolutional(size, kernel_size)._replace(path_length=path)


def separable_convolutional(size: Size, kernel_size: int) -> Cost:
    """A convolution of each channel, then a mixing of channels: Chollet (2017)."""
    T, D = size.T, size.N * size.H
    flops, parameters = 2 * T * D * (kernel_size + D), D * (kernel_size + D)
    path = convolutional(size, kernel_size).path_length
    return _of_layer(size, flops, parameters=parameters, path=path)


def _of_heads(
    size: Size,
    flops: int,
    *,
    stored: int,
    parameters: int = 0,
    steps: int = 1,
    path: int | float = 1,
    queries: bool = True,
    keys: bool = True,
) -> Cost:
    """A mechanism from what each head of each batch element costs, in FLOPs and in numbers kept."""
    T, S, H, V = size.of_head
    numbers = T * H * queries + S * H * keys + S * V + T * V + stored
    heads = size.B * size.N
    return Cost(heads * flops, size.itemsize * (heads * numbers + size.N * parameters), steps, path)


def _of_pairs(size: Size, pairs: int, path: int | float) -> Cost:
    """A mechanism that scores so many pairs of query and key for each head."""
    _, _, H, V = size.of_head
    return _of_heads(size, 2 * pairs * (H + V), stored=pairs, path=path)


def _of_layer(size: Size, flops: int, *, parameters: int, steps: int = 1, path: int | float = 1) -> Cost:
    """A layer from N * H features to as many."""
    numbers = 2 * size.B * size.T * size.N * size.H
    return Cost(size.B * flops, size.itemsize * (numbers + parameters), steps, path)


def _band(T: int, left: int, right: int) -> int:
    """Pairs of T queries with the keys of their windows, cut off at both ends."""
    left, right = min(left, max(T - 1, 0)), min(right, max(T - 1, 0))
    return T * (left + 1 + right) - (left * (left + 1) + right * (right + 1)) // 2


def _with_global(T: int, window: tuple[int, int], num_global: int) -> tuple[int, int | float]:
    """Pairs and paths of a band whose first positions, or as many at an end, see all and are seen."""
    left, right = contract.check_window(window)
    path, outside = _hops(T, left, right), max(T - num_global, 0)
    return T * T - outside**2 + _band(outside, left, right), min(path, 2) if num_global else path


def _hops(T: int, left: int, right: int) -> int | float:
    """Layers of a band until the first position has met the last one, in the directions it has."""
    sides = [side for side in (left, right) if side]
    if not sides:
        return math.inf
    return max(math.ceil((T - 1) / min(sides)), 1)
