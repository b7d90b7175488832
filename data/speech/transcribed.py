"""Recordings with what is said in them, held in memory: `load(name)` is the one way in."""

import dataclasses
from pathlib import Path

import errors
from data import builders, streams, subsets
from data.parts import Parts
from data.speech import dataset
from data.speech.dataset import FOLDER, Recording

GENERATED = builders.GENERATED["transcription"]  # fsdd_strings from fsdd, which must be prepared

# What is trained on, chosen on and tested on, where a set of TFDS calls its splits otherwise.
SPLITS = {"librispeech": "train_clean100,dev_clean,test_clean"}


@dataclasses.dataclass(frozen=True, eq=False)
class Transcribed(Recording):
    """A recording and its text.

    Attributes:
        text: what is said; words with single spaces between them.
        group: recordings of a test that are to be reported apart; "" are the usual ones.
    """

    text: str = ""
    group: str = ""


def load(
    name: str,
    *,
    num_strings: int = 0,
    speaker_out: str = "",
    splits: str = "",
    lower: bool = False,
    data_dir: str | None = None,
    validation_fraction: float = 0.1,
    seed: int = 0,
) -> Parts[list[Transcribed]]:
    """Loads a data set into memory.

    Sets without a validation or a test split are parted as by `data.speech.dataset.load`.

    Args:
        name: "fsdd_strings" or "tone_strings", joined from single words (see data/speech/strings.py); a data
            set of recordings and text that TFDS has prepared as array_record under `data_dir`, written NAME,
            NAME/CONFIG or NAME:VERSION, such as librispeech; or "folder:DIR" for wav files and transcripts of
            your own (see data/speech/folder.py).
        num_strings: how many strings to train on, and the most to validate and test on; 0 is
            `strings.NUM_STRINGS`.
        speaker_out: a speaker of fsdd_strings who is left out of training and validation, and is the only one
            of the test; "" leaves none out.
        splits: of a TFDS set: TRAIN,TEST or TRAIN,VALIDATION,TEST, each a split expression of TFDS, such as
            "train_clean100[:10%]+train_other500,dev_clean,test_other"; "" is those of `SPLITS`, else train,
            validation and test as far as there are such.
        lower: turn texts to lower case.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        validation_fraction: share of the training recordings to hold out, in (0, 1).
        seed: chooses what is held out; draws training strings.

    Raises:
        errors.UserError: an argument is not allowed, or the data set is unknown or not prepared.
        errors.RunError: files of the data set are damaged.
    """
    subsets.check_fraction(validation_fraction)
    seed = streams.check_seed(seed)
    generated = name in GENERATED
    of_folder = name.startswith(FOLDER) and name != FOLDER
    for argument, value, honoured, by in (
        ("num_strings", num_strings, generated, " and ".join(GENERATED)),
        ("speaker_out", speaker_out, name == "fsdd_strings", "fsdd_strings"),
        ("splits", splits, not generated and not of_folder, "data sets of TFDS"),
    ):
        if value and not honoured:
            raise errors.UserError(f"{argument} {value!r} is for {by} alone, not for {name!r}")
    if generated:
        from data.speech import strings

        parts = (
            strings.of_tones(seed, num_strings)
            if name == "tone_strings"
            else strings.of_digits(seed, num_strings, speaker_out, data_dir, validation_fraction)
        )
    else:
        parts = dataset.parted(name, _read(name, splits, data_dir), validation_fraction, seed)
    if lower:
        parts = Parts(*([_lowered(each) for each in part] for part in vars(parts).values()))
    return parts


def _read(name: str, splits: str, data_dir: str | None) -> dict[str, list[Transcribed]]:
    if name.startswith(FOLDER) and name != FOLDER:
        from data.speech import folder

        return folder.transcripts(Path(name.removeprefix(FOLDER)).expanduser())
    from data import prepared
    from data.speech import records

    others = (*GENERATED, f"{FOLDER}DIR")
    directory = prepared.folder(name, "speech", data_dir, others, also="data set of recordings with text")
    return records.transcripts(directory, splits or SPLITS.get(name.partition(":")[0], ""))


def _lowered(recording: Transcribed) -> Transcribed:
    return dataclasses.replace(recording, text=recording.text.lower())
