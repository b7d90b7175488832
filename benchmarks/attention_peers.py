"""The peers in PyTorch: its own fused attention, and the libraries that install on a CPU.

Each takes query, key and value as `[B N T H]`, contiguous, which is the layout it is fastest in. None of the
libraries offers the bare attention of every layer, so where a layer projects its input, its projections
are replaced by selections, which cost nothing.
"""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.attention_cases import Library
from benchmarks.attention_timing import BOTH, Shape, draw

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Part(nn.Module):
    """In place of a projection: one of several inputs that lie side by side."""

    def __init__(self, number: int, of: int):
        super().__init__()
        self.number, self.of = number, of

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., of * D]` to `[..., D]`."""
        return x.chunk(self.of, dim=-1)[self.number]


def _beside(*heads: torch.Tensor) -> torch.Tensor:
    """Heads `[B N T H]` of several inputs as features `[B T inputs*N*H]`."""
    return torch.cat([x.transpose(1, 2).flatten(2) for x in heads], dim=-1)


def _apart(x: torch.Tensor, shape: Shape) -> torch.Tensor:
    return x.unflatten(-1, shape[2:]).transpose(1, 2)


def _x_transformers(module: Any, shape: Shape, cost: int) -> Attention:
    attend = module.Attend(heads=shape[2])
    return lambda query, key, value: attend(query, key, value)[0]


def _local(module: Any, shape: Shape, window: int) -> Attention:
    return module.LocalAttention(
        window_size=window,
        look_backward=1,
        look_forward=1,
        exact_windowsize=True,
        use_rotary_pos_emb=False,
        autopad=True,
    )


def _performer(module: Any, shape: Shape, features: int) -> Attention:
    return module.FastAttention(shape[-1], nb_features=features)


def _reformer(module: Any, shape: Shape, rounds: int) -> Attention:
    lsh = module.LSHAttention(bucket_size=64, n_hashes=rounds, attend_across_buckets=False).eval()

    def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return lsh(query.flatten(0, 1), value.flatten(0, 1))[0].unflatten(0, query.shape[:2])

    return attention


def _nystrom(module: Any, shape: Shape, landmarks: int) -> Attention:
    N, H = shape[2:]
    layer = module.NystromAttention(
        N * H, dim_head=H, heads=N, num_landmarks=landmarks, residual=False
    ).eval()
    layer.to_qkv, layer.to_out = nn.Identity(), nn.Identity()
    return lambda query, key, value: _apart(layer(_beside(query, key, value)), shape)


def _linformer(module: Any, shape: Shape, rank: int) -> Attention:
    _, T, N, H = shape
    layer = module.LinformerSelfAttention(N * H, T, k=rank, heads=N, dim_head=H)
    layer.to_q, layer.to_out = nn.Identity(), nn.Identity()
    layer.to_k, layer.to_v = Part(0, 2), Part(1, 2)
    layer.requires_grad_(False)
    return lambda query, key, value: _apart(layer(_beside(query), context=_beside(key, value)), shape)


_BUILD = {
    "x-transformers": _x_transformers,
    "local-attention": _local,
    "performer-pytorch": _performer,
    "reformer-pytorch": _reformer,
    "nystrom-attention": _nystrom,
    "linformer": _linformer,
}


def use_threads(number: int) -> None:
    """Let PyTorch run on so many threads."""
    torch.set_num_threads(number)


def build(library: Library, shape: Shape) -> Attention:
    """A library's form of attention, with random parameters where it has any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what they import that is going to disappear
        module = importlib.import_module(library.module)
    return _BUILD[library.package](module, shape, library.cost)


def fused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """PyTorch's own."""
    return F.scaled_dot_product_attention(query, key, value)


def bind(function: Attention, shape: Shape, direction: str) -> Callable[[], Any]:
    """A function without arguments that runs a peer once, on the inputs that the JAX sides have."""
    query, key, value, cotangent = (
        torch.from_numpy(array).transpose(1, 2).contiguous() for array in draw(shape)
    )
    if direction == BOTH:
        inputs = tuple(x.requires_grad_() for x in (query, key, value))

        def both() -> Any:
            # Where keys are the queries, as in the Reformer, they get no gradient of their own.
            return torch.autograd.grad(function(*inputs), inputs, cotangent, allow_unused=True)

        return both

    def forward() -> torch.Tensor:
        with torch.inference_mode():
            return function(query, key, value)

    return forward
