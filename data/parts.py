"""What a data set is to a run: three parts that share no example."""

import dataclasses
from typing import Generic, TypeVar

Part = TypeVar("Part")


@dataclasses.dataclass(frozen=True)
class Parts(Generic[Part]):
    """A data set as one run sees it, in the words of the data.

    Attributes:
        train: what to learn from, vocabularies and statistics included.
        validation: what to choose models and settings by.
        test: what to report, used once.
    """

    train: Part
    validation: Part
    test: Part
