"""Encoder and decoder together: any input of `models.inputs` to a sequence of tokens.

Translation, speech, captions: what differs is where the vectors come from, and which encoder and decoder a
config names. `models.search` drives it when the sequence is not known.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from errors import UserError
from models import inputs as vectors
from models.decoders import DECODERS
from models.decoders.decoder import Cache, Draws, Memory
from models.encoders import ENCODERS
from models.inputs import INPUTS, Batch, Embedding
from models.layers.linear import Linear
from models.positions import POSITIONS
from models.rngs import named
from spec import Block, Rate, call

# Tokens that stand for no text; as in data/text/subwords.py.
PADDING, UNKNOWN, START, END = range(4)


class Prediction(NamedTuple):
    """What a model says of each next token of a known sequence.

    Attributes:
        logits: `[B, T, V]`.
        weights: of each layer's attention to the memory, `[B, N, T, S]`, if asked for.
        draws: of hard attention alone.
    """

    logits: Float[Array, "B T V"]
    weights: tuple[Float[Array, "B N T S"], ...]
    draws: Draws | None


class Tokens(nnx.Module):
    """From tokens to vectors, with positions, and from vectors to logits.

    Args:
        positions: what tells the tokens where they stand.
        tie_output: the logits are products with the embeddings, `y E^T + b` (Press and Wolf 2017), else a
            linear layer of their own.
        dropout_rate: dropout on the embedded tokens that go into the decoder.
        output_dropout_rate: dropout before the logits.
        dim: width D.
        vocab_size: tokens V.
        embedding: the table of the inputs, where both sides share one; None makes one.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        positions: Annotated[Block, POSITIONS] | str = "none",
        tie_output: bool = True,
        dropout_rate: Rate = 0.0,
        output_dropout_rate: Rate = 0.0,
        dim: int,
        vocab_size: int,
        embedding: Embedding | None,
        rngs: nnx.Rngs,
    ):
        self.embedding = embedding or Embedding(vocab_size, dim, rngs=named(rngs, "embedding"))
        self.positions = POSITIONS.build(
            positions, "config.model.tokens.positions", dim=dim, rngs=named(rngs, "positions")
        )
        self.output = None if tie_output else Linear(dim, vocab_size, rngs=named(rngs, "output"))
        self.bias = nnx.Param(jnp.zeros(vocab_size)) if tie_output else None
        self.dropout = nnx.Dropout(dropout_rate)
        self.output_dropout = nnx.Dropout(output_dropout_rate)

    def vectors(self, tokens: Int[Array, "B T"], rngs: nnx.Rngs | None) -> Float[Array, "B T D"]:
        """What goes into a decoder: the token before each place, `START` first."""
        before = jnp.pad(tokens, ((0, 0), (1, 0)), constant_values=START)[:, :-1]
        y = self.positions(self.embedding(before))
        return self.dropout(y, deterministic=rngs is None, rngs=rngs)

    def vector(self, token: Int[Array, "B"], index: Int[Array, "B"]) -> Float[Array, "B D"]:
        """The same at one place, `token` being the one before it."""
        return self.positions.at(self.embedding(token), index)

    def logits(self, y: Float[Array, "*B D"], rngs: nnx.Rngs | None) -> Float[Array, "*B V"]:
        """Logits of the next token."""
        y = self.output_dropout(y, deterministic=rngs is None, rngs=rngs)
        if self.output is not None:
            return self.output(y)
        assert self.bias is not None
        rows = y.reshape(-1, y.shape[-1]) @ self.embedding.embedding[...].T
        return (rows + self.bias[...][None]).reshape(*y.shape[:-1], -1)


TOKENS = call(Tokens, given=("dim", "vocab_size", "embedding", "rngs"))


class EncoderDecoder(nnx.Module):
    """Inputs, positions and encoder make a memory; a decoder attends to it and makes tokens.

    Args:
        dim: width D of the vectors on both sides.
        inputs: how words, bytes, frames or images become vectors.
        positions: what tells these vectors where they stand.
        encoder: what lets them know of each other.
        tokens: embeddings, positions and logits of what is made.
        decoder: what attends to the encoded vectors and makes the next one.
        share_embeddings: one table of embeddings for both sides, which needs one vocabulary.
        columns: which columns a batch has, with their sizes; see `models.inputs.build`.
        vocab_size: tokens V that can be made.
        rngs: source of the initial parameters.

    Raises:
        UserError: on parts that do not go together.
    """

    def __init__(
        self,
        *,
        dim: int = 128,
        inputs: Annotated[Block, INPUTS] | str = "words",
        positions: Annotated[Block, POSITIONS] | str = "none",
        encoder: Annotated[Block, ENCODERS] | str = "rnn",
        tokens: Annotated[Block, TOKENS],
        decoder: Annotated[Block, DECODERS] | str = "rnn",
        share_embeddings: bool = False,
        columns: Mapping[str, Any],
        vocab_size: int,
        rngs: nnx.Rngs,
    ):
        self.inputs = vectors.build(inputs, columns, dim=dim, rngs=named(rngs, "inputs"))
        self.positions = POSITIONS.build(
            positions, "config.model.positions", dim=dim, rngs=named(rngs, "positions")
        )
        self.encoder = ENCODERS.build(encoder, "config.model.encoder", dim=dim, rngs=named(rngs, "encoder"))
        shared = getattr(self.inputs, "words", None) if share_embeddings else None
        if share_embeddings and (shared is None or columns["words"] != vocab_size):
            raise UserError(
                "config.model.share_embeddings needs words of one vocabulary as input and output; turn it off"
            )
        self.tokens = TOKENS.build(
            tokens,
            "config.model.tokens",
            dim=dim,
            vocab_size=vocab_size,
            embedding=shared,
            rngs=named(rngs, "tokens"),
        )
        self.decoder = DECODERS.build(decoder, "config.model.decoder", dim=dim, rngs=named(rngs, "decoder"))

    def encode(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Memory:
        """The memory of a batch."""
        x, mask = self.inputs(batch, train=train, rngs=rngs)
        x = self.positions(x, mask)
        return Memory(self.encoder(x, mask, train=train, rngs=rngs), mask, x)

    def __call__(
        self,
        batch: Batch,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Prediction:
        """What it says of each token, all before it being known.

        Args:
            batch: the columns of its inputs, and `tokens`, int32 `[B, T]`, with `END` at the end and 0 after.
            train: normalise by the batch's own statistics where there are any; draw hard attention.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return the weights of attention too; the logits stay the same.
        """
        memory = self.encode(batch, train=train, rngs=rngs)
        decoded = self.decoder(
            self.tokens.vectors(batch["tokens"], rngs),
            memory,
            train=train,
            rngs=rngs,
            return_weights=return_weights,
        )
        return Prediction(self.tokens.logits(decoded.vectors, rngs), decoded.weights, decoded.draws)

    def start(self, memory: Memory, length: int) -> Cache:
        """The cache before the first token, with room for `length` of them."""
        made, past = self.decoder.start(memory, length)
        return Cache(made, (past, jnp.zeros(len(memory.mask), jnp.int32)))

    def step(self, cache: Cache, token: Int[Array, "B"]) -> tuple[Float[Array, "B V"], Cache]:
        """Logits of the next token after `token` (`START` at first), and the cache then."""
        past, index = cache.past
        y, (made, past) = self.decoder.step(Cache(cache.memory, past), self.tokens.vector(token, index))
        return self.tokens.logits(y, None), Cache(made, (past, index + 1))


ENCODER_DECODER = call(EncoderDecoder, given=("columns", "vocab_size", "rngs"))
