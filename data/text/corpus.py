"""Text in memory, in the words of the data: nothing is encoded yet."""

import dataclasses
from collections.abc import Iterable, Sequence

Tokens = Sequence[str]

NO_TAG = ""  # of a token that is given but not to be labelled


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
