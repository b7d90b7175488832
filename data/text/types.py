"""Text in memory, in the words of the data: nothing is encoded yet."""

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Tokens = Sequence[str]

NO_TAG = ""  # of a token that is given but not to be labelled

# Of `Text`: a word or number, a punctuation mark, or one character of a script without spaces (Chinese
# characters, Japanese kana). Words end at apostrophes and hyphens, since answers do.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


@dataclasses.dataclass(frozen=True)
class TaggedSentences:
    """Sentences with a tag for every token.

    Attributes:
        tokens: the tokens of each sentence.
        tags: the tag of each token; `NO_TAG` where it has none.
    """

    tokens: Sequence[Tokens]
    tags: Sequence[Tokens]

    def __post_init__(self):
        if len(self.tokens) != len(self.tags):
            raise ValueError(f"{len(self.tokens)} sentences of tokens, but {len(self.tags)} of tags")
        for index, (tokens, tags) in enumerate(zip(self.tokens, self.tags, strict=True)):
            if len(tokens) != len(tags):
                raise ValueError(f"sentence {index}: {len(tokens)} tokens, but {len(tags)} tags")

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, indices: Iterable[int]) -> "TaggedSentences":
        """The sentences at `indices`, in that order."""
        chosen = list(indices)
        return TaggedSentences([self.tokens[i] for i in chosen], [self.tags[i] for i in chosen])


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts with one label each.

    Attributes:
        tokens: the tokens of each text.
        label: the label of each text.
        tokenisation: how text was made into tokens, a word of `data.text.tokenisation`; what is to be
            predicted must be treated alike.
    """

    tokens: Sequence[Tokens]
    label: Sequence[str]
    tokenisation: str = "whitespace"

    def __post_init__(self):
        if len(self.tokens) != len(self.label):
            raise ValueError(f"{len(self.tokens)} texts, but {len(self.label)} labels")

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, indices: Iterable[int]) -> "LabelledTexts":
        """The texts at `indices`, in that order."""
        chosen = list(indices)
        return LabelledTexts(
            [self.tokens[i] for i in chosen], [self.label[i] for i in chosen], self.tokenisation
        )


Corpus = TaggedSentences | LabelledTexts


class Link(NamedTuple):
    """A part of a target and the part of the source that says the same.

    Attributes:
        target: its characters, from the first up to the second.
        source: those of the source, likewise.
    """

    target: tuple[int, int]
    source: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Lines of text, each with its translation.

    Attributes:
        source: what is given.
        target: what is asked for.
        links: of each pair which characters say the same, where that is known.
    """

    source: Sequence[str]
    target: Sequence[str]
    links: Sequence[Sequence[Link]] | None = None

    def __post_init__(self):
        if len(self.source) != len(self.target):
            raise ValueError(f"{len(self.source)} source lines, but {len(self.target)} target lines")
        if self.links is not None and len(self.links) != len(self.source):
            raise ValueError(f"{len(self.source)} lines, but links of {len(self.links)}")

    def __len__(self) -> int:
        return len(self.source)

    def take(self, indices: Iterable[int]) -> "ParallelText":
        """The pairs at `indices`, in that order."""
        chosen = list(indices)
        links = None if self.links is None else [self.links[i] for i in chosen]
        return ParallelText([self.source[i] for i in chosen], [self.target[i] for i in chosen], links)


@dataclasses.dataclass(frozen=True)
class Text:
    """A text and where its tokens are.

    Attributes:
        text: as it was given.
        places: of each token the character it begins with, and the one after its last.
    """

    text: str
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> "Text":
        """Finds the tokens."""
        return cls(text, tuple(token.span() for token in _TOKEN.finditer(text)))

    @functools.cached_property
    def tokens(self) -> list[str]:
        """The tokens themselves."""
        return [self.text[begin:end] for begin, end in self.places]

    def span(self, first: int, last: int) -> str:
        """The text from token `first` to token `last`, both of them included."""
        return self.text[self.places[first][0] : self.places[last][1]]

    def cover(self, begin: int, end: int) -> tuple[int, int] | None:
        """The first and last of the tokens that share a character with `[begin, end)`; None if none does."""
        inside = [i for i, (b, e) in enumerate(self.places) if b < end and e > begin]
        return (inside[0], inside[-1]) if inside else None


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a passage.

    Attributes:
        passage: what holds the answer.
        question: what is asked.
        span: the first and last token of the first answer, or of the fewest tokens that cover it.
        answers: every text that counts as an answer.
        article: what the passage is from; questions on one article stay together.
    """

    passage: Text
    question: Text
    span: tuple[int, int]
    answers: tuple[str, ...]
    article: str
