"""Image data sets prepared on disk, by us or by TFDS itself, in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from PIL import Image

import errors
from data.image.readers import captions, pixels
from data.image.types import Captioned, LabelledImages, PublishedImages
from data.readers import prepared

_TEXTS = ("captions", "caption", "text", "sentences")


def labelled(directory: Path) -> PublishedImages:
    """Reads a prepared data set of labelled images into memory.

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
    metadata = builder.info.metadata or {}
    return PublishedImages(
        tuple(builder.info.features[label].names), float(metadata.get("scale", 255.0)), splits
    )


def captioned(directory: Path, size: tuple[int, int] | None) -> dict[str, Captioned]:
    """Reads a prepared data set of images with captions into memory, by split.

    Args:
        directory: what `find` returned.
        size: height and width to bring images to; None leaves them as they are.

    Raises:
        errors.UserError: it has no images with captions, or images are not of one size.
        errors.RunError: its files are damaged.
    """
    builder = prepared.open_folder(directory)
    splits = {split: split for split in prepared.splits(builder)}
    if "val" in builder.info.splits:
        splits.setdefault("validation", "val")
    features = builder.info.features
    text = next((key for key in _TEXTS if key in features), None)
    if "image" not in features or text is None:
        raise errors.UserError(
            f"{directory} has no images with captions: features image and one of {', '.join(_TEXTS)} are "
            f"needed, it has {', '.join(features)}"
        )
    made = {}
    for split, published in splits.items():
        images, said = [], []
        for record in prepared.records(builder, published):
            of_image = [words for words in map(captions.words, _texts(record[text])) if words]
            if of_image:
                array = np.asarray(record["image"])
                picture = Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)
                images.append(pixels.fit(picture, size, array.shape[-1]))
                said.append(of_image)
        where = [f"{directory}, image {index} of {published}" for index in range(len(images))]
        made[split] = Captioned(captions.stack(images, where), said)
    return made


def _keys(builder: tfds.core.DatasetBuilder, directory: Path) -> tuple[str, str]:
    """The names of the image and of the label among the features."""
    features = dict(sorted(builder.info.features.items()))
    candidates = {
        "image": [
            key
            for key, feature in features.items()
            if feature.np_dtype == np.uint8 and len(feature.shape or ()) == 3
        ],
        "label": [key for key, feature in features.items() if isinstance(feature, tfds.features.ClassLabel)],
    }
    supervised = builder.info.supervised_keys or ()
    chosen = []
    for what, keys in candidates.items():
        preferred = [key for key in keys if key in supervised] or keys
        if len(preferred) != 1:
            raise errors.UserError(
                f"{directory} is no image classification data set: one uint8 image and one class "
                f"label are needed, but its {what} features are {keys} of {list(features)}"
            )
        chosen += preferred
    return chosen[0], chosen[1]


def _split(
    builder: tfds.core.DatasetBuilder, split: str, image: str, label: str, directory: Path
) -> LabelledImages:
    total = builder.info.splits[split].num_examples
    labels = np.empty(total, np.int32)
    images: np.ndarray | None = None
    for index, record in enumerate(prepared.records(builder, split)):
        if images is None:
            images = np.empty((total, *record[image].shape), np.uint8)
        if record[image].shape != images.shape[1:]:
            raise errors.UserError(
                f"{directory}: images must be of one size, but image {index} of {split} is "
                f"{list(record[image].shape)} and image 0 is {list(images.shape[1:])}"
            )
        images[index] = record[image]
        labels[index] = record[label]
    assert images is not None
    return LabelledImages.of(images, labels)


def _texts(value: Any) -> list[str]:
    """The captions of a record: one, a list, or a list of entries with a text each."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return _texts(next(value[key] for key in ("text", "raw", "caption") if key in value))
    return [text for entry in value for text in _texts(entry)]
