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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from attention import attend, masks
from attention.co_attention import co_attention, gate
from models import encoding
from models.fields import construct
from models.inputs import Batch
from models.linear import Linear
from models.multi_head_attention import MultiHeadAttention
from models.pool import SELF_ATTENTIVE, Pool

ENDS = ("pointer", "independent")


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
        encoder: a `models.encoders` of width D.
        rngs: source of the initial parameters.
    """

    def __init__(self, dim: int, context_dim: int, encoder: Any, *, rngs: nnx.Rngs):
        width = dim + context_dim
        self.gate_kernel = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (width, width)))
        self.project = Linear(width, dim, rngs=rngs)
        self.encoder = encoder

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
        dim: width D of the vectors.
        end: "pointer", where the end is looked for from the vector of the start, or "independent" of it.
        attention_dim: hidden width of the attention by which the question is summarised.
        rngs: source of the initial parameters.

    Raises:
        ValueError: if end is none of the above.
    """

    def __init__(self, dim: int, *, end: str = "pointer", attention_dim: int = 64, rngs: nnx.Rngs):
        if end not in ENDS:
            raise ValueError(f"end is {end!r}; it must be one of {ENDS}")
        self.summary = Pool(dim, SELF_ATTENTIVE, attention_dim=attention_dim, rngs=rngs)
        self.start_query, self.start_key, self.end_query, self.end_key = (
            Linear(dim, dim, rngs=rngs) for _ in range(4)
        )
        self.step = Linear(dim, dim, use_bias=False, rngs=rngs) if end == "pointer" else None

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


class Reader(nnx.Module):
    """The whole model.

    Args:
        parts: inputs, positions and the encoder of passage and question; see `models.encoding`.
        affinity: what both sides are mapped to before they are compared. One map for both, so that like
            words match from the first step.
        read: the encoder of a passage that has read the question.
        match: the attention of a passage to itself, and the encoder after it; None where it has none.
        head: points to the answer.
        dropout_rate: dropout on what goes from stage to stage.
    """

    def __init__(
        self,
        parts: encoding.Parts,
        affinity: Linear,
        read: GatedEncoder,
        match: tuple[MultiHeadAttention, GatedEncoder] | None,
        head: SpanHead,
        *,
        dropout_rate: float,
    ):
        self.inputs, self.positions, self.encoder = parts
        self.affinity, self.read, self.head = affinity, read, head
        self.match_attention = None if match is None else match[0]
        self.match = None if match is None else match[1]
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


def build(model: Mapping[str, Any], *, inputs: Mapping[str, Any], rngs: nnx.Rngs) -> Reader:
    """The reader of a config block.

    Args:
        model: the fields of `models.encoding.build`, where every encoder is of the same form;
            `self_matching`, the mechanism by which the passage reads itself (see `models.mechanisms`), none
            if its kind is "none" or it is left out; and `head`, the fields of `SpanHead`.
        inputs: which columns there are, with their sizes: `{"words": vocabulary, "affixes": (one for each
            kind, ...)}`.
        rngs: source of the initial parameters.

    Raises:
        UserError: on an unknown word or field, one that is missing, a value out of range, or parts that do
            not go together.
    """
    fields = dict(model)
    head, matching = (dict(fields.pop(name, None) or {}) for name in ("head", "self_matching"))
    parts = encoding.build(fields, inputs=inputs, rngs=rngs)
    dim, rate = fields["dim"], fields.get("dropout_rate", 0.0)

    def gated(width: int) -> GatedEncoder:
        return GatedEncoder(dim, width, encoding.encoder(fields, rngs=rngs), rngs=rngs)

    match = None
    if matching.get("kind", "none") != "none":
        match = MultiHeadAttention(dim, 1, attention=matching, rngs=rngs), gated(dim)
    pointer: Any = construct("config.model.head", SpanHead, head, dim=dim, rngs=rngs)
    affinity = Linear(dim, dim, use_bias=False, rngs=rngs)
    return Reader(parts, affinity, gated(2 * dim), match, pointer, dropout_rate=rate)
