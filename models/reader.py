"""A reader: a passage and a question in, where the answer begins and ends in the passage out.

1. One encoder reads passage and question.
2. Co-attention: each word of the passage reads the question, and what the question has read of the passage.
3. R-Net's gate lets through what matters of a word and its reading, and an encoder carries it along.
4. If asked for, self-matching: the passage reads itself, through a gate and an encoder of its own, and adds
   what comes of it. (R-Net adds nothing; then a set as small as XQuAD teaches it nothing.)
5. A summary of the question points to the first token of the answer, and from there to the last.

Wang et al. (2017), "Gated self-matching networks for reading comprehension and question answering" (R-Net);
Xiong, Zhong and Socher (2017), "Dynamic coattention networks for question answering"; Vinyals, Fortunato and
Jaitly (2015), "Pointer networks"; Clark and Gardner (2018), "Simple and effective multi-paragraph reading
comprehension" (the sum).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import attend, masks
from attention.co_attention import co_attention, gate
from models import inputs as vectors
from models.encoders import ENCODERS
from models.inputs import INPUTS, Batch
from models.layers.linear import Linear
from models.layers.multi_head_attention import MultiHeadAttention
from models.layers.pooling import SelfAttentive
from models.mechanisms import MECHANISMS
from models.positions import POSITIONS
from models.rngs import named
from spec import Block, Rate, call


class Spans(NamedTuple):
    """How likely each span of a passage is, `p(start, end) = p(start) p(end | start)`.

    Attributes:
        start: log-probability that the answer begins at each token, `[B, T]`.
        end: that it ends at the second of two tokens if it begins at the first, `[B, T, T]`.
    """

    start: Float[Array, "B T"]
    end: Float[Array, "B T T"]

    def log_probability(self, start: Int[Array, "B"], end: Int[Array, "B"]) -> Float[Array, "B"]:
        """That of one span of each passage."""
        rows = jnp.arange(len(start))
        return self.start[rows, start] + self.end[rows, start, end]

    def best(self, mask: Bool[Array, "B T"], max_length: int) -> tuple[Int[Array, "B"], Int[Array, "B"]]:
        """First and last token of the likeliest span of at most `max_length` tokens, by trying them all.

        Of a passage without tokens they mean nothing.
        """
        length = self.start.shape[-1]
        allowed = masks.band(length, length, (0, max_length - 1), batch_dims=1)[:, 0]
        allowed = allowed & mask[:, :, None] & mask[:, None, :]
        scores = jnp.where(allowed, self.start[:, :, None] + self.end, -jnp.inf)
        found = scores.reshape(len(scores), -1).argmax(axis=-1).astype(jnp.int32)
        return found // length, found % length


class GatedEncoder(nnx.Module):
    """What each vector has read beside the vector, through R-Net's gate, to an encoder.

    Args:
        dim: width D.
        context_dim: width C of what was read.
        encoder: a block of `models.encoders.ENCODERS`.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, context_dim: int, encoder: Block | str, *, rngs: nnx.Rngs):
        width = dim + context_dim
        draws = named(rngs, "gate_kernel")
        self.gate_kernel = nnx.Param(nnx.initializers.lecun_normal()(draws.params(), (width, width)))
        self.project = Linear(width, dim, rngs=named(rngs, "project"))
        self.encoder = ENCODERS.build(encoder, "config.model.encoder", dim=dim, rngs=named(rngs, "encoder"))

    def __call__(
        self,
        x: Float[Array, "B T D"],
        context: Float[Array, "B T C"],
        mask: Bool[Array, "B T"],
        *,
        train: bool,
        rngs: nnx.Rngs | None,
    ) -> Float[Array, "B T D"]:
        """The encoded vectors, 0 at padding."""
        return self.encoder(
            self.project(gate(x, context, self.gate_kernel[...])), mask, train=train, rngs=rngs
        )


class SpanHead(nnx.Module):
    """Points to the first and to the last token of an answer, by scaled dot products.

    Args:
        end: "pointer", where the end is looked for from the vector of the start, or "independent" of it.
        attention_dim: hidden width of the attention by which the question is summarised.
        dim: width D of the vectors.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        end: Literal["pointer", "independent"] = "pointer",
        attention_dim: int = 64,
        dim: int,
        rngs: nnx.Rngs,
    ):
        self.summary = SelfAttentive(attention_dim=attention_dim, dim=dim, rngs=named(rngs, "summary"))
        self.start_query, self.start_key, self.end_query, self.end_key = (
            Linear(dim, dim, rngs=named(rngs, name))
            for name in ("start_query", "start_key", "end_query", "end_key")
        )
        step = Linear(dim, dim, use_bias=False, rngs=named(rngs, "step"))
        self.step = step if end == "pointer" else None

    def __call__(
        self,
        passage: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        question: Float[Array, "B S D"],
        question_mask: Bool[Array, "B S"],
    ) -> Spans:
        """How likely each span is."""
        summary, _ = self.summary(question, question_mask)
        start = _point(self.start_query(summary)[:, None], self.start_key(passage), mask)[:, 0]
        query = self.end_query(summary)[:, None]
        if self.step is not None:
            query = self.step(passage) + jnp.broadcast_to(query, passage.shape)
        end = _point(query, self.end_key(passage), mask)
        return Spans(start, jnp.broadcast_to(end, (*mask.shape, mask.shape[-1])))


def _point(
    query: Float[Array, "B R D"], key: Float[Array, "B T D"], mask: Bool[Array, "B T"]
) -> Float[Array, "B R T"]:
    """Log-probability of each token for each query."""
    scores = jnp.einsum("brd,btd->brt", query, key) * key.shape[-1] ** -0.5
    # Finite, so that a passage without tokens makes no NaN.
    return jax.nn.log_softmax(jnp.where(mask[:, None], scores, jnp.finfo(scores.dtype).min))


# One head, as wide as the vectors.
SELF_MATCHING = MECHANISMS.where(lambda make: True, "", head_dim=lambda dim: dim)
SPAN_HEAD = call(SpanHead, given=("dim", "rngs"))


class Reader(nnx.Module):
    """The whole model.

    Args:
        dim: width D of the vectors.
        inputs: how words become vectors.
        positions: what tells the vectors where they stand.
        encoder: what reads passage and question; one of the same form carries on what was read.
        self_matching: the mechanism by which the passage reads itself.
        head: points to the answer.
        dropout_rate: dropout on what goes from stage to stage.
        columns: which columns a batch has, with their sizes; see `models.inputs.build`.
        rngs: source of the initial parameters.
    """

    def __init__(
        self,
        *,
        dim: int = 128,
        inputs: Annotated[Block, INPUTS] | str = "words",
        positions: Annotated[Block, POSITIONS] | str = "none",
        encoder: Annotated[Block, ENCODERS] | str = "rnn",
        self_matching: Annotated[Block, SELF_MATCHING] | str = "none",
        head: Annotated[Block, SPAN_HEAD],
        dropout_rate: Rate = 0.0,
        columns: Mapping[str, Any],
        rngs: nnx.Rngs,
    ):
        self.inputs = vectors.build(inputs, columns, dim=dim, rngs=named(rngs, "inputs"))
        self.positions = POSITIONS.build(
            positions, "config.model.positions", dim=dim, rngs=named(rngs, "positions")
        )
        self.encoder = ENCODERS.build(encoder, "config.model.encoder", dim=dim, rngs=named(rngs, "encoder"))
        # One map for both sides that are compared, so that like words match from the first step.
        self.affinity = Linear(dim, dim, use_bias=False, rngs=named(rngs, "affinity"))
        self.read = GatedEncoder(dim, 2 * dim, encoder, rngs=named(rngs, "read"))
        matches = SELF_MATCHING.chosen(self_matching, "config.model.self_matching") != "none"
        self.match_attention = (
            MultiHeadAttention(dim, 1, attention=self_matching, rngs=named(rngs, "match_attention"))
            if matches
            else None
        )
        self.match = GatedEncoder(dim, dim, encoder, rngs=named(rngs, "match")) if matches else None
        self.head = SPAN_HEAD.build(head, "config.model.head", dim=dim, rngs=named(rngs, "head"))
        self.dropout = nnx.Dropout(dropout_rate)

    def __call__(self, batch: Batch, *, train: bool = False, rngs: nnx.Rngs | None = None) -> Spans:
        """How likely each span of each passage is.

        Args:
            batch: the columns of the inputs and `mask` `[B, T]` of the passage; the same of the question
                under `question`, `question_affixes` and `target_mask` `[B, S]`.
            train: normalise by the batch's own statistics, where there are any, and update the running ones.
            rngs: stream `dropout`; None turns dropout off.
        """
        asked = {"words": batch["question"], "mask": batch["target_mask"]}
        if "question_affixes" in batch:
            asked["affixes"] = batch["question_affixes"]
        question, question_mask = self._encode(asked, train, rngs)
        x, mask = self._encode(batch, train, rngs)
        x = self.read(x, self._co_attend(x, mask, question, question_mask), mask, train=train, rngs=rngs)
        x = self._drop(x, rngs)
        if self.match_attention is not None and self.match is not None:
            context: Any = self.match_attention(x, mask=mask[:, None, None, :], rngs=rngs)
            x = x + self._drop(self.match(x, context, mask, train=train, rngs=rngs), rngs)
        return self.head(x, mask, question, question_mask)

    def _encode(
        self, columns: Batch, train: bool, rngs: nnx.Rngs | None
    ) -> tuple[Float[Array, "B T D"], Bool[Array, "B T"]]:
        x, mask = self.inputs(columns, train=train, rngs=rngs)
        x = self.encoder(self.positions(x, mask), mask, train=train, rngs=rngs)
        return self._drop(x, rngs), mask

    def _co_attend(
        self,
        passage: Float[Array, "B T D"],
        mask: Bool[Array, "B T"],
        question: Float[Array, "B S D"],
        question_mask: Bool[Array, "B S"],
    ) -> Float[Array, "B T 2*D"]:
        """What the passage reads: the question, and what the question has read of the passage."""
        query, key = (self.affinity(side)[:, :, None] for side in (passage, question))
        visible = mask[:, None, :, None] & question_mask[:, None, None, :]
        direct, back = co_attention(query, key, question[:, :, None], mask=visible)
        indirect: Any = attend(query, key, back, mask=visible)
        return jnp.concatenate([direct, indirect], axis=-1)[:, :, 0]

    def _drop(self, x: jax.Array, rngs: nnx.Rngs | None) -> jax.Array:
        return self.dropout(x, deterministic=rngs is None, rngs=rngs)


READER = call(Reader, given=("columns", "rngs"))
