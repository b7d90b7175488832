"""Images with captions, held in memory: `load(name)` is the one way in."""

import csv
import dataclasses
import functools
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

import errors
from data import class_folders, streams, subsets
from data.examples import Batch, Examples, Size
from data.parts import Parts

FOLDER = "folder:"
TABLE = "captions.csv"
_TEST_FRACTION = 0.2
_TEST_SEED = 0
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_TEXTS = ("captions", "caption", "text", "sentences")
_GREY = ("1", "L", "I", "I;16", "F")


@dataclasses.dataclass(frozen=True, eq=False)
class Captioned:
    """Images, each with one caption or several.

    Attributes:
        images: uint8 `[n, height, width, channels]`.
        captions: of each image, one or more; words in lower case with a space between them.
        boxes: of each image, int16 `[words, 4]`: where the thing is that a word of the first caption names,
            as top, left, bottom and right in pixels, the last two exclusive; zeros for any other word. Empty
            where nobody knows.
    """

    images: np.ndarray
    captions: Sequence[Sequence[str]]
    boxes: Sequence[np.ndarray] = ()

    def __post_init__(self):
        if len(self.captions) != len(self.images) or len(self.boxes) not in (0, len(self.images)):
            raise ValueError(
                f"{len(self.images)} images, but captions of {len(self.captions)} and boxes of "
                f"{len(self.boxes)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: np.ndarray) -> "Captioned":
        """The images at `indices`, in that order."""
        boxes = [self.boxes[index] for index in indices] if len(self.boxes) else ()
        return Captioned(self.images[indices], [self.captions[index] for index in indices], boxes)


@dataclasses.dataclass(frozen=True, eq=False)
class ImageExamples(Examples):
    """Examples that share images: an image with five captions makes five examples and is held once.

    Attributes:
        images: `[m, height, width, channels]`; the field `image` says which of them an example has.
    """

    images: np.ndarray = dataclasses.field(kw_only=True)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, shapes and contents, in hex."""
        digest = hashlib.sha256(super().fingerprint.encode())
        digest.update(repr((self.images.dtype.str, self.images.shape)).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        return digest.hexdigest()

    def take(self, indices: np.ndarray) -> "ImageExamples":
        """The examples at `indices`, in that order."""
        taken = super().take(indices)
        return ImageExamples(taken.fields, taken.vectors, taken.edges, taken.targets, images=self.images)

    def gather(self, indices: np.ndarray, size: Size) -> Batch:
        """A batch whose `image` is the image itself, `[B, height, width, channels]`."""
        batch = super().gather(indices, size)
        return batch | {"image": self.images[batch["image"]]}


def load(
    name: str,
    *,
    data_dir: str | None = None,
    image_size: int = 0,
    train_size: int = 0,
    validation_fraction: float = 0.1,
    seed: int = 0,
) -> Parts[Captioned]:
    """Loads a data set into memory.

    A data set with a validation split of its own keeps it; from the others `validation_fraction` of the
    training images is held out. One without a test split is tested on its validation split, or on a fifth of
    train, chosen once for all.

    Args:
        name: one of `data.image.scenes.SETS`; or a data set with images and captions that TFDS has prepared
            as array_record under `data_dir`, such as "coco_captions"; or "folder:DIR" for images of your own
            beside a table DIR/captions.csv with the columns file, caption and, if you like, split (train,
            validation or test); an image may have several lines. Without the column about a fifth of the
            images, chosen by their names alone, is kept for the test.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        image_size: side to bring images to, pixels: scaled until they cover the square, cut to its middle;
            0 leaves images as they are, which must all be of one size then. Scenes have their own size.
        train_size: training images; 0 is all there are, or a scene set's own number.
        validation_fraction: share of the training images to hold out, in (0, 1).
        seed: chooses the images that are held out; draws the training scenes.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    from data.image import scenes

    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)
    for what, value in (("image_size", image_size), ("train_size", train_size)):
        if value < 0:
            raise errors.UserError(f"{what} {value} is not allowed: a whole number >= 0 is needed")
    if name in scenes.SETS:
        if image_size:
            raise errors.UserError(f"image_size {image_size} is not allowed: {name} has its own, use 0")
        return scenes.parts(name, train_size, seed, data_dir)
    if name.startswith(FOLDER) and name != FOLDER:
        splits = _read_folder(Path(name.removeprefix(FOLDER)).expanduser(), image_size)
    else:
        splits = _read_prepared(name, data_dir, image_size)
    if "test" not in splits and "validation" in splits:
        splits["test"] = splits.pop("validation")
    for split, fraction, chosen_by in (
        ("test", _TEST_FRACTION, _TEST_SEED),
        ("validation", validation_fraction, seed),
    ):
        if split not in splits:
            splits["train"], splits[split] = _held_out(name, splits["train"], fraction, chosen_by)
    train = splits["train"]
    if train_size > len(train):
        raise errors.UserError(f"train_size {train_size:,} is more than the {len(train):,} images of {name}")
    if train_size:
        train = train.take(streams.Stream(seed, "subset").permutation(len(train))[:train_size])
    return Parts(train, splits["validation"], splits["test"])


def words(text: str) -> str:
    """A caption as its words in lower case, without punctuation."""
    return " ".join(_WORD.findall(text.lower()))


def pixels(image: Image.Image, size: tuple[int, int] | None, channels: int = 0) -> np.ndarray:
    """The pixels of an image, uint8 `[height, width, channels]`.

    Args:
        image: of any mode.
        size: height and width to bring it to: scaled until it covers them, cut to its middle.
        channels: 1, grey, or 3, RGB; 0: whichever it is.
    """
    mode = {0: "L" if image.mode in _GREY else "RGB", 1: "L", 3: "RGB"}[channels]
    converted = image.convert(mode)
    if size is not None and converted.size != size[::-1]:
        converted = ImageOps.fit(converted, size[::-1], Image.Resampling.BILINEAR)
    return np.atleast_3d(np.asarray(converted))


def open_image(path: Path, size: tuple[int, int] | None, channels: int = 0) -> np.ndarray:
    """`pixels` of a file.

    Raises:
        errors.UserError: it cannot be read.
    """
    try:
        with Image.open(path) as image:
            return pixels(image, size, channels)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise errors.UserError(f"{path} cannot be read as an image: {reason}") from error


def _held_out(name: str, part: Captioned, fraction: float, seed: int) -> tuple[Captioned, Captioned]:
    if len(part) < 2:
        raise errors.UserError(f"{name} has {len(part)} image(s) to train on; at least 2 are needed")
    alike = np.zeros(len(part), np.int64)  # there are no classes to balance
    kept, held_out = subsets.train_and_validation(alike, len(part), fraction, seed)
    return part.take(kept), part.take(held_out)


def _stack(found: Sequence[np.ndarray], where: Sequence[str]) -> np.ndarray:
    """Images of one size in one array."""
    for image, place in zip(found, where, strict=True):
        if image.shape != found[0].shape:
            raise errors.UserError(
                f"{place} is {list(image.shape)}, but {where[0]} is {list(found[0].shape)}: all images must "
                "be of one size, or be brought to one by an image_size"
            )
    return np.stack(found)


def _read_folder(folder: Path, image_size: int) -> dict[str, Captioned]:
    table = folder / TABLE
    splits: dict[str, dict[str, list[str]]] = {}
    split_of: dict[str, str] = {}
    for where, row in _rows(table):
        file = row["file"]
        split = row.get("split") or ("test" if class_folders.is_test(file) else "train")
        if split not in class_folders.SPLITS:
            raise errors.UserError(f"{where}: {errors.unknown('split', split, class_folders.SPLITS)}")
        if split_of.setdefault(file, split) != split:
            raise errors.UserError(f"{where}: {file} is for {split}, but was for {split_of[file]} before")
        if not (folder / file).is_file():
            raise errors.UserError(f"{where}: file {folder / file} does not exist")
        caption = words(row["caption"])
        if not caption:
            raise errors.UserError(f"{where}: the caption of {file} has no words")
        splits.setdefault(split, {}).setdefault(file, []).append(caption)
    if "train" not in splits:
        raise errors.UserError(f"{table} has no image to train on; add images, or a column 'split'")
    size = (image_size, image_size) if image_size else None
    # One image in colour makes all of them so.
    found = {file: open_image(folder / file, size) for file in split_of}
    if len({image.shape[-1] for image in found.values()}) > 1:
        found = {file: np.broadcast_to(image, (*image.shape[:2], 3)) for file, image in found.items()}
    stacked = _stack(list(found.values()), [str(folder / file) for file in found])
    place = {file: index for index, file in enumerate(found)}
    return {
        split: Captioned(stacked[[place[file] for file in captions]], list(captions.values()))
        for split, captions in splits.items()
    }


def _rows(table: Path) -> Sequence[tuple[str, Mapping[str, str]]]:
    """The lines of the table, each with where it stands."""
    try:
        text = table.read_text("utf-8-sig")
    except OSError as error:
        raise errors.UserError(f"{table} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise errors.UserError(f"{table}: byte {error.start} is no UTF-8 text") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    for column in ("file", "caption"):
        if column not in (reader.fieldnames or ()):
            raise errors.UserError(
                f"{table}: column {column!r} is missing; needed are file and caption, and split is allowed"
            )
    rows = [(f"{table}:{reader.line_num}", row) for row in reader]
    for where, row in rows:
        if None in row or not row["file"] or row["caption"] is None:
            raise errors.UserError(
                f"{where}: {sum(value is not None for value in row.values())} fields under the heading "
                f"{', '.join(reader.fieldnames or ())}; a caption with a comma needs quotation marks"
            )
    if not rows:
        raise errors.UserError(f"{table} holds no captions")
    return rows


def _read_prepared(name: str, data_dir: str | None, image_size: int) -> dict[str, Captioned]:
    # What is imported here takes longer to import than a small data set takes to load.
    from data import prepared
    from data.image import scenes

    others = (*scenes.SETS, f"{FOLDER}DIR")
    directory = prepared.folder(name, "image", data_dir, others, also="data set of images with captions")
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
    size = (image_size, image_size) if image_size else None
    made = {}
    for split, published in splits.items():
        found, captions = [], []
        for record in prepared.records(builder, published):
            said = [caption for caption in map(words, _texts(record[text])) if caption]
            if said:
                array = np.asarray(record["image"])
                picture = Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)
                found.append(pixels(picture, size, array.shape[-1]))
                captions.append(said)
        where = [f"{directory}, image {index} of {published}" for index in range(len(found))]
        made[split] = Captioned(_stack(found, where), captions)
    return made


def _texts(value: Any) -> list[str]:
    """The captions of a record: one, a list, or a list of entries with a text each."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return _texts(next(value[key] for key in ("text", "raw", "caption") if key in value))
    return [text for entry in value for text in _texts(entry)]
