"""Text as vectors: words with their affixes, or bytes."""

from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from data.examples import Examples
from data.splits import Splits
from data.text import load as load_text
from data.text.vocabulary import Vocabulary
from errors import UserError
from models.set_model import Per
from tasks.sequences import Encoded
from tasks.task import Inputs, Record

# Fields of config.dataset that say how text is read, and those that say how it becomes numbers.
READING = ("validation_fraction", "encoding")
COLUMNS = {
    "vector": ("token_column", "tag_column"),
    "set": ("tokenisation", "text_column", "label_column"),
}
ENCODING = ("min_count", "lower", "fold_digits", "affixes", "affix_min_count")
CUTTING = {"vector": (), "set": ("unit", "max_length")}


def load(config: ConfigDict, *, per: Per, seed: int) -> Encoded:
    """The data set of a config's block `dataset`, its vocabulary measured on the training part."""
    options: dict[str, Any] = {name: config[name] or None for name in ("data_dir", *COLUMNS[per])}
    options |= {name: config[name] for name in READING}
    options["fold"] = None if config.fold == -1 else config.fold
    parts: Splits[Any] = (load_text.tagged if per == "vector" else load_text.labelled)(
        config.name, split_seed=seed, **options
    )
    fitting: dict[str, Any] = {name: config[name] for name in ENCODING}
    fitting |= {name: config[name] or None for name in ("max_size", *CUTTING[per])}
    vocabulary = Vocabulary.fit(parts.train, **fitting)
    encoded = Splits(*(vocabulary.encode(part) for part in (parts.train, parts.validation, parts.test)))
    return Encoded(encoded, {"labels": list(vocabulary.label_names), "vocabulary": vocabulary.to_json()})


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
