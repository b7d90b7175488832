"""What the builders of text data sets share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow_datasets as tfds

import errors
from data.builder import Builder, Record
from data.text import tokenisation
from data.text.types import TaggedSentences


class TaggedBuilder(Builder):
    """A TFDS builder of tagged sentences.

    Attributes:
        TAGS: every tag there is.
    """

    TAGS: ClassVar[tuple[str, ...]]
    SUPERVISED = ("tokens", "tags")

    @classmethod
    def features(cls) -> dict[str, Any]:
        """Tokens and a tag for each."""
        return {
            "tokens": tfds.features.Sequence(tfds.features.Text()),
            "tags": tfds.features.Sequence(tfds.features.ClassLabel(names=cls.TAGS)),
        }

    @classmethod
    def what(cls) -> str:
        """Tagged sentences."""
        return "tagged sentences"

    @classmethod
    def check(cls, split: str, examples: Sequence[Record]) -> None:
        """The number of sentences, and that every tag is known."""
        super().check(split, examples)
        known, tags = set(cls.TAGS), cls.SUPERVISED[1]
        for index, example in enumerate(examples):
            for tag in example[tags]:
                if tag not in known:
                    raise errors.RunError(
                        f"{cls.where(split)}: tag {tag!r} in sentence {index:,}; allowed: "
                        f"{', '.join(cls.TAGS)}"
                    )


class ParallelBuilder(Builder):
    """A TFDS builder of sentences in several languages.

    Attributes:
        LANGUAGES: the languages, each the name of a feature.
    """

    LANGUAGES: ClassVar[tuple[str, ...]]

    @classmethod
    def features(cls) -> dict[str, Any]:
        """The sentence in each language."""
        return {language: tfds.features.Text() for language in cls.LANGUAGES}

    @classmethod
    def what(cls) -> str:
        """Sentences, with their languages."""
        return f"sentences in {', '.join(cls.LANGUAGES)}"


def tagged_records(sentences: TaggedSentences) -> list[Record]:
    """Sentences as a `TaggedBuilder` writes them."""
    pairs = zip(sentences.tokens, sentences.tags, strict=True)
    return [{"tokens": list(tokens), "tags": list(tags)} for tokens, tags in pairs]


class LabelledBuilder(Builder):
    """A TFDS builder of texts with one label each.

    Attributes:
        CLASSES: every label there is.
        TOKENISATION: how its text is made into tokens, a word of `data.text.tokenisation`.
    """

    CLASSES: ClassVar[tuple[str, ...]]
    TOKENISATION: ClassVar[str] = "whitespace"
    SUPERVISED = ("text", "label")

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.METADATA = {"tokenisation": tokenisation.check(cls.TOKENISATION)}

    @classmethod
    def features(cls) -> dict[str, Any]:
        """The text and its label."""
        return {"text": tfds.features.Text(), "label": tfds.features.ClassLabel(names=cls.CLASSES)}

    @classmethod
    def what(cls) -> str:
        """Labelled texts."""
        return "labelled texts"

    @classmethod
    def check(cls, split: str, examples: Sequence[Record]) -> None:
        """The number of texts, and that every label is known."""
        super().check(split, examples)
        for index, example in enumerate(examples):
            if example["label"] not in cls.CLASSES:
                raise errors.RunError(
                    f"{cls.where(split)}: label {example['label']!r} of text {index:,}; allowed: "
                    f"{', '.join(cls.CLASSES)}"
                )


def labelled_lines(
    lines: Iterator[tuple[int, str]], name: str, names: Mapping[str, str], separator: str
) -> list[Record]:
    """Texts from lines that begin with a label.

    Args:
        lines: the lines of a file with their numbers.
        name: what to call the file in an error.
        names: how each label of the file is called in the data set.
        separator: what stands between label and text.

    Raises:
        errors.RunError: a line begins with no label of `names`.
    """
    records: list[Record] = []
    for number, line in lines:
        label, separated, text = line.partition(separator)
        if not separated or label not in names:
            raise errors.RunError(
                f"{name}:{number}: begins with {label[:20]!r}; a label is needed, one of {', '.join(names)}"
            )
        records.append({"text": text.strip(" "), "label": names[label]})
    return records
