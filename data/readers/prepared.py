"""Data sets that are prepared on disk in the layout of TFDS, by us or by TFDS itself.

Only array_record can be read without TensorFlow. Its records carry checksums, so a damaged file is
noticed on reading.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from absl import logging

import errors
from data import catalogue, locations
from data.splits import NAMES

_FEATURES = "features.json"  # what makes a folder a prepared data set
_CHUNK = 4096  # records read at a time: few calls, and little held twice


def find(name: str, root: Path) -> Path | None:
    """The folder of a prepared data set.

    Args:
        name: NAME, NAME/CONFIG, NAME:VERSION or NAME/CONFIG:VERSION. Without a version the newest
            is meant; without a config the only one.
        root: where prepared data sets are.

    Returns:
        The folder that holds its records, or None.

    Raises:
        errors.UserError: the data set has several configs and `name` says none.
    """
    base, _, version = name.partition(":")
    if not base or set(Path(base).parts) & {"..", "/"}:
        return None
    if version:
        return root / base / version if (root / base / version / _FEATURES).is_file() else None
    versions = [folder.parent for folder in (root / base).glob(f"*/{_FEATURES}")]
    if versions:
        return max(versions, key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.name)])
    configs = sorted({path.parents[1].name for path in (root / base).glob(f"*/*/{_FEATURES}")})
    if len(configs) > 1:
        raise errors.UserError(
            f"data set {name!r} has several configs, name one: "
            + ", ".join(f"{base}/{config}" for config in configs)
        )
    return find(f"{base}/{configs[0]}", root) if configs else None


def names(root: Path) -> list[str]:
    """The prepared data sets under `root`, as NAME or NAME/CONFIG."""
    stored = {
        path.parents[1].relative_to(root).as_posix()
        for pattern in (f"*/*/{_FEATURES}", f"*/*/*/{_FEATURES}")
        for path in root.glob(pattern)
    }
    return sorted(name for name in stored if not name.startswith("."))


def folder(
    name: str, kind: str, data_dir: str | None, others: Iterable[str], *, also: str | None = None
) -> Path:
    """The folder of a prepared data set of a kind, or the error that tells what there is.

    Args:
        name: see `find`.
        kind: of its examples, as `data.catalogue` has it.
        data_dir: where prepared data sets are, as the caller was given it.
        others: what else the caller takes, besides built-in sets.
        also: what the caller takes besides, of the sets that TFDS prepares; None if nothing.

    Raises:
        errors.UserError: it is not prepared, or unknown.
    """
    root = locations.data_dir(data_dir)
    directory = find(name, root)
    if directory is not None:
        return directory
    if name in catalogue.BUILDERS.get(kind, ()):
        option = f" --data_dir {root}" if data_dir else ""
        raise errors.UserError(
            f"data set {name!r} is not prepared in {root}: python -m data.prepare {name}{option}"
        )
    unknown = errors.unknown("data set", name, {*catalogue.names(kind), *others, *names(root)})
    if also is None:
        raise unknown
    raise errors.UserError(f"{unknown}; also any {also} that TFDS prepares as array_record in {root}")


def splits(builder: tfds.core.DatasetBuilder) -> list[str]:
    """Those of train, validation and test that a prepared data set has.

    Raises:
        errors.UserError: it has no train.
    """
    if "train" not in builder.info.splits:
        raise errors.UserError(
            f"{builder.data_dir} has no split called train, only {', '.join(builder.info.splits)}"
        )
    return [split for split in NAMES if split in builder.info.splits]


def open_folder(directory: Path) -> tfds.core.DatasetBuilder:
    """Opens a prepared data set, to read its records or to look at its `info`.

    Args:
        directory: what `find` returned.

    Raises:
        errors.UserError: it is not stored as array_record.
        errors.RunError: its files are damaged.
    """
    with damage(directory):
        builder = tfds.builder_from_directory(directory)
    stored = builder.info.file_format
    if stored is None or stored.value != "array_record":
        raise errors.UserError(
            f"{directory} is stored as {getattr(stored, 'value', 'something unknown')}; without "
            "TensorFlow only array_record can be read: prepare it with file_format='array_record'"
        )
    return builder


def records(builder: tfds.core.DatasetBuilder, split: str) -> Iterator[dict[str, Any]]:
    """The records of a split in order, text as str.

    Raises:
        errors.RunError: the split is empty, or its files are damaged.
    """
    directory = Path(builder.data_dir)
    with damage(directory):
        source: Any = builder.as_data_source(split)
        total = len(source)
    if not total:
        raise errors.RunError(f"{directory}: split {split} is empty")
    for start in range(0, total, _CHUNK):
        with damage(directory):
            chunk = source.__getitems__(range(start, min(start + _CHUNK, total)))
        yield from map(plain, chunk)


def plain(value: Any) -> Any:
    """A record with text as str, wherever it is."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [plain(inner) for inner in value]
    return value


@contextlib.contextmanager
def damage(directory: Path) -> Iterator[None]:
    """Turns whatever TFDS or array_record raise on damaged files into one line."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # TFDS advises to install OpenCV
    try:
        yield
    except errors.UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise errors.RunError(
            f"{directory} is damaged ({reason}): delete that folder and prepare it again"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
