"""Speech as vectors: log-mel frames of recordings, or frames that are given as such."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.examples import Examples
from data.speech.frames import FrameEncoder
from data.speech.readers import wav
from data.speech.types import Recording
from data.splits import Splits
from errors import UserError
from tasks.task import Encoded, Inputs, Per, Record


def encoded(splits: Splits[Any], encoder: FrameEncoder, per: Per) -> Encoded:
    """The data set as numbers, with its labels of frames or of recordings."""
    labels = encoder.label_names if per == "set" else encoder.tag_names
    if not labels:
        raise UserError(f"config.dataset has no labels of its {'recordings' if per == 'set' else 'frames'}")
    examples = Splits(*map(encoder.encode, vars(splits).values()))
    return Encoded(examples, {"labels": list(labels), "frames": encoder.to_json()})


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
