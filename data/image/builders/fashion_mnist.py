"""Fashion-MNIST: 70,000 grey images of clothing, 28 x 28, in ten classes."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from data import raw_files
from data.image.builders import base
from data.image.readers import idx

_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"


class FashionMnist(base.ImageBuilder):
    """TFDS builder of Fashion-MNIST from the published idx files."""

    CLASSES = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )
    SHAPE = (28, 28, 1)
    SPLITS: ClassVar = {"train": 60_000, "test": 10_000}
    RAW_FILES = (
        raw_files.RawFile(
            "train-images-idx3-ubyte.gz",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        raw_files.RawFile(
            "train-labels-idx1-ubyte.gz",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        raw_files.RawFile(
            "t10k-images-idx3-ubyte.gz",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        raw_files.RawFile(
            "t10k-labels-idx1-ubyte.gz",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    )
    DOWNLOADS = (
        raw_files.Download(
            _URL + "train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        raw_files.Download(
            _URL + "train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
        raw_files.Download(
            _URL + "t10k-images-idx3-ubyte.gz",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        raw_files.Download(
            _URL + "t10k-labels-idx1-ubyte.gz",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    )
    DESCRIPTION = "Grey images of clothing, a drop-in replacement for MNIST that is harder to solve."
    HOMEPAGE = "https://github.com/zalandoresearch/fashion-mnist"
    LICENSE = "MIT"
    CITATION = """@article{xiao2017fashion,
  title   = {Fashion-{MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  author  = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  journal = {arXiv:1708.07747},
  year    = {2017}
}"""

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, base.Arrays]:
        """Reads two idx files for each split."""
        splits = {}
        for split, prefix in (("train", "train"), ("test", "t10k")):
            images, labels = (
                idx.decode(contents[name], name, ndim)
                for name, ndim in (
                    (f"{prefix}-images-idx3-ubyte.gz", 3),
                    (f"{prefix}-labels-idx1-ubyte.gz", 1),
                )
            )
            splits[split] = (images[..., np.newaxis], labels)
        return splits
