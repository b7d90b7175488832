"""Speech as vectors: log-mel frames of recordings, or frames that are given as such."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from data.examples import Examples
from data.speech import load as load_speech
from data.speech.frames import FrameEncoder
from data.speech.readers import wav
from data.speech.types import Recording
from data.splits import Splits
from errors import UserError
from models.set_model import Per
from tasks.sequences import Encoded
from tasks.task import Inputs, Record

# Fields of config.dataset that say how recordings are read, and those that say how they become frames.
READING = ("target", "data_dir")
ENCODING = ("num_mels", "deltas", "normalize")


def load(config: ConfigDict, *, per: Per, seed: int) -> Encoded:
    """The data set of a config's block `dataset`, its statistics measured on the training part."""
    parts = load_speech.labelled(
        config.name,
        split_seed=seed,
        validation_fraction=config.validation_fraction,
        **{name: config[name] or None for name in READING},
    )
    encoder = FrameEncoder.fit(
        parts.train, rate=config.rate or None, **{name: config[name] for name in ENCODING}
    )
    labels = encoder.label_names if per == "set" else encoder.tag_names
    if not labels:
        what = "recordings" if per == "set" else "frames"
        raise UserError(f"data set {config.name!r} has no labels of its {what}")
    encoded = Splits(*(encoder.encode(part) for part in (parts.train, parts.validation, parts.test)))
    return Encoded(encoded, {"labels": list(labels), "frames": encoder.to_json()})


def columns(inputs: Inputs) -> dict[str, Any]:
    """The width of a frame."""
    return {"frames": FrameEncoder.from_json(inputs["frames"]).width}


def encode(records: Sequence[Record], inputs: Inputs) -> Examples:
    """Records with "path", a wav file, or with "frames", a list of vectors."""
    return FrameEncoder.from_json(inputs["frames"]).encode([_recording(record) for record in records])


def _recording(record: Record) -> Recording:
    where = str(record.get("where", "input"))
    if "path" in record:
        return Recording(wav.read(Path(record["path"])), where=where)
    try:
        return Recording(np.asarray(record["frames"], np.float32), where=where)
    except KeyError:
        raise UserError(f"{where}: a wav file is needed, or 'frames', a list of vectors") from None
    except (TypeError, ValueError):
        raise UserError(f"{where}: 'frames' must be a list of vectors of one width") from None
