"""Where data lives on disk: the one place that decides it.

    DATA_DIR/NAME/VERSION/          a prepared data set, in the layout of TFDS
    DATA_DIR/downloads/NAME/        raw files as downloaded; may be deleted once prepared
    DATA_DIR/.NAME.lock             held while NAME is being prepared
    DATA_DIR/.NAME.incomplete/      where it is built before it is renamed into place

DATA_DIR is what the caller gives, else $ATTENTION_DATA_DIR, else ~/.cache/attention/data.
"""

import os
from pathlib import Path

VARIABLE = "ATTENTION_DATA_DIR"
DEFAULT = "~/.cache/attention/data"


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """The absolute folder of prepared data sets, which need not exist yet."""
    return Path(given or os.environ.get(VARIABLE) or DEFAULT).expanduser().absolute()


def downloads(root: Path, name: str) -> Path:
    """Where the raw files of `name` are downloaded to."""
    return root / "downloads" / name


def lock(root: Path, name: str) -> Path:
    """The file locked by whoever prepares `name`."""
    return root / f".{name}.lock"


def incomplete(root: Path, name: str) -> Path:
    """Where `name` is built before it is renamed into place; left behind only by a kill."""
    return root / f".{name}.incomplete"
