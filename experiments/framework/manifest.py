"""What a study was made with: command, time, versions, processor."""

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from errors import UserError

FILE = "manifest.json"
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn")


def facts(command: str, seconds: float, **more: Any) -> dict[str, Any]:
    """The facts of a study, as JSON can write them.

    Args:
        command: what was typed.
        seconds: how long it took; runs that were done before count for nothing.
        **more: what the study says of itself.
    """
    return {
        "command": command,
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "processor": processor(),
        **more,
    }


def write(out: Path, facts: Mapping[str, Any]) -> None:
    """Write DIR/manifest.json."""
    (out / FILE).write_text(json.dumps(facts, indent=2) + "\n")


def read(out: Path) -> dict[str, Any]:
    """What DIR/manifest.json says.

    Raises:
        UserError: there is none, or it is broken.
    """
    try:
        return json.loads((out / FILE).read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{out / FILE} can't be read: {error}") from None


def processor() -> str:
    """How many processors there are, and of which kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
