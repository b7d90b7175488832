"""Encoder and decoder together: any input of `models.inputs` to a sequence of tokens.

Translation, speech, captions: what differs is where the vectors come from, and which encoder and decoder a
config names. `models.decoding` drives it when the sequence is not known.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from errors import UserError
from models import decoders, encoding
from models.decoder import Cache, Draws, Memory
from models.fields import construct
from models.inputs import Batch, Embedding
from models.linear import Linear
from models.positions import RELATIVE, Positions

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
        dim: width D.
        vocab_size: tokens V.
        positions: absolute positions; see `models.positions.Positions`.
        embedding: the table of the inputs, where both sides share one; None makes one.
        tie_output: the logits are products with the embeddings, `y E^T + b` (Press and Wolf 2017), else a
            linear layer of their own.
        dropout_rate: dropout on the vectors that go in.
        output_dropout_rate: dropout on those that come out.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        dim: int,
        vocab_size: int,
        *,
        positions: Mapping[str, Any],
        embedding: Embedding | None = None,
        tie_output: bool = True,
        dropout_rate: float = 0.0,
        output_dropout_rate: float = 0.0,
        rngs: nnx.Rngs,
    ):
        self.embedding = embedding or Embedding(vocab_size, dim, rngs=rngs)
        self.positions = construct("config.model.positions", Positions, positions, dim=dim, rngs=rngs)
        self.output = None if tie_output else Linear(dim, vocab_size, rngs=rngs)
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


class EncoderDecoder(nnx.Module):
    """Inputs, positions and encoder make a memory; a decoder attends to it and makes tokens.

    Args:
        inputs, positions, encoder: see `models.encoding`.
        tokens: embeddings, positions and logits of what is made.
        decoder: one of `models.decoders`.
    """

    def __init__(
        self, inputs: nnx.Module, positions: nnx.Module, encoder: nnx.Module, tokens: Tokens, decoder: Any
    ):
        self.inputs, self.positions, self.encoder = inputs, positions, encoder
        self.tokens, self.decoder = tokens, decoder

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


def build(
    model: Mapping[str, Any], *, inputs: Mapping[str, Any], vocab_size: int, rngs: nnx.Rngs
) -> EncoderDecoder:
    """The model of a config block.

    Args:
        model: `dim`, the width D; `encoder` and `decoder`, `{"kind": word, ...}` of `models.encoders` and
            `models.decoders`; `positions` of both sides, `{"kind": word, ...}` (see `models.positions`);
            `inputs`, further fields of those (see `models.inputs`); `share_embeddings`, one table for both
            sides; `tie_output`, and for the logits too; `output_dropout_rate`, before these; and
            `dropout_rate`, for all parts that name no other.
        inputs: which columns there are, with their sizes; see `models.encoding.build`.
        vocab_size: tokens V that can be made.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word or field, one that is missing, a value out of range, or parts that do
            not go together.
    """
    fields = dict(model)
    encoder, decoder = (dict(fields.pop(name, None) or {}) for name in ("encoder", "decoder"))
    for name, block in (("encoder", encoder), ("decoder", decoder)):
        if "kind" not in block:
            raise UserError(f"config.model.{name}.kind is missing")
    front: dict[str, Any] = {
        name: fields.pop(name) for name in ("dim", "inputs", "positions", "dropout_rate") if name in fields
    }
    parts = encoding.build(front | encoder, inputs=inputs, block="config.model.encoder", rngs=rngs)
    positions = {"kind": "none", **dict(front.get("positions") or {})}
    kind, rate = decoder.pop("kind"), front.get("dropout_rate", 0.0)
    if positions["kind"] in RELATIVE:
        if not decoders.takes(kind, "positions"):
            raise UserError(
                f"config.model.positions.kind {positions['kind']!r} is part of self-attention, which decoder "
                f"{kind!r} has none of; it must be absolute"
            )
        decoder["positions"], positions = positions, {"kind": "none"}
    if decoders.takes(kind, "dropout_rate"):
        decoder.setdefault("dropout_rate", rate)
    embedding = None
    if fields.pop("share_embeddings", False):
        embedding = getattr(parts.inputs, "words", None)
        if embedding is None or inputs["words"] != vocab_size:
            raise UserError(
                "config.model.share_embeddings needs words of one vocabulary as input and output; turn it off"
            )
    tokens: Any = construct(
        "config.model",
        Tokens,
        fields,
        dim=front["dim"],
        vocab_size=vocab_size,
        positions=positions,
        embedding=embedding,
        dropout_rate=rate,
        rngs=rngs,
    )
    return EncoderDecoder(*parts, tokens, decoders.build(kind, front["dim"], decoder, rngs=rngs))
