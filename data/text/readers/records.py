"""Text data sets prepared on disk, by us or by TFDS itself, in memory."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

import errors
from data.readers import prepared
from data.splits import NAMES
from data.text import tokenisation
from data.text.types import NO_TAG, LabelledTexts, ParallelText, TaggedSentences

_RAW = "punctuation"  # what is not said to be tokenised is not


def tagged(
    directory: Path, *, token_column: str | None = None, tag_column: str | None = None
) -> dict[str, TaggedSentences]:
    """Reads a prepared data set of tagged sentences.

    Args:
        directory: what `data.readers.prepared.find` returned.
        token_column: the feature of the tokens; None is the only sequence of texts, or the one called tokens.
        tag_column: the feature of the tags; None is the only sequence of classes, or the one called tags or
            upos.

    Returns:
        Its splits, of train, validation and test.

    Raises:
        errors.UserError: it has no such features, or is not stored as array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    token_key = _choose(builder, "token", token_column, _sequence(_is_text), ("tokens", "words"))
    accept = _is_label_or_text if tag_column else _is_label
    tag_key = _choose(builder, "tag", tag_column, _sequence(accept), ("tags", "upos"))
    name_of = _namer(builder.info.features[tag_key].feature)
    splits: dict[str, TaggedSentences] = {}
    for split in prepared.splits(builder):
        rows = [(row[token_key], row[tag_key]) for row in prepared.records(builder, split)]
        for index, (tokens, tags) in enumerate(rows):
            if len(tokens) != len(tags):
                raise errors.RunError(
                    f"{directory}: sentence {index:,} of {split} has {len(tokens)} tokens, but {len(tags)} "
                    "tags"
                )
        splits[split] = TaggedSentences(
            [tokens for tokens, _ in rows], [[name_of(tag) for tag in tags] for _, tags in rows]
        )
    return splits


def labelled(
    directory: Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    how: tokenisation.Tokenisation | None = None,
) -> dict[str, LabelledTexts]:
    """Reads a prepared data set of labelled texts.

    A split whose labels are all hidden, such as the tests of GLUE, is left out.

    Args:
        directory: what `data.readers.prepared.find` returned.
        text_column: the feature of the text; None is the only text, or the one called text or sentence.
        label_column: the feature of the label; None is the only class, or the one called label.
        how: the tokenisation; None is the data set's own, and "punctuation" where it has none.

    Returns:
        Its splits, of train, validation and test.

    Raises:
        errors.UserError: it has no such features, or is not stored as array_record.
        errors.RunError: its files are damaged, or some labels of a split are hidden and others not.
    """
    builder = prepared.open_folder(directory)
    text_key = _choose(builder, "text", text_column, _is_text, ("text", "sentence"))
    accept = _is_label_or_text if label_column else _is_label
    label_key = _choose(builder, "label", label_column, accept, ("label",))
    scheme = tokenisation.check(how or (builder.info.metadata or {}).get("tokenisation", _RAW))
    name_of = _namer(builder.info.features[label_key])
    splits: dict[str, LabelledTexts] = {}
    for split in prepared.splits(builder):
        texts, labels = [], []
        for row in prepared.records(builder, split):
            texts.append(tokenisation.tokens(row[text_key], scheme))
            labels.append(name_of(row[label_key]))
        hidden = labels.count(NO_TAG)
        if hidden == len(labels):
            continue
        if hidden:
            raise errors.RunError(f"{directory}: {hidden:,} of {len(labels):,} labels of {split} are hidden")
        splits[split] = LabelledTexts(texts, labels, scheme)
    return splits


def parallel(directory: Path, languages: tuple[str, str], test: str | None) -> dict[str, ParallelText]:
    """Reads two languages of a prepared data set.

    Args:
        directory: what `data.readers.prepared.find` returned.
        languages: the features of source and target.
        test: the split to test on; None is "test".

    Returns:
        Its splits, of train, validation and test.

    Raises:
        errors.UserError: it has no such languages or test, or is not stored as array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    texts = [key for key, feature in builder.info.features.items() if _is_text(feature)]
    for language in languages:
        if language not in texts:
            raise errors.unknown(f"language of {directory}", language, texts)
    splits = {split: split for split in prepared.splits(builder)}
    if test is not None:
        tests = [split for split in builder.info.splits if split not in ("train", "validation")]
        if test not in tests:
            raise errors.unknown(f"test of {directory}", test, tests)
        splits["test"] = test
    pairs = {
        split: [[row[language] for language in languages] for row in prepared.records(builder, stored)]
        for split, stored in splits.items()
    }
    return {
        split: ParallelText([source for source, _ in rows], [target for _, target in rows])
        for split, rows in pairs.items()
    }


def questions(directory: Path) -> dict[str, Iterator[Mapping[str, Any]]]:
    """The records of a prepared data set with the features of SQuAD, by split.

    Args:
        directory: what `data.readers.prepared.find` returned.

    Raises:
        errors.UserError: it has no such features, or is not stored as array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    missing = {"context", "question", "answers"} - set(builder.info.features)
    if missing:
        raise errors.UserError(
            f"{directory} lacks the feature(s) {', '.join(sorted(missing))} of a set as of SQuAD"
        )
    # Some, such as XQuAD, have no train.
    return {split: prepared.records(builder, split) for split in NAMES if split in builder.info.splits}


def _choose(
    builder: tfds.core.DatasetBuilder,
    what: str,
    given: str | None,
    accept: Callable[[Any], bool],
    usual: tuple[str, ...],
) -> str:
    """The name of the one feature that serves as `what`."""
    features = dict(sorted(builder.info.features.items()))
    keys = [key for key, feature in features.items() if accept(feature)]
    if given:
        if given in keys:
            return given
        raise errors.unknown(f"{what}_column of {builder.data_dir}", given, keys)
    if len(keys) == 1:
        return keys[0]
    preferred = [key for key in usual if key in keys]
    if not preferred:
        raise errors.UserError(
            f"{builder.data_dir}: a {what} feature is needed, but of {', '.join(features)} "
            + (f"{', '.join(keys)} could all be meant: choose by {what}_column" if keys else "none is one")
        )
    return preferred[0]


def _is_text(feature: Any) -> bool:
    return feature.shape == () and feature.np_dtype == np.object_


def _is_label(feature: Any) -> bool:
    return isinstance(feature, tfds.features.ClassLabel)


def _is_label_or_text(feature: Any) -> bool:
    return _is_label(feature) or _is_text(feature)


def _sequence(accept: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda feature: isinstance(feature, tfds.features.Sequence) and accept(feature.feature)


def _namer(feature: Any) -> Callable[[Any], str]:
    """From the stored value of a label to its word; a class of -1 is hidden, and so is "_"."""
    if not _is_label(feature):
        return lambda word: NO_TAG if word == "_" else word
    names = feature.names
    return lambda number: NO_TAG if number < 0 else names[number]
