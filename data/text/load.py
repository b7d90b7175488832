"""Text, held in memory: the one way in.

`labelled` for texts with a label each, `tagged` for a tag on every token, `parallel` for translations,
`questions` for questions about passages.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import errors
from data import catalogue, splits, streams
from data.readers.lines import Encoding
from data.splits import Convention, Splits
from data.text.tokenisation import Tokenisation
from data.text.types import LabelledTexts, ParallelText, Question, TaggedSentences
from spec import Natural, Share

_OWN = ("folder:DIR", "file:TRAIN,VALIDATION,TEST")

# Ten folds are the custom where nothing else is published, as for MR and Subj.
LABELLED = Convention[LabelledTexts](
    noun="text",
    classes=lambda texts: np.unique(np.asarray(texts.label), return_inverse=True)[1],
    folds=10,
    in_order=True,
    fold_stream="text folds",
)
TAGGED = Convention[TaggedSentences](noun="sentence", folds=10, in_order=True, fold_stream="text folds")
PARALLEL = Convention[ParallelText](
    noun="different source line",
    groups=lambda pairs: pairs.source,
    test_fraction=None,
    test_stream="parallel test",
    validation_stream="parallel validation",
)
QUESTIONS = Convention[list[Question]](
    noun="article",
    groups=lambda questions: [question.article for question in questions],
    folds=10,
    fold_stream="question folds",
)


def labelled(
    name: str,
    *,
    data_dir: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    tokenisation: Tokenisation | None = None,
    encoding: Encoding = "utf-8",
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[LabelledTexts]:
    """Loads texts with a label each.

    A data set with a published test has that; without one its validation is the test; and one with nothing
    but train is divided into folds by one permutation, the same for every seed. A data set without validation
    has it taken from train, class by class.

    Args:
        name: a built-in set, one that TFDS has prepared (NAME/CONFIG:VERSION), file:TRAIN,TEST or folder:DIR.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        text_column: column or feature of the text; None: the only one, or what is called text or sentence.
        label_column: column or feature of the label; None: the only one, or what is called label.
        tokenisation: split at whitespace, at punctuation too, or not at all (none); None: as suits the set.
        encoding: of your own files; latin-1 reads what is no UTF-8 as Latin-1.
        validation_fraction: share of train held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: the last.
        folds: how many folds; None: 10.
        split_seed: decides which texts are held out; draws the training texts of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or a file
            is not as it must be.
        errors.RunError: files of a prepared data set are damaged.
    """
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    columns = {"text_column": text_column, "label_column": label_column}
    if tokenisation is not None:
        from data.text import tokenisation as schemes

        schemes.check(tokenisation)
    if name in catalogue.GENERATED["text"]:
        from data.text.generated import grammar

        _refuse(f"{name} is generated", tokenisation=tokenisation, **columns)
        _refuse_encoding(encoding)
        splits.refuse_folds(name, fold, folds)
        return grammar.splits(grammar.labelled, seed)
    if files := _files(name):
        from data.text.readers import files as reader

        published = reader.labelled(files, how=tokenisation, encoding=encoding, **columns)
    else:
        from data.text.readers import records

        _refuse_encoding(encoding)
        directory = _prepared(name, "text", data_dir, "text data set")
        published = records.labelled(directory, how=tokenisation, **columns)
    return splits.divide(
        name,
        published,
        LABELLED,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )


def tagged(
    name: str,
    *,
    data_dir: str | None = None,
    token_column: str | None = None,
    tag_column: str | None = None,
    encoding: Encoding = "utf-8",
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[TaggedSentences]:
    """Loads sentences with a tag for every token; divided as by `labelled`, without classes.

    Args:
        name: a built-in set, one that TFDS has prepared (NAME/CONFIG:VERSION), file:TRAIN,TEST or folder:DIR.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        token_column: column or feature of the tokens; None: the only one, tokens or words, else the first.
        tag_column: column or feature of the tags, such as xpos; None: the only one, tags, upos or the last.
        encoding: of your own files; latin-1 reads what is no UTF-8 as Latin-1.
        validation_fraction: share of train held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: the last.
        folds: how many folds; None: 10.
        split_seed: decides which sentences are held out; draws the training sentences of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or a file
            is not as it must be.
        errors.RunError: files of a prepared data set are damaged.
    """
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    columns = {"token_column": token_column, "tag_column": tag_column}
    if name in catalogue.GENERATED["text"]:
        from data.text.generated import grammar

        _refuse(f"{name} is generated", **columns)
        _refuse_encoding(encoding)
        splits.refuse_folds(name, fold, folds)
        return grammar.splits(grammar.tagged, seed)
    if files := _files(name):
        from data.text.readers import files as reader

        published = reader.tagged(files, encoding=encoding, **columns)
    else:
        from data.text.readers import records

        _refuse_encoding(encoding)
        published = records.tagged(_prepared(name, "text", data_dir, "text data set"), **columns)
    return splits.divide(
        name,
        published,
        TAGGED,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )


def parallel(
    name: str,
    *,
    source: str = "de",
    target: str = "en",
    data_dir: str | None = None,
    test: str | None = None,
    encoding: Encoding = "utf-8",
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[ParallelText]:
    """Loads sentences and their translations.

    Without a test its validation is the test; and with nothing but train, a fold of that, or as much as
    `validation_fraction` says, the same for every seed. A data set without validation has it taken from
    train. Pairs with the same source stay together.

    Training pairs of which a side is blank are left out, with a warning; in validation and test they stay,
    so that scores are of the whole.

    Args:
        name: a built-in set, one that TFDS has prepared (NAME/CONFIG:VERSION), file:TRAIN,TEST or folder:DIR.
        source: language to translate from: a feature, the ending of a file, or for dates a locale.
        target: language to translate into.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        test: split to test on, of a prepared set or a folder, such as test_2017_flickr; None: test.
        encoding: of your own files; latin-1 reads what is no UTF-8 as Latin-1.
        validation_fraction: share held out to choose by or to test on where that is not published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: no folds, or the last of `folds`.
        folds: how many folds; None: 10 if a fold is named.
        split_seed: decides which pairs are held out; draws the training pairs of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or files are
            not as they must be.
        errors.RunError: files of a prepared data set are damaged.
    """
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    if source == target:
        raise errors.UserError(f"source and target are both {source!r}; two languages are needed")
    languages = (source, target)
    folder, paths = catalogue.own_folder(name), catalogue.own_files(name)
    if not folder and not paths:
        _refuse_encoding(encoding)
    if name in catalogue.GENERATED["parallel"]:
        from data.text.generated import dates

        _refuse(f"{name} is generated", test=test)
        splits.refuse_folds(name, fold, folds)
        return dates.splits(seed).map(lambda days: dates.written(days, source, target))
    if folder or paths:
        from data.text.readers import files, parallel_files

        if paths:
            _refuse(f"{name} names its test, if there is one", test=test)
        stems = parallel_files.in_folder(folder, languages, test) if folder else files.listed(paths or "")
        published = {split: parallel_files.read(stem, languages, encoding) for split, stem in stems.items()}
    else:
        from data.text.readers import records

        directory = _prepared(name, "parallel", data_dir, "translation data set")
        published = records.parallel(directory, languages, test)
    published["train"] = _without_blank(published["train"], name)
    return splits.divide(
        name,
        published,
        PARALLEL,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )


def questions(
    name: str,
    *,
    data_dir: str | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[list[Question]]:
    """Loads questions about passages, answered by spans of them.

    A data set with a published test has that; without one its validation is the test; and one of a single
    split, such as XQuAD, is divided into folds of articles, the same for every seed. A data set without
    validation has articles of train held out. Answers that begin or end within a token are counted and told.

    Args:
        name: a built-in set, one as of SQuAD that TFDS has prepared, or file:TRAIN,TEST of JSON as of SQuAD.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        validation_fraction: share of articles held out to choose by if no validation is published, in (0, 1).
        fold: which fold of articles is the test where none is published, from 0; None: the last.
        folds: how many folds; None: 10.
        split_seed: decides which articles are held out; draws the training questions of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, the data set is unknown or not prepared, or an answer
            is not in its passage.
        errors.RunError: files of a prepared data set are damaged.
    """
    from data.text.readers import squad

    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    published = {
        split: squad.questions(rows, f"{name}, {split}")
        for split, rows in _question_records(name, data_dir, seed).items()
    }
    if len(published) == 1:  # whatever it is called
        published = {"train": next(iter(published.values()))}
    every = [question for split in published.values() for question in split]
    inexact = sum(question.passage.span(*question.span) != question.answers[0] for question in every)
    if inexact:
        logging.getLogger(__name__).warning(
            "%s: %s of %s answers are not whole tokens; the fewest tokens that cover them stand for them",
            name,
            f"{inexact:,}",
            f"{len(every):,}",
        )
    return splits.divide(
        name,
        published,
        QUESTIONS,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )


def _question_records(
    name: str, data_dir: str | None, seed: int
) -> Mapping[str, Iterable[Mapping[str, Any]]]:
    if name in catalogue.GENERATED["reading"]:
        from data.text.generated import facts

        return facts.splits(seed)
    if paths := catalogue.own_files(name):
        from data.text.readers import files, squad

        return {
            split: squad.decode(files.content(path), str(path)) for split, path in files.listed(paths).items()
        }
    from data.text.readers import records

    return records.questions(
        _prepared(name, "reading", data_dir, "set of questions as of SQuAD", own=_OWN[1:])
    )


def _files(name: str) -> dict[str, Path] | None:
    """The file of each split of a set of your own; None of any other."""
    from data.text.readers import files

    if folder := catalogue.own_folder(name):
        return files.in_folder(folder)
    paths = catalogue.own_files(name)
    return files.listed(paths) if paths else None


def _prepared(name: str, kind: str, data_dir: str | None, also: str, own: Sequence[str] = _OWN) -> Path:
    # Takes longer to import than a small data set takes to load.
    from data.readers import prepared

    return prepared.folder(name, kind, data_dir, own, also=also)


def _refuse(why: str, **options: str | None) -> None:
    """No option is silently ignored."""
    for option, value in options.items():
        if value is not None:
            raise errors.UserError(f"{option} {value!r} is not allowed: {why}")


def _refuse_encoding(encoding: str) -> None:
    if encoding != "utf-8":
        raise errors.UserError(f"encoding {encoding!r} is not allowed: it is for files of your own")


def _without_blank(train: ParallelText, name: str) -> ParallelText:
    pairs = zip(train.source, train.target, strict=True)
    whole = np.array([bool(source.strip() and target.strip()) for source, target in pairs], bool)
    if whole.all():
        return train
    logging.getLogger(__name__).warning(
        "%s: %s of %s training pairs left out, a side of them is blank; the first is pair %s",
        name,
        f"{np.sum(~whole):,}",
        f"{len(train):,}",
        f"{np.argmin(whole) + 1:,}",
    )
    if not whole.any():
        raise errors.UserError(f"{name}: every training pair has a blank side")
    return train.take(np.flatnonzero(whole))
