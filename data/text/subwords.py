"""Text as numbers and back: subwords, characters or words, learnt from training text by SentencePiece.

Kudo and Richardson, "SentencePiece: A simple and language independent subword tokenizer and detokenizer",
2018. There is no normalisation but of spaces: what separates words counts as one space, and spaces at the
ends do not count. Other than that, every line whose characters occur in the training text comes back as it
was; with words, every line whose words do.
"""

import base64
import collections
import dataclasses
import functools
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import sentencepiece

import errors

# Tokens that stand for no text; as in models/encoder_decoder.py.
PADDING, UNKNOWN, START, END = range(4)
FIRST = 4  # the first token that stands for text

Unit = Literal["bpe", "unigram", "char", "word"]
UNITS = get_args(Unit)
_WORD = "word"
_UNKNOWN_TEXT = "⁇"  # what SentencePiece writes for text that is not known
_SPACE = "▁"  # what it writes for a space
_LEAST_LENGTH = 10  # bytes; it leaves out lines that are longer than a length, which must not be less
_ERRORS_ONLY = 2  # of its log


@dataclasses.dataclass(frozen=True)
class Subwords:
    """A vocabulary that encodes lines of text and decodes tokens.

    Attributes:
        model: the trained model of SentencePiece, base64.
        unit: what a token is; see `fit`.
        lower: whether text is lower-cased first.
    """

    model: str
    unit: Unit
    lower: bool = False

    @classmethod
    def fit(
        cls,
        lines: Iterable[str],
        *,
        unit: Unit = "bpe",
        vocab_size: int = 8_000,
        lower: bool = False,
        min_count: int = 1,
    ) -> "Subwords":
        """Learns a vocabulary; the same lines always give the same one.

        Args:
            lines: text of the training side, a sentence each.
            unit: subwords by bpe (Sennrich 2016) or unigram (Kudo 2018), char, or word between spaces.
            vocab_size: tokens at most, the four that stand for no text included.
            lower: turn text to lower case first.
            min_count: occurrences in train for a word to be known, with words alone.

        Raises:
            errors.UserError: an argument is not allowed, there is no text, or its characters alone are more
                than `vocab_size`.
        """
        if unit not in UNITS:
            raise errors.unknown("unit of text", unit, UNITS)
        if vocab_size <= FIRST:
            raise errors.UserError(f"vocab_size {vocab_size!r} is not allowed: at least {FIRST + 1}")
        if min_count < 1 or (min_count > 1 and unit != _WORD):
            raise errors.UserError(
                f"min_count {min_count!r} is not allowed: at least 1, and more of unit {_WORD!r} alone"
            )
        text = [normal for line in lines if (normal := _normal(line, lower))]
        if not text:
            raise errors.UserError("no text to learn a vocabulary from: every line is blank")
        vocab_size = min(vocab_size, _most(text, unit, vocab_size, min_count))
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type=unit,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            normalization_rule_name="identity",
            max_sentence_length=max(_LEAST_LENGTH, *(len(line.encode()) for line in text)),
            pad_id=PADDING,
            unk_id=UNKNOWN,
            bos_id=START,
            eos_id=END,
            unk_surface=f" {_UNKNOWN_TEXT} " if unit == _WORD else _UNKNOWN_TEXT,
            num_threads=1,
            minloglevel=_ERRORS_ONLY,
        )
        return cls(base64.b64encode(model.getvalue()).decode(), unit, lower)

    @property
    def size(self) -> int:
        """How many tokens there are, those that stand for no text included."""
        return self._processor.get_piece_size()

    def encode(self, lines: Iterable[str]) -> list[list[int]]:
        """The tokens of each line, without `END`; none of a blank line.

        A run of characters that are not known is one `UNKNOWN`; with words, each of them is.
        """
        normal = [_normal(line, self.lower) for line in lines]
        if self.unit != _WORD:
            return self._processor.encode(normal)
        # Word by word, since SentencePiece makes one of neighbours that are not known.
        return [[token for (token,) in self._processor.encode(line.split())] for line in normal]

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Which characters of a line each of its tokens stands for, from the first up to the second.

        They are counted in the line as `encode` reads it, its spaces made one each.
        """
        pieces = self._processor.encode(_normal(line, self.lower), return_type="proto").pieces
        return [(piece.begin, piece.end) for piece in pieces]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens up to the first `END`; `UNKNOWN` is written as "⁇"."""
        return " ".join(self._processor.decode(_until_end(tokens)).split())

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """Each token in writing, with "▁" where a word begins, `END` and padding included."""
        return self._processor.id_to_piece([int(token) for token in tokens])

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can write it, in the form of the first runs, which are resumed by it."""
        return {"model": self.model, "kind": self.unit, "lower": self.lower}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Subwords":
        """What `to_json` gave, also after it was written and read."""
        return cls(stored["model"], stored["kind"], stored["lower"])

    @property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        return _load(self.model)


@functools.lru_cache(maxsize=8)
def _load(model: str) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(model))


def _normal(line: str, lower: bool) -> str:
    return " ".join((line.lower() if lower else line).replace(_SPACE, " ").split())


def _until_end(tokens: Iterable[int]) -> list[int]:
    kept: list[int] = []
    for token in tokens:
        if token == END:
            break
        kept.append(int(token))
    return kept


def _most(text: Sequence[str], unit: str, vocab_size: int, min_count: int) -> int:
    """More tokens than this the text does not give; SentencePiece itself does not always stop there."""
    if unit == _WORD:
        counts = collections.Counter(word for line in text for word in line.split())
        return FIRST + max(1, sum(count >= min_count for count in counts.values()))
    characters = len(set().union(*text) | {" "})  # a space begins every line, as "▁"
    if unit != "char" and vocab_size < FIRST + characters:
        raise errors.UserError(
            f"vocab_size {vocab_size} is too small for {characters} characters: at least "
            f"{FIRST + characters}, or unit 'char' or {_WORD!r}"
        )
    return FIRST + characters if unit == "char" else vocab_size
