"""Recordings with their labels, held in memory: `load(name)` is the one way in."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

import errors
from data import builders, streams, subsets
from data.parts import Parts
from data.speech.wav import Wave

GENERATED = builders.GENERATED["speech"]
FOLDER = "folder:"
_TEST_FRACTION = 0.2
_TEST_SEED = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """One recording as it is given, to be encoded by `data.speech.frames`.

    Attributes:
        sound: a wave, or frames that are vectors already, float32 `[T, C]`.
        label: what the recording is one of; None where that is not known.
        tags: a label for each of its frames, "" for a frame without one; None where there are none.
        where: how messages name it, such as its file.
    """

    sound: Wave | np.ndarray
    label: str | None = None
    tags: Sequence[str] | None = None
    where: str = "recording"


AnyRecording = TypeVar("AnyRecording", bound=Recording)


def names() -> tuple[str, ...]:
    """The built-in data sets, by the names that `load` takes."""
    return (*GENERATED, *builders.names("speech"))


def load(
    name: str,
    *,
    target: str = "",
    data_dir: str | None = None,
    validation_fraction: float = 0.1,
    seed: int = 0,
) -> Parts[list[Recording]]:
    """Loads a data set into memory.

    A data set with a validation split of its own keeps it. From the others `validation_fraction` of the
    training examples is held out, balanced over the labels (see data/subsets.py). One without a test
    split is tested on its validation split, or on a fifth of train, chosen balanced and once for all.

    Args:
        name: one of `names()`; or a data set of recordings that TFDS has prepared as array_record under
            `data_dir`, written NAME, NAME/CONFIG or NAME:VERSION; or "folder:DIR" for a folder of your own
            wav files (see data/speech/folder.py).
        target: which label, where recordings have several: for fsdd "digit" (as is "") or "speaker".
        data_dir: where prepared data sets are; see data/locations.py for the default.
        validation_fraction: share of the training examples to hold out, in (0, 1).
        seed: chooses the examples that are held out; draws the training examples of generated sets.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)
    return parted(name, _read(name, target, data_dir, seed), validation_fraction, seed)


def parted(
    name: str, splits: Mapping[str, list[AnyRecording]], validation_fraction: float, seed: int
) -> Parts[list[AnyRecording]]:
    """The splits a data set has as the three parts of a run, as `load` says it.

    Raises:
        errors.UserError: there are too few recordings to hold any out.
    """
    splits = dict(splits)
    if "test" not in splits and "validation" in splits:
        splits["test"] = splits.pop("validation")
    for split, fraction, chosen_by in (
        ("test", _TEST_FRACTION, _TEST_SEED),
        ("validation", validation_fraction, seed),
    ):
        if split not in splits:
            splits["train"], splits[split] = _held_out(name, splits["train"], fraction, chosen_by)
    return Parts(splits["train"], splits["validation"], splits["test"])


def _held_out(
    name: str, recordings: list[AnyRecording], fraction: float, seed: int
) -> tuple[list[AnyRecording], list[AnyRecording]]:
    if len(recordings) < 2:
        raise errors.UserError(
            f"{name} has {len(recordings)} recording(s) to train on; at least 2 are needed"
        )
    labels = np.unique([str(recording.label) for recording in recordings], return_inverse=True)[1]
    parts = subsets.train_and_validation(labels, len(recordings), fraction, seed)
    kept, held_out = ([recordings[index] for index in part] for part in parts)
    return kept, held_out


def _read(name: str, target: str, data_dir: str | None, seed: int) -> Mapping[str, list[Recording]]:
    if name in GENERATED or (name.startswith(FOLDER) and name != FOLDER):
        if target not in ("", "label"):
            raise errors.unknown("target", target, ["label"])
        if name in GENERATED:
            from data.speech import tones

            return tones.splits(seed)
        from data.speech import folder

        return folder.read(Path(name.removeprefix(FOLDER)).expanduser())

    # What is imported here takes longer to import than a small data set takes to load.
    from data import prepared
    from data.speech import records

    others = (*names(), f"{FOLDER}DIR")
    return records.read(
        prepared.folder(name, "speech", data_dir, others, also="data set of recordings"), target
    )
