"""A folder of your own images beside a table of captions: `folder:DIR`.

DIR/captions.csv has the columns file, caption and, if you like, split (train, validation or test); an image
may have several lines. Without the column about a fifth of the images, chosen by their names alone, is kept
for the test (see `data.splits.is_test`).
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import errors
from data.image.readers import pixels
from data.image.types import Captioned
from data.splits import NAMES, is_test

TABLE = "captions.csv"
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def read(folder: Path, size: tuple[int, int] | None) -> dict[str, Captioned]:
    """Reads every image of a folder with its captions, by split.

    Args:
        folder: laid out as above.
        size: height and width to bring images to; None leaves them as they are.

    Raises:
        errors.UserError: the table is not as above, or an image cannot be read or is unlike the others; it is
            named.
    """
    table = folder / TABLE
    splits: dict[str, dict[str, list[str]]] = {}
    split_of: dict[str, str] = {}
    for where, row in _rows(table):
        file = row["file"]
        split = row.get("split") or ("test" if is_test(file) else "train")
        if split not in NAMES:
            raise errors.UserError(f"{where}: {errors.unknown('split', split, NAMES)}")
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
    # One image in colour makes all of them so.
    images = {file: pixels.fitted(folder / file, size) for file in split_of}
    if len({image.shape[-1] for image in images.values()}) > 1:
        images = {file: np.broadcast_to(image, (*image.shape[:2], 3)) for file, image in images.items()}
    stacked = stack(list(images.values()), [str(folder / file) for file in images])
    place = {file: index for index, file in enumerate(images)}
    return {
        split: Captioned(stacked[[place[file] for file in captions]], list(captions.values()))
        for split, captions in splits.items()
    }


def words(text: str) -> str:
    """A caption as its words in lower case, without punctuation."""
    return " ".join(_WORD.findall(text.lower()))


def stack(images: Sequence[np.ndarray], where: Sequence[str]) -> np.ndarray:
    """Images of one size in one array."""
    for image, place in zip(images, where, strict=True):
        if image.shape != images[0].shape:
            raise errors.UserError(
                f"{place} is {list(image.shape)}, but {where[0]} is {list(images[0].shape)}: all images must "
                "be of one size, or be brought to one by an image_size"
            )
    return np.stack(images)


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
