"""Text as vectors: words with their affixes, or bytes."""

from collections.abc import Sequence
from typing import Any

from data.examples import Examples
from data.splits import Splits
from data.text.vocabulary import Vocabulary
from errors import UserError
from tasks.task import Encoded, Inputs, Per, Record


def encoded(splits: Splits[Any], vocabulary: Vocabulary, per: Per) -> Encoded:
    """The data set as numbers, with the labels that it has of its texts or of their tokens."""
    examples = Splits(*map(vocabulary.encode, vars(splits).values()))
    return Encoded(examples, {"labels": list(vocabulary.label_names), "vocabulary": vocabulary.to_json()})


def columns(inputs: Inputs) -> dict[str, Any]:
    """The size of the vocabulary and of each table of affixes, or how many bytes there are."""
    vocabulary = Vocabulary.from_json(inputs["vocabulary"])
    if vocabulary.unit == "bytes":
        return {"bytes": vocabulary.size}
    return {"words": vocabulary.size, "affixes": vocabulary.affix_sizes}


def encode(records: Sequence[Record], inputs: Inputs) -> Examples:
    """Records with "text", or with "tokens", a list of words."""
    vocabulary = Vocabulary.from_json(inputs["vocabulary"])
    return vocabulary.encode([_tokens(record, vocabulary) for record in records])


def _tokens(record: Record, vocabulary: Vocabulary) -> list[str]:
    tokens, text = record.get("tokens"), record.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        return tokens
    if tokens is None and isinstance(text, str):
        return vocabulary.tokens(text)
    raise UserError(
        f"{record.get('where', 'input')}: 'text' must be a string, or 'tokens' a list of strings; found "
        f"{', '.join(name for name in record if name != 'where') or 'neither'}"
    )
