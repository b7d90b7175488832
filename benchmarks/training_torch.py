"""The peer in the training benchmark: the same two models and optimiser, written plainly in PyTorch."""

import time
from collections.abc import Callable, Sequence

import torch
from ml_collections import ConfigDict
from torch import nn
from torch.nn import functional as F  # noqa: N812

from benchmarks import image_problem


class TransformerBlock(nn.Module):
    """Pre-norm self-attention and feed-forward layer."""

    def __init__(self, dim: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(dim)
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.output = nn.Linear(dim, dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, T, D]` to the same shape."""
        B, T, D = x.shape
        heads = self.query_key_value(self.attention_norm(x)).view(
            B, T, 3, self.num_heads, D // self.num_heads
        )
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).reshape(B, T, D))
        return x + self.feed_forward(self.feed_forward_norm(x))


class ViT(nn.Module):
    """Vision Transformer: patches by a strided convolution, learned positions, mean pooling."""

    def __init__(self, patch_size: int, dim: int, num_layers: int, num_heads: int):
        super().__init__()
        height, width, channels = image_problem.IMAGE_SHAPE
        num_patches = (height // patch_size) * (width // patch_size)
        self.embed = nn.Conv2d(channels, dim, patch_size, stride=patch_size)
        self.positions = nn.Parameter(0.02 * torch.randn(num_patches, dim))
        self.blocks = nn.Sequential(*(TransformerBlock(dim, num_heads) for _ in range(num_layers)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, image_problem.NUM_CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits `[B, num_classes]` of images `[B, C, height, width]`."""
        x = self.embed(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with batch normalisation, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        changes = stride != 1 or inputs != outputs
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[B, inputs, h, w]` to `[B, outputs, h / stride, w / stride]`."""
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class CNN(nn.Module):
    """Small residual network."""

    def __init__(self, widths: Sequence[int], blocks: Sequence[int]):
        super().__init__()
        channels = widths[0]
        self.stem = nn.Conv2d(image_problem.IMAGE_SHAPE[-1], channels, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(channels)
        layers = []
        for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(ResidualBlock(channels, width, stride))
                channels = width
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(channels, image_problem.NUM_CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits `[B, num_classes]` of images `[B, C, height, width]`."""
        x = self.blocks(F.relu(self.stem_norm(self.stem(images))))
        return self.head(x.mean(dim=(2, 3)))


def build(config: ConfigDict) -> nn.Module:
    """The model that `config.model` asks for."""
    if config.kind == "vit":
        return ViT(config.patch_size, config.dim, config.num_layers, config.num_heads)
    return CNN(config.widths, config.blocks)


def optimizer(network: nn.Module, config: ConfigDict) -> torch.optim.Optimizer:
    """AdamW with weight decay on the weights of linear and convolutional layers alone."""
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            is_kernel = isinstance(module, nn.Linear | nn.Conv2d) and name == "weight"
            (decayed if is_kernel else kept).append(parameter)
    return torch.optim.AdamW(
        [{"params": decayed}, {"params": kept, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.momentum, config.second_momentum),
        weight_decay=config.weight_decay,
    )


def prepare(model: str, threads: int) -> tuple[Callable[[int], float], dict[str, int]]:
    """A function that makes so many updates and returns the seconds they took, and the parameters."""
    torch.set_num_threads(threads)
    config = image_problem.config(model)
    batches = image_problem.batches(config.batch_size)
    network = build(config.model)
    rule = optimizer(network, config.optimizer)
    done = 0

    def run(steps: int) -> float:
        nonlocal done
        start = time.perf_counter()
        for step in range(done, done + steps):
            batch = batches[step % len(batches)]
            # With one channel, [B, h, w, 1] and [B, 1, h, w] are the same memory.
            images = torch.from_numpy(batch["image"]).permute(0, 3, 1, 2)
            labels = torch.from_numpy(batch["label"]).long()
            rule.zero_grad()
            logits = network(images)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), config.optimizer.clip_norm)
            rule.step()
        seconds = time.perf_counter() - start
        done += steps
        assert loss.isfinite()
        return seconds

    return run, {"parameters": sum(parameter.numel() for parameter in network.parameters())}
