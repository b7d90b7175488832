"""Image data sets prepared on disk, by us or by TFDS itself, in memory."""

from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import prepared, subsets
from data.image import dataset

_TEST_FRACTION = 0.2
_TEST_SEED = 0


def read(directory: Path) -> dataset.Source:
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
    builder = prepared.open_folder(directory)
    image, label = _keys(builder, directory)
    splits = {split: _split(builder, split, image, label, directory) for split in prepared.splits(builder)}
    if "test" not in splits and "validation" in splits:
        splits["test"] = splits.pop("validation")
    elif "test" not in splits:
        everything = splits["train"]
        train, test = subsets.train_and_validation(
            everything.labels, len(everything), _TEST_FRACTION, _TEST_SEED
        )
        splits = {"train": everything.take(train), "test": everything.take(test)}
    metadata = builder.info.metadata or {}
    return dataset.Source(
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
) -> dataset.ImageSplit:
    total = builder.info.splits[split].num_examples
    labels = np.empty(total, np.int32)
    pixels: np.ndarray | None = None
    for index, record in enumerate(prepared.records(builder, split)):
        if pixels is None:
            pixels = np.empty((total, *record[image].shape), np.uint8)
        if record[image].shape != pixels.shape[1:]:
            raise errors.UserError(
                f"{directory}: images must be of one size, but image {index} of {split} is "
                f"{list(record[image].shape)} and image 0 is {list(pixels.shape[1:])}"
            )
        pixels[index] = record[image]
        labels[index] = record[label]
    assert pixels is not None
    return dataset.ImageSplit(pixels, labels)
