"""A generated language of a few dozen words: made up, to show what a model can use and not what it knows.

**Labelling.** Sentences such as "I saw a saw ." and "they can fish the can .", whose tags are parts of
speech. Half the words are of two or three parts of speech, and only what stands around them decides:

    S      -> (I | they | ...) (know | ...) that Clause .  |  Clause .
    Clause -> Noun_phrase Verb_phrase
    Noun_phrase -> PRON  |  DET [ADJ] NOUN
    Verb_phrase -> [AUX | ADV] VERB [Noun_phrase | "that"] [ADP Noun_phrase]

A noun never stands without its determiner, so a row of words has one tagging only.

**Classification.** "the dog near the cats behind the bird beside the ducks sleeps": does the verb at the end
agree in number with the noun at the beginning? Label "yes" or "no". In between stand nouns of both numbers,
as many singular as plural ones with the first; any of them could as well stand first, so the words without
their order say nothing at all about the label.

Example i is a pure function of (seed, split, i): the first n examples of a seed are the same whatever n is,
and there is no end to them. Validation and test are the same for every seed.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from data import streams
from data.splits import Splits
from data.text.types import LabelledTexts, TaggedSentences

NUM_EXAMPLES = {"train": 2_000, "validation": 500, "test": 1_000}
_SHARED_SEED = 0

_NOUN_OR_VERB = ("saw", "fish", "can", "duck", "light", "watch", "play", "plant")
_NOUNS = ("will", "bird", "garden", *_NOUN_OR_VERB)
_VERBS = ("find", "see", *_NOUN_OR_VERB)
_REPORTS = ("know", "hope")
_DETERMINERS = ("the", "a", "that", "her")
_PRONOUNS = ("I", "you", "we", "they")
_OBJECTS = ("her", "that", "them")
_ADJECTIVES = ("old", "red", "small")
_AUXILIARIES = ("can", "will", "must")
_ADVERBS = ("never", "often")
_ADPOSITIONS = ("with", "near", "like")

_ANIMALS = (
    ("dog", "dogs"),
    ("cat", "cats"),
    ("bird", "birds"),
    ("duck", "ducks"),
    ("fox", "foxes"),
    ("cow", "cows"),
)
_PLACES = ("near", "behind", "beside", "above")
_ACTS = (("sleeps", "sleep"), ("runs", "run"), ("sings", "sing"), ("waits", "wait"))
_MOST_PAIRS = 4

Word = tuple[str, str]  # a token and its tag
Made = TypeVar("Made", LabelledTexts, TaggedSentences)


def splits(make: Callable[[str, int, int], Made], seed: int) -> Splits[Made]:
    """The data set of `tagged` or of `labelled`, its train drawn by `seed`."""
    return Splits(
        make("train", NUM_EXAMPLES["train"], seed),
        make("validation", NUM_EXAMPLES["validation"], _SHARED_SEED),
        make("test", NUM_EXAMPLES["test"], _SHARED_SEED),
    )


def tagged(split: str, size: int, seed: int) -> TaggedSentences:
    """The first `size` tagged sentences of a split."""
    sentences = [_sentence(_Draw(seed, f"grammar tags {split}", index)) for index in range(size)]
    return TaggedSentences(
        [[token for token, _ in words] for words in sentences],
        [[tag for _, tag in words] for words in sentences],
    )


def labelled(split: str, size: int, seed: int) -> LabelledTexts:
    """The first `size` labelled texts of a split."""
    pairs = [_agreement(_Draw(seed, f"grammar agreement {split}", index)) for index in range(size)]
    return LabelledTexts([tokens for tokens, _ in pairs], [label for _, label in pairs])


class _Draw:
    """Choices of one example."""

    _MOST = 64  # more than any example makes

    def __init__(self, seed: int, purpose: str, index: int):
        self._words = iter(streams.Stream(seed, purpose, index).integers(2**32, self._MOST).tolist())

    def below(self, high: int) -> int:
        """Uniform in [0, high)."""
        return next(self._words) * high >> 32

    def of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]


def _sentence(draw: _Draw) -> list[Word]:
    words: list[Word] = []
    if draw.below(4) == 0:
        words += [(draw.of(_PRONOUNS), "PRON"), (draw.of(_REPORTS), "VERB"), ("that", "SCONJ")]
    words += [(draw.of(_PRONOUNS), "PRON")] if draw.below(2) else _noun_phrase(draw)
    before = draw.below(4)
    if before == 0:
        words.append((draw.of(_ADVERBS), "ADV"))
    elif before == 1:
        words.append((draw.of(_AUXILIARIES), "AUX"))
    words.append((draw.of(_VERBS), "VERB"))
    after = draw.below(4)
    if after == 0:
        words.append((draw.of(_OBJECTS), "PRON"))
    elif after < 3:
        words += _noun_phrase(draw)
    if draw.below(3) == 0:
        words += [(draw.of(_ADPOSITIONS), "ADP"), *_noun_phrase(draw)]
    return [*words, (".", "PUNCT")]


def _noun_phrase(draw: _Draw) -> list[Word]:
    words = [(draw.of(_DETERMINERS), "DET")]
    if draw.below(3) == 0:
        words.append((draw.of(_ADJECTIVES), "ADJ"))
    return [*words, (draw.of(_NOUNS), "NOUN")]


def _agreement(draw: _Draw) -> tuple[list[str], str]:
    pairs = 1 + draw.below(_MOST_PAIRS)
    numbers = [0] * pairs + [1] * pairs  # singular and plural
    for last in range(len(numbers) - 1, 0, -1):  # Fisher and Yates
        chosen = draw.below(last + 1)
        numbers[last], numbers[chosen] = numbers[chosen], numbers[last]
    tokens: list[str] = []
    for number in numbers:
        tokens += [draw.of(_PLACES)] if tokens else []
        tokens += ["the", _ANIMALS[draw.below(len(_ANIMALS))][number]]
    verb = draw.below(2)
    tokens.append(_ACTS[draw.below(len(_ACTS))][verb])
    return tokens, "yes" if verb == numbers[0] else "no"
