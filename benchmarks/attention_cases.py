"""What the benchmark of the mechanisms measures: a line for every mechanism, library, shape and target."""

import importlib
import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from attention import attend, masks, stages
from benchmarks.attention_timing import BOTH, FORWARD, Program, Shape, random

# The product of two 2048 x 2048 matrices has as many FLOPs as attention's forward pass at this shape.
LONG: Shape = (2, 2048, 8, 64)
MATMUL = 2048
BAND: Shape = (1, 4096, 4, 64)
WINDOW = 64  # keys on each side, where mechanisms are compared
BAND_WINDOW = (63, 0)  # 64 keys, where banded has its targets

# Where "auto" has to choose well: from many short sequences to a single long one.
GRID: tuple[Shape, ...] = (
    (128, 50, 4, 16),  # a small ViT on images of 28 x 28
    (64, 32, 8, 64),  # translation, sentences of ordinary length
    (64, 64, 8, 32),
    (32, 128, 4, 32),
    (32, 197, 3, 64),  # ViT-Ti/16 at 224 x 224
    (8, 256, 8, 64),
    (2, 577, 16, 64),  # ViT-L/16 at 384 x 384
    (4, 512, 12, 64),  # BERT base
    (2, 1024, 12, 64),  # GPT-2
    LONG,
    (1, 4096, 8, 64),  # long context
    (1, 8192, 4, 64),
)


def at_length(T: int) -> Shape:
    """The shape at which mechanisms are compared over the length."""
    return (1, T, 4, 64)


AT = at_length(2048)  # where errors and libraries are measured


EXACT, SPARSE, KERNEL, LOW_RANK, SORTED, OTHER = FAMILIES = (
    "every query with every key",
    "windows and blocks",
    "kernels",
    "low rank",
    "hashing and sorting",
    "no product of query and key",
)


class Mechanism(NamedTuple):
    """One mechanism of the catalogue, ready to run at any shape.

    Attributes:
        name: what tables and figures call it.
        family: one of `FAMILIES`; its colour.
        module: below `attention`; imported when it is needed.
        build: from the module, the shape and the cost parameter, `(query, key, value, **arrays) -> output`.
        arrays: from the same, what the function takes besides: parameters and random projections.
        cost: what its cost parameter is called, "" where it has none.
        costs: values of the cost parameter for the curve of error against time; the middle one is used
            where one is enough.
        linear: whether its memory must grow no faster than the length.
        shared: whether queries and keys are one vector; then keys are the queries at unit length.
        approximates: whether it is meant to come near dense.
    """

    name: str
    family: str
    module: str
    build: Callable[[Any, Shape, int], Callable[..., Any]]
    arrays: Callable[[Any, Shape, int], dict[str, Array]] = lambda module, shape, cost: {}
    cost: str = ""
    costs: tuple[int, ...] = (0,)
    linear: bool = True
    shared: bool = False
    approximates: bool = True

    @property
    def usual(self) -> int:
        """The value of the cost parameter where one is enough."""
        return self.costs[len(self.costs) // 2]

    def program(self, shape: Shape, direction: str, cost: int | None = None) -> Program:
        """It, ready to be compiled."""
        cost = self.usual if cost is None else cost
        module = importlib.import_module(f"attention.{self.module}")
        attention = self.build(module, shape, cost)

        def shared(query: Array, key: Array, value: Array, **arrays: Array) -> Any:
            return attention(query, unit(query), value, **arrays)

        function = shared if self.shared else attention
        return Program(function, shape, direction, self.arrays(module, shape, cost))


def unit(x: Array) -> Array:
    """Vectors at unit length."""
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def exact(implementation: str, **options: Any) -> Callable[[Any, Shape, int], Callable[..., Any]]:
    """The front door, by one of its implementations."""
    return lambda m, shape, cost: partial(m.dot_product_attention, implementation=implementation, **options)


def parameter(name: str, *shape: int, fan_in: int) -> Array:
    """A parameter as it is initialised, `N(0, 1 / fan_in)`."""
    return jnp.asarray(random(name, shape, fan_in**-0.5))


def _synthesized(score: str) -> Callable[[Any, Shape, int], Callable[..., Any]]:
    def build(module: ModuleType, shape: Shape, cost: int) -> Callable[..., Any]:
        def attention(query: Array, key: Array, value: Array, **arrays: Array) -> Any:
            return stages.attend(query, key, value, score=Partial(getattr(module, score), **arrays))

        return attention

    return build


def _dense_synthesizer(module: ModuleType, shape: Shape, cost: int) -> dict[str, Array]:
    _, T, N, H = shape
    return {
        "hidden_kernel": parameter("W1", N, H, H, fan_in=H),
        "hidden_bias": jnp.zeros((N, H)),
        "kernel": parameter("W2", N, H, T, fan_in=H),
        "bias": jnp.zeros((N, T)),
    }


def _key() -> Array:
    return jax.random.key(0)


MECHANISMS: tuple[Mechanism, ...] = (
    Mechanism("dense", EXACT, "dot_product", exact("dense"), linear=False, approximates=False),
    Mechanism("blockwise", EXACT, "blockwise", lambda m, s, c: m.blockwise_attention, approximates=False),
    Mechanism(
        "banded",
        SPARSE,
        "banded",
        lambda m, s, c: partial(m.banded_attention, window=(c, c)),
        cost="window",
        costs=(16, WINDOW, 256),
    ),
    Mechanism(
        "Longformer",
        SPARSE,
        "block_sparse",
        lambda m, s, c: partial(m.longformer_attention, window=(c, c)),
        lambda m, s, c: {"global_positions": jnp.arange(16)},
        cost="window",
        costs=(16, WINDOW, 256),
    ),
    Mechanism(
        "BigBird",
        SPARSE,
        "block_sparse",
        lambda m, s, c: partial(m.bigbird_attention, block_size=64),
        lambda m, s, c: {"random_blocks": m.draw_random_blocks(_key(), s[1], block_size=64, count=c)},
        cost="random blocks",
        costs=(1, 3, 9),
    ),
    Mechanism(
        "strided",
        SPARSE,
        "strided",
        lambda m, s, c: partial(m.strided_attention, stride=math.isqrt(s[1])),
        linear=False,
        approximates=False,
    ),
    Mechanism(
        "dilated",
        SPARSE,
        "strided",
        lambda m, s, c: partial(m.dilated_attention, window=(c, c), dilation=4),
        cost="window",
        costs=(16, WINDOW, 256),
    ),
    Mechanism(
        "graph",
        SPARSE,
        "graph",
        lambda m, s, c: m.graph_attention,
        lambda m, s, c: {
            "senders": jax.random.randint(_key(), (c * s[1],), 0, s[1]),
            "receivers": jnp.repeat(jnp.arange(s[1]), c),
        },
        cost="edges per node",
        costs=(8, 32, 128),
    ),
    Mechanism(
        "linear",
        KERNEL,
        "linear",
        lambda m, s, c: m.linear_attention,
    ),
    Mechanism(
        "linear, causal",
        KERNEL,
        "linear",
        lambda m, s, c: partial(m.linear_attention, is_causal=True),
        approximates=False,
    ),
    Mechanism(
        "Performer",
        KERNEL,
        "performer",
        lambda m, s, c: m.performer_attention,
        lambda m, s, c: {"projection": m.orthogonal_projection(_key(), c, s[3])},
        cost="features",
        costs=(64, 256, 1024),
    ),
    Mechanism(
        "Performer, causal",
        KERNEL,
        "performer",
        lambda m, s, c: partial(m.performer_attention, is_causal=True),
        lambda m, s, c: {"projection": m.orthogonal_projection(_key(), c, s[3])},
        costs=(256,),
        approximates=False,
    ),
    Mechanism(
        "cosFormer", KERNEL, "cosformer", lambda m, s, c: partial(m.cosformer_attention, max_length=s[1])
    ),
    Mechanism(
        "Linformer",
        LOW_RANK,
        "linformer",
        lambda m, s, c: m.linformer_attention,
        lambda m, s, c: {"key_projection": parameter("E", s[1], c, fan_in=s[1])},
        cost="rank",
        costs=(64, 256, 1024),
    ),
    Mechanism(
        "Nyströmformer",
        LOW_RANK,
        "nystromformer",
        lambda m, s, c: partial(m.nystromformer_attention, landmarks=c),
        cost="landmarks",
        costs=(16, 64, 256),
    ),
    Mechanism(
        "Reformer",
        SORTED,
        "reformer",
        lambda m, s, c: partial(m.reformer_attention, chunk_size=64),
        lambda m, s, c: {"rotations": m.draw_rotations(_key(), c, s[3], max(s[1] // 64, 2))},
        cost="rounds",
        costs=(1, 4, 8),
        shared=True,
    ),
    Mechanism(
        "Sinkhorn",
        SORTED,
        "sinkhorn",
        lambda m, s, c: partial(m.sinkhorn_attention, block_size=c),
        cost="block",
        costs=(32, 64, 256),
    ),
    Mechanism(
        "Synthesizer, dense",
        OTHER,
        "synthesizer",
        _synthesized("dense"),
        _dense_synthesizer,
        linear=False,
        approximates=False,
    ),
    Mechanism(
        "Synthesizer, random",
        OTHER,
        "synthesizer",
        _synthesized("factorized_random"),
        lambda m, s, c: {
            "query_factor": parameter("R1", s[2], s[1], c, fan_in=c),
            "key_factor": parameter("R2", s[2], s[1], c, fan_in=1),
        },
        costs=(8,),
        linear=False,
        approximates=False,
    ),
    Mechanism(
        "AFT-full",
        OTHER,
        "attention_free",
        lambda m, s, c: m.attention_free_full,
        lambda m, s, c: {"position_bias": parameter("w", s[1], s[1], fan_in=s[1])},
        approximates=False,
    ),
    Mechanism(
        "AFT-local",
        OTHER,
        "attention_free",
        lambda m, s, c: partial(m.attention_free_local, window=(c, c)),
        lambda m, s, c: {"position_bias": parameter("w", s[1], s[1], fan_in=s[1])},
        costs=(WINDOW,),
        approximates=False,
    ),
)


class Library(NamedTuple):
    """A form of attention in a PyTorch library.

    Attributes:
        package: its name at the package index.
        module: which is imported.
        mechanism: ours that does the same.
        cost: the value of the cost parameter for both, 0 where there is none.
    """

    package: str
    module: str
    mechanism: str
    cost: int = 0


LIBRARIES = (
    Library("x-transformers", "x_transformers.attend", "blockwise"),
    Library("local-attention", "local_attention", "banded", WINDOW),
    Library("performer-pytorch", "performer_pytorch.performer_pytorch", "Performer", 256),
    Library("reformer-pytorch", "reformer_pytorch.reformer_pytorch", "Reformer", 4),
    Library("nystrom-attention", "nystrom_attention", "Nyströmformer", 64),
    Library("linformer", "linformer.linformer", "Linformer", 256),
)


class Target(NamedTuple):
    """A line of the table of targets: ours must be so many times faster than a peer.

    Attributes:
        ours: name of our side.
        peer: name of the other.
        least: for each direction, how many times faster at least.
        work: for each direction, our FLOPs in units of the peer's; then rates are compared, not times.
    """

    ours: str
    peer: str
    least: dict[str, float]
    work: dict[str, float] = {}  # noqa: RUF012 (read only)


DENSE_BAND, ATTEND_BAND = "dense, same mask", "attend, same mask"
TARGETS = (
    Target("blockwise", "jax.nn", {FORWARD: 4.0, BOTH: 2.3}),
    Target("blockwise", "torch", {FORWARD: 1.4, BOTH: 1.0}),
    Target("blockwise", "matmul", {FORWARD: 0.65, BOTH: 0.4}, {FORWARD: 1.0, BOTH: 3.5}),
    Target("banded", DENSE_BAND, {FORWARD: 10.0, BOTH: 30.0}),
    Target("banded", ATTEND_BAND, {FORWARD: 10.0, BOTH: 30.0}),
)


def attend_banded(query: Array, key: Array, value: Array) -> Any:
    """What banded attention equals by definition."""
    return attend(query, key, value, mask=masks.band(query.shape[1], key.shape[1], BAND_WINDOW))


def mechanism(name: str) -> Mechanism:
    """The one of this name."""
    return next(found for found in MECHANISMS if found.name == name)


def matmul() -> Callable[[], Any]:
    """The product of two square matrices, as a function without arguments."""
    a, b = (jnp.asarray(random(name, (MATMUL, MATMUL))) for name in ("a", "b"))
    product = jax.jit(jnp.matmul).lower(a, b).compile()
    return lambda: jax.block_until_ready(product(a, b))
