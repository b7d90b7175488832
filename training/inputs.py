"""What a trained model must know of its data, kept in the run's folder: words, label names, means.

With the config and a checkpoint it is all that new input needs, so that a run folder works alone.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from errors import RunError, UserError

FILE = "inputs.json"


def digest(inputs: Mapping[str, Any]) -> str:
    """SHA-256 of inputs, in hex."""
    return hashlib.sha256(_text(inputs).encode()).hexdigest()


def save(inputs: Mapping[str, Any], workdir: Path) -> None:
    """Write `inputs.json`, with its SHA-256, into a run's folder.

    Raises:
        UserError: if other inputs are there: the folder's checkpoints were trained with those.
    """
    path = workdir / FILE
    if path.exists() and load(workdir) != json.loads(_text(inputs)):
        raise UserError(
            f"{path} is of other data: its SHA-256 begins {digest(load(workdir))[:12]}, that of the data now "
            f"{digest(inputs)[:12]}; use another --workdir"
        )
    part = workdir / (FILE + ".part")
    part.write_text(json.dumps({"sha256": digest(inputs), "inputs": inputs}, ensure_ascii=False) + "\n")
    part.rename(path)


def load(workdir: Path) -> dict[str, Any]:
    """Read a run's `inputs.json`.

    Raises:
        UserError: if there is none.
        RunError: if it has changed since it was written.
    """
    path = workdir / FILE
    try:
        kept = json.loads(path.read_text())
        inputs, sha256 = kept["inputs"], kept["sha256"]
    except FileNotFoundError:
        raise UserError(f"{workdir} holds no run that can predict: there is no {FILE} in it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is damaged: {' '.join(str(error).split())}") from None
    if digest(inputs) != sha256:
        raise RunError(f"{path} has changed since it was written; its run must be trained again")
    return inputs


def _text(inputs: Mapping[str, Any]) -> str:
    return json.dumps(inputs, sort_keys=True, ensure_ascii=False)
