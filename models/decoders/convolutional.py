"""The decoder of ConvS2S: causal gated convolutions, each of which looks at the input."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from attention import dot_product_attention
from models.decoders.decoder import Cache, Decoded, Memory
from models.layers.gated_convolution import ROOT_HALF, GatedConvolution, linear
from models.rngs import named
from spec import Rate, derived


class Source(NamedTuple):
    """What all layers attend to.

    Attributes:
        keys: `[B, S, 1, D]`.
        values: `[B, S, 1, D]`.
        mask: `[B, 1, 1, S]`, True where there is a vector.
    """

    keys: Float[Array, "B S 1 D"]
    values: Float[Array, "B S 1 D"]
    mask: Bool[Array, "B 1 1 S"]


class ConvolutionalLayer(nnx.Module):
    """A causal gated convolution, attention to the input, and a residual connection around both.

    With `h = glu(conv(x))` and `c = attend((W_q h + y) sqrt(1/2))`, what comes out is
    `(x + (h + W_c c) sqrt(1/2)) sqrt(1/2)`. What is looked for depends on the token before, y, and on what
    the layers below have found: the steps of the paper's multi-step attention.

    Args:
        dim: width D of tokens and memory.
        hidden_dim: channels H.
        kernel_size: vectors in a window.
        dropout_rate: dropout on the inputs of the convolution.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, hidden_dim: int, kernel_size: int, *, dropout_rate: float, rngs: nnx.Rngs):
        self.convolution = GatedConvolution(
            hidden_dim, kernel_size, dropout_rate=dropout_rate, rngs=named(rngs, "convolution")
        )
        self.query = linear(hidden_dim, dim, rngs=named(rngs, "query"))
        self.context = linear(dim, hidden_dim, rngs=named(rngs, "context"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(
        self,
        x: Float[Array, "B T H"],
        past: Float[Array, "B kept H"],
        y: Float[Array, "B T D"],
        source: Source,
        rngs: nnx.Rngs | None,
    ) -> tuple[Float[Array, "B T H"], Float[Array, "B kept H"], Float[Array, "B 1 T S"]]:
        """`x` after this layer, the last inputs of the convolution, and the weights.

        Args:
            x: what the layer below made.
            past: the `kernel_size - 1` inputs of the convolution before these.
            y: embedded tokens.
            source: what is attended to.
            rngs: stream `dropout`; None turns dropout off.
        """
        inputs = jnp.concatenate([past, self.dropout(x, deterministic=rngs is None, rngs=rngs)], axis=1)
        h = self.convolution(inputs)
        query = (self.query(h) + y) * ROOT_HALF
        context, weights = dot_product_attention(
            query[:, :, None], source.keys, source.values, mask=source.mask, scale=1.0, return_weights=True
        )
        h = (h + self.context(context[:, :, 0])) * ROOT_HALF
        return (x + h) * ROOT_HALF, inputs[:, x.shape[1] :], weights


class ConvolutionalDecoder(nnx.Module):
    """Causal gated convolutions with attention in every layer; see `models.decoders.decoder.Decoder`.

    Attention scores by the plain dot product with an encoder's vectors z, and sums them with what went into
    the encoder, e: `c = sqrt(m) sum_s a_s (z_s + e_s) sqrt(1/2)`, with m vectors to attend to, since a mean
    of m has 1/m of their variance. (The paper has no sqrt(1/2) here; its authors' program has.)

    That holds while attention is spread out, so vectors of about the paper's size, 0.1, are to go in; those
    of `models.inputs.Embedding` with learned positions are. At size 1, as sinusoids make them, products of D
    numbers let softmax see a single vector from the start, and what is made is several times too large.

    Args:
        dim: width D.
        num_layers: layers L.
        kernel_size: vectors in a window, the one a place stands at and those before.
        hidden_dim: channels of the convolutions.
        dropout_rate: dropout on the inputs of every convolution.
        rngs: source of the initial parameters.

    Source: Gehring et al. 2017, "Convolutional sequence to sequence learning".
    """

    def __init__(
        self,
        dim: int,
        *,
        num_layers: int = 4,
        kernel_size: int = 3,
        hidden_dim: Annotated[int, derived(lambda dim: dim)],
        dropout_rate: Rate = 0.0,
        rngs: nnx.Rngs,
    ):
        self.kept = kernel_size - 1
        self.input = linear(dim, hidden_dim, dropout_rate=dropout_rate, rngs=named(rngs, "input"))
        self.layers = nnx.List(
            ConvolutionalLayer(
                dim, hidden_dim, kernel_size, dropout_rate=dropout_rate, rngs=named(rngs, f"layers.{layer}")
            )
            for layer in range(num_layers)
        )
        self.output = linear(hidden_dim, dim, rngs=named(rngs, "output"))

    def __call__(
        self,
        y: Float[Array, "B T D"],
        memory: Memory,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Decoded:
        """The vectors after each place of a known sequence, and the weights of each layer, `[B, 1, T, S]`."""
        vectors, _, weights = self._advance(self.start(memory, y.shape[1]), y, rngs)
        return Decoded(vectors, weights if return_weights else ())

    def start(self, memory: Memory, length: int) -> Cache:
        """The cache before the first place: nothing but zeros has gone into the convolutions."""
        # All layers pull at the encoder; with this it moves about as much as the rest (section 3.4).
        keys = scale_gradient(memory.vectors, 1 / (2 * len(self.layers)))
        count = memory.mask.sum(axis=-1).astype(keys.dtype)[:, None, None]
        values = (keys + memory.inputs) * ROOT_HALF * jnp.sqrt(count)
        source = Source(keys[:, :, None], values[:, :, None], memory.mask[:, None, None])
        nothing = jnp.zeros((len(keys), self.kept, self.input.out_features), keys.dtype)
        return Cache(source, (nothing,) * len(self.layers))

    def step(self, cache: Cache, y: Float[Array, "B D"]) -> tuple[Float[Array, "B D"], Cache]:
        """The vector after one more place, and the cache then."""
        vectors, cache, _ = self._advance(cache, y[:, None], None)
        return vectors[:, 0], cache

    def _advance(
        self, cache: Cache, y: Float[Array, "B T D"], rngs: nnx.Rngs | None
    ) -> tuple[Float[Array, "B T D"], Cache, tuple[Float[Array, "B 1 T S"], ...]]:
        """T places further: the vectors there, the cache then, and the weights of each layer."""
        x, pasts, weights = self.input(y), [], []
        for layer, past in zip(self.layers, cache.past, strict=True):
            x, past, looks = layer(x, past, y, cache.memory, rngs)
            pasts.append(past)
            weights.append(looks)
        return self.output(x), Cache(cache.memory, tuple(pasts)), tuple(weights)


def scale_gradient(x: jax.Array, factor: float) -> jax.Array:
    """`x` itself, with a gradient that is `factor` times as large."""
    scaled = factor * x
    return jax.lax.stop_gradient(x) + (scaled - jax.lax.stop_gradient(scaled))
