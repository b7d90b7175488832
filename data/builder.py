"""What the TFDS builders of this package share, so that each is its facts and its reader only.

A builder declares the published raw files; its `decode` turns their bytes into examples with nothing
but NumPy. Sets are written as array_record, which TFDS reads and writes without TensorFlow, and so
every TFDS tool works on them: `tfds.data_source("cifar10:1.0.0", split="train[:10%]", ...)`. Name
the version there: the bare name means TFDS's own builder, which needs TensorFlow to prepare.
"""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any, ClassVar

import tensorflow_datasets as tfds

import errors
from data import raw_files

Record = Mapping[str, Any]


class Builder(tfds.core.GeneratorBasedBuilder):
    """A TFDS builder that needs no TensorFlow.

    Attributes:
        SPLITS: number of examples by split.
        RAW_FILES: the published files that `decode` needs.
        DOWNLOADS: where these are published.
        SUPERVISED: the names of what is given and of what is asked.
        METADATA: what a reader must know besides, as JSON can write it.
        DESCRIPTION: one sentence.
        HOMEPAGE: URL.
        LICENSE: the licence, or that there is none.
        CITATION: BibTeX.
    """

    VERSION = tfds.core.Version("1.0.0")
    MANUAL_DOWNLOAD_INSTRUCTIONS = "`python -m data.prepare NAME` downloads the raw files."

    SPLITS: ClassVar[Mapping[str, int]]
    RAW_FILES: ClassVar[tuple[raw_files.RawFile, ...]]
    DOWNLOADS: ClassVar[tuple[raw_files.Download, ...]] = ()
    SUPERVISED: ClassVar[tuple[str, str] | None] = None
    METADATA: ClassVar[Mapping[str, Any]] = {}
    DESCRIPTION: ClassVar[str]
    HOMEPAGE: ClassVar[str]
    LICENSE: ClassVar[str]
    CITATION: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any):
        # In TFDS's registry the same names belong to TFDS's own builders.
        super().__init_subclass__(skip_registration=True, **kwargs)

    @classmethod
    @abc.abstractmethod
    def features(cls) -> Mapping[str, Any]:
        """The TFDS feature of each field of an example."""

    @classmethod
    @abc.abstractmethod
    def what(cls) -> str:
        """What the examples are, such as "images of 28x28x1"."""

    @classmethod
    @abc.abstractmethod
    def decode(cls, contents: Mapping[str, bytes]) -> Mapping[str, Sized]:
        """Turns raw bytes into examples; checks only what it must in order to read them.

        Args:
            contents: decompressed content of every file of RAW_FILES, by name.

        Returns:
            The examples of each split, as `records` takes them; by default a list of records.
        """

    @classmethod
    def check(cls, split: str, examples: Any) -> None:
        """Raises RunError if examples are not as they must be; by default if their number is another."""
        if len(examples) != cls.SPLITS[split]:
            raise errors.RunError(
                f"{cls.where(split)}: {len(examples):,} examples, expected {cls.SPLITS[split]:,}"
            )

    @classmethod
    def where(cls, split: str) -> str:
        """How messages begin."""
        return f"{cls.name}, split {split}"

    @classmethod
    def records(cls, examples: Any) -> Iterable[Record]:
        """The examples of a split one by one, each as the features want it."""
        return examples

    @classmethod
    def installed(cls) -> Path | None:
        """The folder where an installed package holds the raw files; None if it is to download."""
        return None

    @classmethod
    def read(cls, folder: Path) -> Mapping[str, Any]:
        """Reads and verifies the raw files in `folder`.

        Structure is checked before the SHA-256, since "truncated" or "label 11" says more about
        what is wrong than two hashes do.

        Returns:
            What `decode` returns: examples by split, in published order.

        Raises:
            errors.UserError: files are missing.
            errors.RunError: a file is truncated or damaged, a count is wrong, a label is out of
                range, or the content is not what was published.
        """
        contents = raw_files.read(folder, cls.RAW_FILES, cls.DOWNLOADS)
        splits = cls.decode(contents)
        for split, examples in splits.items():
            cls.check(split, examples)
        raw_files.verify(contents, cls.RAW_FILES)
        return splits

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.DESCRIPTION,
            homepage=self.HOMEPAGE,
            license=self.LICENSE,
            citation=self.CITATION,
            features=tfds.features.FeaturesDict(self.features()),
            supervised_keys=self.SUPERVISED,
            metadata=tfds.core.MetadataDict(self.METADATA),
            # Published order, so that record i can be traced to example i of the raw files.
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator]:
        splits = self.read(Path(dl_manager.manual_dir))
        return {split: self._generate_examples(examples) for split, examples in splits.items()}

    def _generate_examples(self, examples: Any) -> Iterator:
        yield from enumerate(self.records(examples))
