"""Image data sets that are prepared on disk in the layout of TFDS, by us or by TFDS itself.

Only array_record can be read without TensorFlow. Its records carry checksums, so a damaged file is
noticed on reading.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from absl import logging

import errors
from data import images, subsets

_FEATURES = "features.json"  # what makes a folder a prepared data set
_CHUNK = 4096  # records read at a time: few calls, and little held twice
_TEST_FRACTION = 0.2
_TEST_SEED = 0


def find(name: str, root: Path) -> Path | None:
    """The folder of a prepared data set.

    Args:
        name: NAME, NAME/CONFIG, NAME:VERSION or NAME/CONFIG:VERSION. Without a version the newest
            is meant; without a config the only one.
        root: where prepared data sets are.

    Returns:
        The folder that holds its records, or None.

    Raises:
        errors.UserError: the data set has several configs and `name` says none.
    """
    base, _, version = name.partition(":")
    if not base or set(Path(base).parts) & {"..", "/"}:
        return None
    if version:
        return root / base / version if (root / base / version / _FEATURES).is_file() else None
    versions = [folder.parent for folder in (root / base).glob(f"*/{_FEATURES}")]
    if versions:
        return max(versions, key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.name)])
    configs = sorted({path.parents[1].name for path in (root / base).glob(f"*/*/{_FEATURES}")})
    if len(configs) > 1:
        raise errors.UserError(
            f"data set {name!r} has several configs, name one: "
            + ", ".join(f"{base}/{config}" for config in configs)
        )
    return find(f"{base}/{configs[0]}", root) if configs else None


def names(root: Path) -> list[str]:
    """The prepared data sets under `root`, as NAME or NAME/CONFIG."""
    found = {
        path.parents[1].relative_to(root).as_posix()
        for pattern in (f"*/*/{_FEATURES}", f"*/*/*/{_FEATURES}")
        for path in root.glob(pattern)
    }
    return sorted(name for name in found if not name.startswith("."))


def read(directory: Path) -> images.Source:
    """Reads a prepared data set into memory.

    A data set without a test split is tested on its validation split, as is the custom for
    ImageNet; one that has a train split alone, on a fifth of it, chosen balanced and once for all.

    Args:
        directory: what `find` returned.

    Returns:
        Its labels, splits and scale (255 where it does not say).

    Raises:
        errors.UserError: it is no image classification data set, or not stored as array_record.
        errors.RunError: its files are damaged.
    """
    with _damage(directory):
        builder = tfds.builder_from_directory(directory)
    stored = builder.info.file_format
    if stored is None or stored.value != "array_record":
        raise errors.UserError(
            f"{directory} is stored as {getattr(stored, 'value', 'something unknown')}; without "
            "TensorFlow only array_record can be read: prepare it with file_format='array_record'"
        )
    image, label = _keys(builder, directory)
    splits = {
        split: _split(builder, split, image, label, directory)
        for split in ("train", "validation", "test")
        if split in builder.info.splits
    }
    if "train" not in splits:
        raise errors.UserError(
            f"{directory} has no split called train, only {', '.join(builder.info.splits)}"
        )
    if "test" not in splits and "validation" in splits:
        splits["test"] = splits.pop("validation")
    elif "test" not in splits:
        everything = splits["train"]
        train, test = subsets.train_and_validation(
            everything.labels, len(everything), _TEST_FRACTION, _TEST_SEED
        )
        splits = {"train": everything.take(train), "test": everything.take(test)}
    metadata = builder.info.metadata or {}
    return images.Source(
        tuple(builder.info.features[label].names), float(metadata.get("scale", 255.0)), splits
    )


def _keys(builder: tfds.core.DatasetBuilder, directory: Path) -> tuple[str, str]:
    """The names of the image and of the label among the features."""
    features = dict(sorted(builder.info.features.items()))
    kinds = {
        "image": [
            key
            for key, feature in features.items()
            if feature.np_dtype == np.uint8 and len(feature.shape or ()) == 3
        ],
        "label": [key for key, feature in features.items() if isinstance(feature, tfds.features.ClassLabel)],
    }
    supervised = builder.info.supervised_keys or ()
    chosen = []
    for kind, keys in kinds.items():
        preferred = [key for key in keys if key in supervised] or keys
        if len(preferred) != 1:
            raise errors.UserError(
                f"{directory} is no image classification data set: one uint8 image and one class "
                f"label are needed, but its {kind} features are {keys} of {list(features)}"
            )
        chosen += preferred
    return chosen[0], chosen[1]


def _split(
    builder: tfds.core.DatasetBuilder, split: str, image: str, label: str, directory: Path
) -> images.ImageSplit:
    with _damage(directory):
        records: Any = builder.as_data_source(split)
        total = len(records)
        if not total:
            raise errors.RunError(f"{directory}: split {split} is empty")
        shape = records[0][image].shape
        pixels = np.empty((total, *shape), np.uint8)
        labels = np.empty(total, np.int32)
        for start in range(0, total, _CHUNK):
            indices = range(start, min(start + _CHUNK, total))
            for index, record in zip(indices, records.__getitems__(indices), strict=True):
                if record[image].shape != shape:
                    raise errors.UserError(
                        f"{directory}: images must be of one size, but image {index} of {split} is "
                        f"{list(record[image].shape)} and image 0 is {list(shape)}"
                    )
                pixels[index] = record[image]
                labels[index] = record[label]
    return images.ImageSplit(pixels, labels)


@contextlib.contextmanager
def _damage(directory: Path) -> Iterator[None]:
    """Turns whatever TFDS or array_record raise on damaged files into one line."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # TFDS advises to install OpenCV
    try:
        yield
    except errors.UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise errors.RunError(
            f"{directory} is damaged ({reason}): delete that folder and prepare it again"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
