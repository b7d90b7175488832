"""Captions of one's own and of TFDS: splits, several captions of an image, sizes and colours; and errors."""

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

from data.examples import Examples
from data.image import load
from data.image.readers import pixels
from data.image.types import Captioned, ImageExamples
from data.ragged import Ragged
from errors import UserError
from tests.data.prepared import write


def folder(tmp_path, table, images):
    for name, (width, height, colour) in images.items():
        mode = "L" if isinstance(colour, int) else "RGB"
        Image.new(mode, (width, height), colour).save(tmp_path / name)
    (tmp_path / "captions.csv").write_text(table)
    return f"folder:{tmp_path}"


TABLE = """file,caption,split
a.png,"A dog, running.",train
a.png,The dog's tail!,train
b.png,Two well-known cats,train
c.png,nothing,test
d.jpg,a field,train
"""
IMAGES = {
    "a.png": (6, 4, 50),
    "b.png": (9, 3, (10, 20, 30)),
    "c.png": (3, 3, 7),
    "d.jpg": (3, 5, (90, 90, 90)),
}


def test_a_folder_of_images_of_any_size_with_several_captions(tmp_path):
    data = load.captioned(
        folder(tmp_path, TABLE, IMAGES), image_size=5, validation_fraction=0.4, split_seed=0
    )
    assert (len(data.train), len(data.validation), len(data.test)) == (2, 1, 1)
    said = {tuple(several) for split in (data.train, data.validation) for several in split.captions}
    assert said == {("a dog running", "the dog's tail"), ("two well-known cats",), ("a field",)}
    assert data.test.images.shape == (1, 5, 5, 3)  # grey as colours, since one of the others has colours
    np.testing.assert_array_equal(data.test.images, 7)


def test_images_are_scaled_until_they_cover_and_cut_to_their_middle():
    wide = np.zeros((2, 8, 3), np.uint8)
    wide[:, 2:4], wide[:, 4:6] = 100, 200
    found = pixels.fit(Image.fromarray(wide), (2, 4), 1)
    np.testing.assert_array_equal(found[..., 0], [[100, 100, 200, 200]] * 2)
    assert pixels.fit(Image.fromarray(wide), (4, 4), 3).shape == (4, 4, 3)
    np.testing.assert_array_equal(pixels.fit(Image.fromarray(wide), None), wide)


@pytest.mark.parametrize(
    "table, told",
    [
        ("file,text\na.png,x\n", ("column 'caption' is missing",)),
        ("file,caption\na.png,A dog, running\n", ("captions.csv:2", "quotation marks")),
        ("file,caption\nz.png,A dog\n", ("captions.csv:2", "z.png does not exist")),
        ("file,caption\na.png,?!\n", ("captions.csv:2", "has no words")),
        ("file,caption,split\na.png,x,dev\n", ("captions.csv:2", "'dev'", "train")),
        ("file,caption,split\na.png,x,train\na.png,y,test\n", ("captions.csv:3", "but was for train")),
        (
            "file,caption,split\na.png,x,train\nb.png,y,train\n",
            ("b.png is [3, 9, 3]", "[4, 6, 3]", "image_size"),
        ),
        ("file,caption,split\nbroken.png,x,train\n", ("broken.png cannot be read as an image",)),
        ("file,caption\n", ("holds no captions",)),
    ],
)
def test_a_wrong_table_is_one_line(table, told, tmp_path, one_line):
    name = folder(tmp_path, table, IMAGES)
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(UserError) as error:
        load.captioned(name)
    one_line(error, *told)


def test_any_tfds_set_with_captions_by_name(tmp_path, png, one_line):
    """As coco_captions has them: a sequence of entries with a text each, and a split called val."""
    features = {
        "image": tfds.features.Image(shape=(None, None, 3), encoding_format="png"),
        "captions": tfds.features.Sequence({"id": np.int64, "text": tfds.features.Text()}),
    }

    def rows(*sizes):
        return [
            {
                "image": png(np.full((height, 6, 3), height, np.uint8)),
                "captions": [{"id": i, "text": f"Number {i}, of {height}."} for i in range(count)],
            }
            for height, count in sizes
        ]

    splits = {"train": rows((4, 2), (5, 1), (6, 0)), "val": rows((7, 3)), "test": rows((8, 1))}
    write(tmp_path, "photos", splits, features=features)
    data = load.captioned("photos", data_dir=str(tmp_path), image_size=3)
    assert sorted(map(tuple, data.train.captions)) == [("number 0 of 4", "number 1 of 4"), ("number 0 of 5",)]
    assert list(data.validation.captions) == [["number 0 of 7", "number 1 of 7", "number 2 of 7"]]
    np.testing.assert_array_equal(data.test.images, np.full((1, 3, 3, 3), 8))
    assert len(load.captioned("photos", data_dir=str(tmp_path), image_size=3, train_size=1).train) == 1

    features.pop("captions")
    write(tmp_path, "bare", {"train": [{"image": rows((4, 0))[0]["image"]}]}, features=features)
    with pytest.raises(UserError) as error:
        load.captioned("bare", data_dir=str(tmp_path))
    one_line(error, "captions", "it has image")
    with pytest.raises(UserError) as error:
        load.captioned("photo", data_dir=str(tmp_path))
    one_line(error, "'photos'", "digit_scenes", "folder:DIR")


def test_examples_share_images():
    images = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4, 1)
    image = np.array([0, 0, 2, 1], np.int32)
    tokens = Ragged.of([[5, 3], [6, 7, 3], [3], [8, 3]], np.int32)
    examples = ImageExamples({"image": image}, targets={"tokens": tokens}, images=images)
    batch = examples.take(np.array([3, 1, 2])).gather(np.array([1, 0, -1]), (0, 4))
    np.testing.assert_array_equal(batch["image"], images[[0, 1, 1]])
    np.testing.assert_array_equal(batch["tokens"], [[6, 7, 3, 0], [8, 3, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(batch["weight"], [1, 1, 0])
    other = ImageExamples({"image": image}, targets={"tokens": tokens}, images=images + 1)
    plain = Examples({"image": image}, targets={"tokens": tokens})
    assert len({examples.fingerprint, other.fingerprint, plain.fingerprint}) == 3


def test_as_many_captions_as_images():
    with pytest.raises(ValueError, match="2 images, but captions of 1 and boxes of 0"):
        Captioned(np.zeros((2, 3, 3, 1), np.uint8), [["one"]])
