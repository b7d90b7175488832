"""Data sets of recordings prepared on disk, by us or by TFDS itself, in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import prepared
from data.speech.dataset import Recording
from data.speech.wav import Wave, mono


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


def read(directory: Path, target: str) -> dict[str, list[Recording]]:
    """Reads a prepared data set into memory.

    Args:
        directory: what `prepared.find` returned.
        target: the name of the class label; "" is the one that the data set itself names, or its only one.

    Returns:
        Recordings by split; at least "train".

    Raises:
        errors.UserError: it is no data set of recordings, or has no such target, or is not stored as
            array_record.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    splits = prepared.splits(builder)
    sound, label = _sound(builder, directory), _label(builder, target, directory)
    feature, words = builder.info.features[sound], builder.info.features[label].names
    rate = getattr(feature, "sample_rate", None) or (builder.info.metadata or {}).get("rate", 0)
    is_wave = isinstance(feature, Audio) or len(feature.shape) == 1
    if is_wave and not rate:
        raise errors.UserError(f"{directory} does not say how many samples per second its {sound} has")

    def recording(values: np.ndarray, label: int, where: str) -> Recording:
        if not is_wave:
            return Recording(values.astype(np.float32), words[label], where=where)
        full = 2.0**15 if values.dtype.kind == "i" else 1.0  # what is stored as whole numbers has 16 bits
        return Recording(Wave(mono(values / full), int(rate)), words[label], where=where)

    return {
        split: [
            recording(record[sound], int(record[label]), f"{directory}, example {number:,} of {split}")
            for number, record in enumerate(prepared.records(builder, split))
        ]
        for split in splits
    }


def _sound(builder: tfds.core.DatasetBuilder, directory: Path) -> str:
    """The name of the waves or frames among the features."""
    features = dict(sorted(builder.info.features.items()))
    found = [
        name
        for name, feature in features.items()
        if isinstance(feature, tfds.features.Tensor)
        and len(feature.shape) in (1, 2)
        and feature.shape[0] is None
        and np.dtype(feature.np_dtype).kind in "if"
    ]
    chosen = [name for name in found if name in (builder.info.supervised_keys or ())] or found
    if len(chosen) != 1:
        raise errors.UserError(
            f"{directory} is no data set of recordings: one feature of waves or frames is needed, but there "
            f"are {found} among {list(features)}"
        )
    return chosen[0]


def _label(builder: tfds.core.DatasetBuilder, target: str, directory: Path) -> str:
    """The name of the class label that is asked for."""
    features = sorted(builder.info.features.items())
    labels = [name for name, feature in features if isinstance(feature, tfds.features.ClassLabel)]
    if target:
        if target not in labels:
            raise errors.UserError(f"{directory}: {errors.unknown('target', target, labels)}")
        return target
    chosen = [name for name in labels if name in (builder.info.supervised_keys or ())] or labels
    if len(chosen) != 1:
        raise errors.UserError(f"{directory} needs a target, one class label; it has {labels or 'none'}")
    return chosen[0]
