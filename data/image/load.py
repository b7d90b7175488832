"""Images, held in memory: the one way in. `labelled` to classify them, `captioned` to describe them."""

from pathlib import Path

import numpy as np

import errors
from data import catalogue, splits, streams, subsets
from data.image.types import Captioned, ImageSplits, LabelledImages, PublishedImages
from data.splits import Convention, Splits
from spec import Natural, Share

LABELLED = Convention[LabelledImages](noun="image", classes=lambda images: images.labels, least=1)
CAPTIONED = Convention[Captioned](noun="image")


def labelled(
    name: str,
    *,
    data_dir: str | None = None,
    train_size: int | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> ImageSplits:
    """Loads labelled images of one size, with `train_size` of them for a method to learn from.

    A data set with a validation split of its own keeps it whole, and `train_size` counts training images.
    From the others `validation_fraction` of the `train_size` images is held out: with 60,000 of Fashion-MNIST
    the method sees 60,000 labels in all, 6,000 of them for choosing. For one seed the images of a smaller
    `train_size` are among those of a larger one, and are balanced over the classes (see data/subsets.py).
    The test is always whole: the published one; else the published validation, as is the custom for ImageNet;
    else a fold; else a fifth, the same for every seed.

    Args:
        name: a built-in set, one that TFDS has prepared (NAME/CONFIG:VERSION), or folder:DIR of images.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        train_size: labelled images to use, those held out included; None: all, of pointed digits 10,000.
        validation_fraction: share held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: a fifth, or the last of `folds`.
        folds: how many folds; None: 10 if a fold is named.
        split_seed: decides which images are used and held out; draws the training images of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    splits.check_size("train_size", train_size)
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    # What is imported here takes longer to import than a small data set takes to load.
    if name in catalogue.GENERATED["image"]:
        from data.image.generated import pointed_digits

        splits.refuse_folds(name, fold, folds)
        made = pointed_digits.source(
            train_size or pointed_digits.TRAIN_SIZE, seed, control=name.endswith("_control")
        )
        train, validation, test = made.splits.values()
        return ImageSplits(train, validation, test, made.label_names, made.scale)
    published = _published(name, data_dir)
    published.check(name)
    divided = splits.divide(
        name,
        published.splits,
        LABELLED,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
        train_size=train_size,
    )
    train = divided.train
    if divided.validation is published.splits.get("validation"):
        train = train.take(subsets.balanced_order(train.labels, seed)[:train_size])
    return ImageSplits(train, divided.validation, divided.test, published.label_names, published.scale)


def captioned(
    name: str,
    *,
    data_dir: str | None = None,
    image_size: int | None = None,
    train_size: int | None = None,
    validation_fraction: Share = 0.1,
    fold: Natural | None = None,
    folds: int | None = None,
    split_seed: Natural = 0,
) -> Splits[Captioned]:
    """Loads images with captions.

    A data set with a validation split of its own keeps it; from the others `validation_fraction` of the
    training images is held out. One without a test is tested on its validation split, or on a fold, or on a
    fifth of train, the same for every seed.

    Args:
        name: a built-in set, one that TFDS has prepared such as coco_captions, or folder:DIR.
        data_dir: folder of prepared data sets; None: $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
        image_size: side to scale and cut images to, pixels; None: as they are, all of one size.
        train_size: images to train on, those held out not counted; None: all, or a scene set's own number.
        validation_fraction: share held out to choose by where no validation is published, in (0, 1).
        fold: which fold is the test where none is published, from 0; None: a fifth, or the last of `folds`.
        folds: how many folds; None: 10 if a fold is named.
        split_seed: decides which images are used and held out; draws the training scenes.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    for argument, size in (("image_size", image_size), ("train_size", train_size)):
        splits.check_size(argument, size)
    splits.check_fraction(validation_fraction)
    seed = streams.check_seed(split_seed, "split_seed")
    if name in catalogue.GENERATED["captions"]:
        from data.image.generated import scenes

        splits.refuse_folds(name, fold, folds)
        if image_size is not None:
            raise errors.UserError(f"image_size {image_size} is not allowed: {name} has its own")
        # Which things are for which split must not depend on the seed: validation is the same for all.
        things = labelled(scenes.SETS[name].items, data_dir=data_dir)
        return scenes.splits(name, things, train_size, seed)
    divided = splits.divide(
        name,
        _with_captions(name, data_dir, image_size),
        CAPTIONED,
        validation_fraction=validation_fraction,
        fold=fold,
        folds=folds,
        split_seed=seed,
    )
    train = divided.train
    if train_size is None:
        return divided
    if train_size > len(train):
        raise errors.UserError(f"train_size {train_size:,} is more than the {len(train):,} images of {name}")
    order = subsets.balanced_order(np.zeros(len(train), np.int64), seed)
    return Splits(train.take(order[:train_size]), divided.validation, divided.test)


def _published(name: str, data_dir: str | None) -> PublishedImages:
    if own := catalogue.own_folder(name):
        from data.image.readers import folder

        return folder.read(own)
    if name == "digits":
        from data.image.builders import digits

        return digits.source()
    from data.image.readers import records

    return records.labelled(_prepared(name, "image", data_dir, "image data set"))


def _with_captions(name: str, data_dir: str | None, image_size: int | None) -> dict[str, Captioned]:
    size = None if image_size is None else (image_size, image_size)
    if own := catalogue.own_folder(name):
        from data.image.readers import captions

        return captions.read(own, size)
    from data.image.readers import records

    return records.captioned(_prepared(name, "captions", data_dir, "data set of images with captions"), size)


def _prepared(name: str, kind: str, data_dir: str | None, also: str) -> Path:
    from data.readers import prepared

    return prepared.folder(name, kind, data_dir, ("folder:DIR",), also=also)
