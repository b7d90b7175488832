"""Data sets of recordings prepared on disk, by us or by TFDS itself, in memory."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

import errors
from data.readers import prepared
from data.speech.readers.wav import mono
from data.speech.types import Recording, Transcribed, Wave
from data.splits import NAMES


class Audio(tfds.features.Tensor):
    """What `tfds.features.Audio` has stored, read without TensorFlow, which that one needs."""

    # TFDS looks up by these names what is to read a stored feature.
    ALIASES = ["tensorflow_datasets.core.features.audio_feature.Audio"]  # noqa: RUF012 (as TFDS declares it)

    @classmethod
    def from_json_content(cls, value: Any) -> "Audio":
        """From the description that lies beside the records."""
        if value.lazy_decode:
            raise errors.UserError(
                "audio is stored as the files it came from (lazy_decode), which need TensorFlow to be read"
            )
        feature = cls(
            shape=tuple(None if size < 0 else size for size in value.shape.dimensions),
            dtype=np.dtype(value.dtype).type,
            encoding=value.encoding or "none",
        )
        feature.sample_rate = value.sample_rate
        return feature


def labelled(directory: Path, target: str | None) -> dict[str, list[Recording]]:
    """Reads a prepared data set into memory.

    Args:
        directory: what `prepared.find` returned.
        target: the name of the class label; None is the one that the data set itself names, or its only one.

    Returns:
        Recordings by split; at least "train".

    Raises:
        errors.UserError: it is no data set of recordings, or has no such target, or is not stored as
            array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    sound, label = _sound(builder, directory), _label(builder, target, directory)
    words = builder.info.features[label].names
    decoded = _decoder(builder, sound, directory)
    return {
        split: [
            Recording(decoded(record[sound]), words[int(record[label])], where=where)
            for where, record in _numbered(builder, split, directory)
        ]
        for split in prepared.splits(builder)
    }


def transcribed(directory: Path, splits: str | None) -> dict[str, list[Transcribed]]:
    """Reads a prepared data set of recordings with texts into memory.

    Args:
        directory: what `prepared.find` returned.
        splits: TRAIN,TEST or TRAIN,VALIDATION,TEST, split expressions of TFDS; None is whichever there are
            of train, validation and test.

    Returns:
        Recordings by split; at least "train".

    Raises:
        errors.UserError: it has no such splits, no recordings or no texts, or is not stored as array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    chosen = _splits(builder, splits, directory)
    sound, text = _sound(builder, directory), _text(builder, directory)
    decoded = _decoder(builder, sound, directory)
    return {
        split: [
            Transcribed(decoded(record[sound]), where=where, text=" ".join(record[text].split()))
            for where, record in _numbered(builder, expression, directory)
        ]
        for split, expression in chosen.items()
    }


def _numbered(
    builder: tfds.core.DatasetBuilder, split: str, directory: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a split, each with where it stands."""
    for number, record in enumerate(prepared.records(builder, split)):
        yield f"{directory}, example {number:,} of {split}", record


def _splits(builder: tfds.core.DatasetBuilder, given: str | None, directory: Path) -> dict[str, str]:
    """The expression of each split."""
    if given is None:
        return {split: split for split in prepared.splits(builder)}
    expressions = given.split(",")
    if len(expressions) not in (2, 3):
        raise errors.UserError(f"splits {given!r} are not allowed; TRAIN,TEST or TRAIN,VALIDATION,TEST are")
    try:
        for expression in expressions:
            tfds.core.ReadInstruction.from_spec(expression).to_absolute(builder.info.splits)
    except (ValueError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise errors.UserError(f"splits {given!r} of {directory} cannot be read: {reason}") from error
    names = ("train", "test") if len(expressions) == 2 else NAMES
    return dict(zip(names, expressions, strict=True))


def _decoder(
    builder: tfds.core.DatasetBuilder, sound: str, directory: Path
) -> Callable[[np.ndarray], Wave | np.ndarray]:
    """From stored values to a wave, or to frames."""
    feature = builder.info.features[sound]
    rate = getattr(feature, "sample_rate", None) or (builder.info.metadata or {}).get("rate", 0)
    if not isinstance(feature, Audio) and len(feature.shape) != 1:
        return lambda values: values.astype(np.float32)
    if not rate:
        raise errors.UserError(f"{directory} does not say how many samples per second its {sound} has")

    def wave(values: np.ndarray) -> Wave:
        full = 2.0**15 if values.dtype.kind == "i" else 1.0  # what is stored as whole numbers has 16 bits
        return Wave(mono(values / full), int(rate))

    return wave


def _text(builder: tfds.core.DatasetBuilder, directory: Path) -> str:
    """The name of the text among the features."""
    features = sorted(builder.info.features.items())
    texts = [name for name, feature in features if isinstance(feature, tfds.features.Text)]
    chosen = [name for name in texts if name in (builder.info.supervised_keys or ())] or texts
    if len(chosen) != 1:
        raise errors.UserError(
            f"{directory} needs one feature of text, what is said; it has {texts or 'none'}"
        )
    return chosen[0]


def _sound(builder: tfds.core.DatasetBuilder, directory: Path) -> str:
    """The name of the waves or frames among the features."""
    features = dict(sorted(builder.info.features.items()))
    sounds = [
        name
        for name, feature in features.items()
        if isinstance(feature, tfds.features.Tensor)
        and len(feature.shape) in (1, 2)
        and feature.shape[0] is None
        and np.dtype(feature.np_dtype).kind in "if"
    ]
    chosen = [name for name in sounds if name in (builder.info.supervised_keys or ())] or sounds
    if len(chosen) != 1:
        raise errors.UserError(
            f"{directory} is no data set of recordings: one feature of waves or frames is needed, but there "
            f"are {sounds} among {list(features)}"
        )
    return chosen[0]


def _label(builder: tfds.core.DatasetBuilder, target: str | None, directory: Path) -> str:
    """The name of the class label that is asked for."""
    features = sorted(builder.info.features.items())
    labels = [name for name, feature in features if isinstance(feature, tfds.features.ClassLabel)]
    if target is not None:
        if target not in labels:
            raise errors.UserError(f"{directory}: {errors.unknown('target', target, labels)}")
        return target
    chosen = [name for name in labels if name in (builder.info.supervised_keys or ())] or labels
    if len(chosen) != 1:
        raise errors.UserError(f"{directory} needs a target, one class label; it has {labels or 'none'}")
    return chosen[0]
