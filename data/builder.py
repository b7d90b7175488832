"""What the TFDS builders of this package share, so that each is its facts and its reader only.

A builder declares the published raw files; its `decode` turns their bytes into arrays with nothing
but NumPy. Sets are written as array_record, which TFDS reads and writes without TensorFlow, and so
every TFDS tool works on them: `tfds.data_source("cifar10:1.0.0", split="train[:10%]", ...)`. Name
the version there: the bare name means TFDS's own builder, which needs TensorFlow to prepare.
"""

import abc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import raw_files

Arrays = tuple[np.ndarray, np.ndarray]  # images uint8 [n, height, width, channels], labels int [n]


class ImageBuilder(tfds.core.GeneratorBasedBuilder):
    """A TFDS builder of labelled images that needs no TensorFlow.

    Attributes:
        CLASSES: the word for each class.
        SHAPE: height, width and channels of every image.
        SCALE: the pixel value that counts as 1.0.
        SPLITS: number of examples by split.
        RAW_FILES: the published files that `decode` needs.
        DOWNLOADS: where these are published.
        DESCRIPTION: one sentence.
        HOMEPAGE: URL.
        LICENSE: the licence, or that there is none.
        CITATION: BibTeX.
    """

    VERSION = tfds.core.Version("1.0.0")
    MANUAL_DOWNLOAD_INSTRUCTIONS = "`python -m data.prepare NAME` downloads the raw files."

    CLASSES: ClassVar[tuple[str, ...]]
    SHAPE: ClassVar[tuple[int, int, int]]
    SCALE: ClassVar[float] = 255.0
    SPLITS: ClassVar[Mapping[str, int]]
    RAW_FILES: ClassVar[tuple[raw_files.RawFile, ...]]
    DOWNLOADS: ClassVar[tuple[raw_files.Download, ...]] = ()
    DESCRIPTION: ClassVar[str]
    HOMEPAGE: ClassVar[str]
    LICENSE: ClassVar[str]
    CITATION: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any):
        # In TFDS's registry the same names belong to TFDS's own builders.
        super().__init_subclass__(skip_registration=True, **kwargs)

    @classmethod
    @abc.abstractmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, Arrays]:
        """Turns raw bytes into arrays; checks only what it must in order to read them.

        Args:
            contents: decompressed content of every file of RAW_FILES, by name.

        Returns:
            Images (uint8 [n, height, width, channels]) and labels (int [n]) by split.
        """

    @classmethod
    def installed(cls) -> Path | None:
        """The folder where an installed package holds the raw files; None if it is to download."""
        return None

    @classmethod
    def read(cls, folder: Path) -> dict[str, Arrays]:
        """Reads and verifies the raw files in `folder`.

        Structure is checked before the SHA-256, since "truncated" or "label 11" says more about
        what is wrong than two hashes do.

        Returns:
            Images and labels by split, in published order.

        Raises:
            errors.UserError: files are missing.
            errors.RunError: a file is truncated or damaged, a count is wrong, a label is out of
                range, or the content is not what was published.
        """
        contents = raw_files.read(folder, cls.RAW_FILES, cls.DOWNLOADS)
        splits = cls.decode(contents)
        for split, (images, labels) in splits.items():
            cls._check(split, images, labels)
        raw_files.verify(contents, cls.RAW_FILES)
        return splits

    @classmethod
    def _check(cls, split: str, images: np.ndarray, labels: np.ndarray) -> None:
        where = f"{cls.name}, split {split}"
        if images.shape[1:] != cls.SHAPE:
            raise errors.RunError(f"{where}: images are {list(images.shape[1:])}, expected {list(cls.SHAPE)}")
        for what, found in (("images", len(images)), ("labels", len(labels))):
            if found != cls.SPLITS[split]:
                raise errors.RunError(f"{where}: {found:,} {what}, expected {cls.SPLITS[split]:,}")
        wrong = np.flatnonzero(labels >= len(cls.CLASSES))
        if len(wrong):
            raise errors.RunError(
                f"{where}: label {labels[wrong[0]]} of example {wrong[0]:,} is out of range, "
                f"0 to {len(cls.CLASSES) - 1} are allowed"
            )

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.DESCRIPTION,
            homepage=self.HOMEPAGE,
            license=self.LICENSE,
            citation=self.CITATION,
            features=tfds.features.FeaturesDict(
                {
                    # Not features.Image: that encodes arrays with TensorFlow, and a PNG takes
                    # three times as long to read back as plain bytes do.
                    "image": tfds.features.Tensor(
                        shape=self.SHAPE, dtype=np.uint8, encoding=tfds.features.Encoding.BYTES
                    ),
                    "label": tfds.features.ClassLabel(names=self.CLASSES),
                }
            ),
            supervised_keys=("image", "label"),
            metadata=tfds.core.MetadataDict(scale=self.SCALE),
            # Published order, so that record i can be traced to image i of the raw files.
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator]:
        splits = self.read(Path(dl_manager.manual_dir))
        return {split: self._generate_examples(*arrays) for split, arrays in splits.items()}

    def _generate_examples(self, images: np.ndarray, labels: np.ndarray) -> Iterator:
        for index, (image, label) in enumerate(zip(images, labels, strict=True)):
            yield index, {"image": image, "label": int(label)}
