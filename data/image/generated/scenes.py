"""Scenes: a few things on an empty canvas and a sentence that says what is where, generated.

    "a bag left of a shirt above and right of some trousers"

The things are images of a labelled set. Since the sentence is made of the scene, the place of everything it
names is known, and one can ask of a model whether it looks there while it says so.

How example i is drawn, all choices uniform and independent:
 1. two, three or four things, from the training, validation or test images of the labelled set, after the
    split;
 2. as many different cells of a canvas of 3 x 3, and where in its cell each thing stands;
 3. in one of four cases, for each neighbouring pair of the sentence, the rarer of two wordings.

The sentence names the things in the order of reading, row by row, each related to the next:

    in one row           "left of", rarely "beside"
    in one column        "above", rarely "over"
    else                 "above and left of" or "above and right of"

Example i is a pure function of (seed, split, i): the first n examples of a seed are the same whatever n is.
Validation and test are the same for every seed.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from data import streams
from data.image.types import Captioned, ImageSplits
from data.splits import Splits

MOST = 4  # things in a scene
SIDE = 3  # cells of a canvas either way

_BLOCK = 500  # examples drawn from one stream; part of what defines the data set
_SHARED_SEED = 0
_RARELY = {"left of": "beside", "above": "over"}


@dataclasses.dataclass(frozen=True)
class SceneSet:
    """What scenes are made of.

    Attributes:
        items: the labelled images that are put together, a name that `data.image.load.labelled` takes.
        names: what is said of each of its classes.
        shrink: the images are made smaller by this factor, each pixel the mean of a square.
        cell: side of a cell, pixels.
        canvas: side of the canvas, pixels, at least `SIDE` cells.
        sizes: number of examples of train, validation and test.
    """

    items: str
    names: tuple[str, ...]
    shrink: int
    cell: int
    canvas: int
    sizes: tuple[int, int, int]


SETS = {
    "digit_scenes": SceneSet(
        "digits",
        (
            "a zero",
            "a one",
            "a two",
            "a three",
            "a four",
            "a five",
            "a six",
            "a seven",
            "an eight",
            "a nine",
        ),
        shrink=1,
        cell=10,
        canvas=32,
        sizes=(6_000, 300, 600),
    ),
    "fashion_scenes": SceneSet(
        "fashion_mnist",
        (
            "a t-shirt",
            "some trousers",
            "a pullover",
            "a dress",
            "a coat",
            "a sandal",
            "a shirt",
            "a sneaker",
            "a bag",
            "a boot",
        ),
        shrink=2,
        cell=18,
        canvas=56,
        sizes=(20_000, 1_000, 2_000),
    ),
}


def splits(name: str, things: ImageSplits, train_size: int | None, seed: int) -> Splits[Captioned]:
    """A data set with `train_size` training examples drawn by `seed`.

    Args:
        name: one of `SETS`.
        things: its labelled images.
        train_size: how many to learn from; None is the set's own number.
        seed: of the training examples.
    """
    train, validation, test = SETS[name].sizes
    return Splits(
        generate(name, things, "train", train_size or train, seed),
        generate(name, things, "validation", validation, _SHARED_SEED),
        generate(name, things, "test", test, _SHARED_SEED),
    )


def generate(name: str, things: ImageSplits, split: str, size: int, seed: int) -> Captioned:
    """The first `size` examples of a split.

    Args:
        name: one of `SETS`.
        things: the labelled images.
        split: "train", "validation" or "test"; decides which of them are drawn from.
        size: how many, >= 1.
        seed: the same seed gives the same examples.

    Returns:
        Images uint8 `[size, canvas, canvas, 1]`, black where nothing is, a caption and the boxes of each.
    """
    images = getattr(things, split)
    thumbnails = _shrunk(images.images, SETS[name].shrink, things.scale)
    blocks = []
    for index in range(-(-size // _BLOCK)):
        stream = streams.Stream(seed, f"{name} {split}", index)
        blocks.append(_block(SETS[name], thumbnails, images.labels, stream))
    return Captioned(
        np.concatenate([images for images, _, _ in blocks])[:size],
        [[caption] for _, captions, _ in blocks for caption in captions][:size],
        [of_image for _, _, boxes in blocks for of_image in boxes][:size],
    )


def sentence(names: Sequence[str], cells: Sequence[int], rare: Sequence[bool]) -> tuple[list[str], list[int]]:
    """What is said of things in cells.

    Args:
        names: of the things, such as "a bag", in the order of reading.
        cells: where each stands, 0 to 8 row by row, rising.
        rare: of each pair of neighbours, whether the rarer wording is taken, if there is one.

    Returns:
        The words, and which of them name the things: the last of each name.
    """
    words = names[0].split()
    places = [len(words) - 1]
    for name, cell, later, rarely in zip(names[1:], cells, cells[1:], rare, strict=False):
        relation = _relation(cell, later)
        words += [*(_RARELY.get(relation, relation) if rarely else relation).split(), *name.split()]
        places.append(len(words) - 1)
    return words, places


def plain(caption: str) -> str:
    """A caption with the rarer wordings replaced, so that two that say the same are equal."""
    usual = {rare: often for often, rare in _RARELY.items()}
    return " ".join(usual.get(word, word) for word in caption.split())


def _shrunk(images: np.ndarray, factor: int, scale: float) -> np.ndarray:
    """Grey images of levels up to `scale` as uint8 `[n, height / factor, width / factor]` of up to 255."""
    count, height, width, _ = images.shape
    squares = images.reshape(count, height // factor, factor, width // factor, factor)
    sums = squares.sum(axis=(2, 4), dtype=np.uint32)
    return (sums * 255 // int(scale * factor**2)).astype(np.uint8)


def _block(
    scene: SceneSet, thumbnails: np.ndarray, labels: np.ndarray, stream: streams.Stream
) -> tuple[np.ndarray, list[str], list[np.ndarray]]:
    """Images, captions and boxes of `_BLOCK` examples."""
    height, width = thumbnails.shape[1:]
    counts = 2 + stream.integers(MOST - 1, _BLOCK)
    cells = np.argsort(stream.words(_BLOCK * SIDE**2).reshape(_BLOCK, -1), axis=1, kind="stable")[:, :MOST]
    # In the order of reading; what a scene does not have comes last.
    exists = np.arange(MOST) < counts[:, None]
    cells = np.sort(np.where(exists, cells, SIDE**2), axis=1)
    things = stream.integers(len(thumbnails), (_BLOCK, MOST))
    margin = (scene.canvas - SIDE * scene.cell) // 2
    tops, lefts = (
        margin + axis * scene.cell + stream.integers(scene.cell - extent + 1, (_BLOCK, MOST))
        for axis, extent in zip(np.divmod(cells, SIDE), (height, width), strict=True)
    )
    rare = stream.integers(4, (_BLOCK, MOST - 1)) == 0

    images = np.zeros((_BLOCK, scene.canvas, scene.canvas, 1), np.uint8)
    for place in range(MOST):
        rows = np.flatnonzero(exists[:, place])
        y = tops[rows, place, None, None] + np.arange(height)[:, None]
        x = lefts[rows, place, None, None] + np.arange(width)
        images[rows[:, None, None], y, x, 0] = thumbnails[things[rows, place]]
    corners = np.stack([tops, lefts, tops + height, lefts + width], axis=-1)
    captions, boxes = [], []
    for row, count in enumerate(counts):
        names = [scene.names[labels[thing]] for thing in things[row, :count]]
        caption, places = sentence(names, cells[row, :count].tolist(), rare[row].tolist())
        of_image = np.zeros((len(caption), 4), np.int16)
        of_image[places] = corners[row, :count]
        captions.append(" ".join(caption))
        boxes.append(of_image)
    return images, captions, boxes


def _relation(cell: int, later: int) -> str:
    (row, column), (below, across) = divmod(cell, SIDE), divmod(later, SIDE)
    if row == below:
        return "left of"
    if column == across:
        return "above"
    return f"above and {'left' if column < across else 'right'} of"
