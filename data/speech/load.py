"""Recordings, held in memory: the one way in. `labelled` to classify them, `transcribed` for what is said."""

import dataclasses
from pathlib import Path

import numpy as np

import errors
from data import catalogue, streams
from data.speech.types import Recording, Transcribed
from data.splits import Convention, Splits, check_fraction, check_size, divide, refuse_folds
from spec import Natural, Share


def _classes(recordings: list) -> np.ndarray:
    labels = np.array([str(recording.label) for recording in recordings])
    return np.unique(labels, return_inverse=True)[1]


RECORDINGS = Convention[list](noun="recording", classes=_classes)
# What is trained on, chosen on and tested on, where a set of TFDS calls its splits otherwise.
TFDS_SPLITS = {"librispeech": "train_clean100,dev_clean,test_clean"}


def labelled(
    name: str,
    *,
    target: str | None = None,
    data_dir: str | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[list[Recording]]:
    """Loads recordings with a label each.

    A data set with a validation split of its own keeps it. From the others `validation_fraction` of the
    training recordings is held out, balanced over the labels (see data/subsets.py). One without a test is
    tested on its validation split, or on a fold, or on a fifth of train, the same for every seed.

    Args:
        name: a built-in set, one that TFDS has prepared (NAME/CONFIG:VERSION), or folder:DIR of wav files.
        target: which label where there are several, for fsdd digit or speaker; None: the set's first.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        validation_fraction: share of train held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: a fifth, or the last of `folds`.
        folds: how many folds; None: 10 if a fold is named.
        split_seed: decides which recordings are held out; draws the training recordings of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    own, generated = catalogue.own_folder(name), name in catalogue.GENERATED["speech"]
    if (own or generated) and target not in (None, "label"):
        raise errors.unknown("target", target, ["label"])
    # What is imported here takes longer to import than a small data set takes to load.
    if generated:
        from data.speech.generated import tones

        refuse_folds(name, fold, folds)
        return tones.splits(seed)
    if own:
        from data.speech.readers import folder

        published = folder.labelled(own)
    else:
        from data.speech.readers import records

        directory = _prepared(name, "speech", data_dir, "data set of recordings")
        published = records.labelled(directory, target)
    return divide(
        name,
        published,
        RECORDINGS,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )


def transcribed(
    name: str,
    *,
    num_strings: int | None = None,
    speaker_out: str | None = None,
    splits: str | None = None,
    lower: bool = False,
    data_dir: str | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[list[Transcribed]]:
    """Loads recordings with what is said in them; divided as by `labelled`.

    Args:
        name: a built-in set, one that TFDS has prepared such as librispeech, or folder:DIR of wav files.
        num_strings: of built-in sets, strings to train on, and the most to test on; None: 8,000.
        speaker_out: speaker of fsdd_strings to test on alone and never train on; None: no one.
        splits: of a TFDS set, TRAIN,TEST or TRAIN,VALIDATION,TEST as TFDS writes them; None: the usual ones.
        lower: turn texts to lower case.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        validation_fraction: share of train held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: a fifth, or the last of `folds`.
        folds: how many folds; None: 10 if a fold is named.
        split_seed: decides which recordings are held out; draws the training strings.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    check_fraction(validation_fraction)
    check_size("num_strings", num_strings)
    seed = streams.check_seed(split_seed, "split_seed")
    own, generated = catalogue.own_folder(name), name in catalogue.GENERATED["transcription"]
    for argument, value, honoured, by in (
        ("num_strings", num_strings, generated, " and ".join(catalogue.GENERATED["transcription"])),
        ("speaker_out", speaker_out, name == "fsdd_strings", "fsdd_strings"),
        ("splits", splits, not generated and not own, "data sets of TFDS"),
    ):
        if value is not None and not honoured:
            raise errors.UserError(f"{argument} {value!r} is for {by} alone, not for {name!r}")
    if generated:
        from data.speech.generated import strings

        refuse_folds(name, fold, folds)
        size = num_strings or strings.NUM_EXAMPLES["train"]
        divided = (
            strings.of_tones(seed, size)
            if name == "tone_strings"
            else strings.of_digits(seed, size, speaker_out, data_dir, validation_fraction)
        )
    else:
        if own:
            from data.speech.readers import folder

            published = folder.transcribed(own)
        else:
            from data.speech.readers import records

            directory = _prepared(name, "transcription", data_dir, "data set of recordings with text")
            published = records.transcribed(directory, splits or TFDS_SPLITS.get(name.partition(":")[0]))
        divided = divide(
            name,
            published,
            RECORDINGS,
            validation_fraction=validation_fraction,
            fold=fold,
            folds=folds,
            split_seed=seed,
        )
    return divided.map(lambda recordings: [_lowered(each) for each in recordings]) if lower else divided


def _prepared(name: str, kind: str, data_dir: str | None, also: str) -> Path:
    from data.readers import prepared

    return prepared.folder(name, kind, data_dir, ("folder:DIR",), also=also)


def _lowered(recording: Transcribed) -> Transcribed:
    return dataclasses.replace(recording, text=recording.text.lower())
