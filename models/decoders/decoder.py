"""What a decoder is: from a memory and the vectors made so far to the next one.

A decoder is called in two ways, which agree:

    decoder(y [B T D], memory, rngs=None) -> Decoded          all places of a known sequence at once
    decoder.start(memory, length) -> Cache                    and then, place by place,
    decoder.step(cache, y [B D]) -> (vectors [B D], Cache)

`y` are the embedded tokens before each place, and no place sees a later one. How tokens become vectors and
vectors logits is not for a decoder; see `models.encoder_decoder`.
"""

from typing import Any, NamedTuple, Protocol

from flax import nnx
from jaxtyping import Array, Bool, Float


class Memory(NamedTuple):
    """What an encoder made of the input.

    Attributes:
        vectors: `[B, S, D]`, 0 at padding.
        mask: `[B, S]`, True where a vector is real.
        inputs: the same vectors before the encoder, `[B, S, D]`, 0 at padding.
    """

    vectors: Float[Array, "B S D"]
    mask: Bool[Array, "B S"]
    inputs: Float[Array, "B S D"]


class Cache(NamedTuple):
    """What a decoder keeps from place to place, any pytrees of arrays that begin with the batch axis.

    Attributes:
        memory: what it made of the memory, the same at all places and for all hypotheses of an example.
        past: what it remembers of the places before.
    """

    memory: Any
    past: Any


class Draws(NamedTuple):
    """Of hard attention: which look was drawn at each place.

    Attributes:
        log_probability: of the look, `[B, T]`.
        entropy: of what it was drawn from, `[B, T]`, in nats.
    """

    log_probability: Float[Array, "B T"]
    entropy: Float[Array, "B T"]


class Decoded(NamedTuple):
    """What a decoder makes of a known sequence.

    Attributes:
        vectors: `[B, T, D]`.
        weights: those of each layer's attention to the memory, `[B, N, T, S]`, if asked for; none of a
            decoder without attention.
        draws: of hard attention alone.
    """

    vectors: Float[Array, "B T D"]
    weights: tuple[Float[Array, "B N T S"], ...] = ()
    draws: Draws | None = None


class Decoder(Protocol):
    """What all decoders can do."""

    def __call__(
        self,
        y: Float[Array, "B T D"],
        memory: Memory,
        *,
        train: bool = False,
        rngs: nnx.Rngs | None = None,
        return_weights: bool = False,
    ) -> Decoded:
        """The vectors after each place of a known sequence.

        Args:
            y: embedded tokens, the one before each place.
            memory: what the encoder made.
            train: normalise by the batch's own statistics where there are any; draw hard attention.
            rngs: stream `dropout`; None turns dropout off.
            return_weights: return the weights too; the vectors stay the same.
        """

    def start(self, memory: Memory, length: int) -> Cache:
        """The cache before the first place, with room for `length` of them."""

    def step(self, cache: Cache, y: Float[Array, "B D"]) -> tuple[Float[Array, "B D"], Cache]:
        """The vector after one more place, and the cache then."""
