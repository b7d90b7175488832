"""Prepares a data set: `python -m data.prepare NAME [--from DIR] [--data_dir DIR]`.

Takes the published raw files from DIR, or downloads them; verifies them; writes them as
array_record in the layout of TFDS; reads all of it back; and only then puts it in place with one
rename, so that a kill or a full disk leaves what was there before. Two at once take turns. Preparing
what is already there does nothing.
"""

import contextlib
import errno
import fcntl
import functools
import io
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import errors
from data import catalogue, locations, raw_files

if TYPE_CHECKING:
    from data.builder import Builder

_FULL = os.strerror(errno.ENOSPC)


def prepare(
    name: str,
    *,
    raw_dir: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    report: Callable[[str], None] = print,
) -> Path:
    """Prepares a data set, unless it is already there.

    Args:
        name: one of `data.catalogue.preparable()`.
        raw_dir: folder with the published raw files; None downloads them.
        data_dir: where prepared data sets are; see data/locations.py for the default.
        report: called with a line for each stage.

    Returns:
        The folder of the prepared data set.

    Raises:
        errors.UserError: the name is unknown, or raw files are missing.
        errors.RunError: raw files are damaged, cannot be downloaded, or the disk is full.
    """
    builder = _builder(name)
    root = locations.data_dir(data_dir)
    final = root / name / str(builder.VERSION)
    with _one_line_errors(root), _lock(root, name, report):
        if final.exists():
            report(f"{name} is already prepared in {final} (to prepare it again, delete that folder)")
            return final
        start = time.monotonic()
        source = Path(raw_dir).expanduser() if raw_dir else builder.installed()
        if source is None and not builder.DOWNLOADS:
            raise errors.UserError(
                f"{name} cannot be downloaded: get its files from {builder.HOMEPAGE} and give --from DIR"
            )
        if source is None:
            source = locations.downloads(root, name)
            report(f"{name}: downloading {len(builder.DOWNLOADS)} file(s) to {source}")
            raw_files.download(builder.DOWNLOADS, source)
        report(f"{name}: checking the raw files in {source} and writing them as records")
        stage = locations.incomplete(root, name)
        try:
            _build(builder, source, stage)
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
        final.parent.mkdir(parents=True, exist_ok=True)
        (stage / name / final.name).rename(final)
        shutil.rmtree(stage)
    sizes = ", ".join(f"{size:,} {split}" for split, size in builder.SPLITS.items())
    report(f"{name}: {sizes} {builder.what()} in {final} ({time.monotonic() - start:.1f} s)")
    return final


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = errors.ArgumentParser(prog="python -m data.prepare", description=__doc__)
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(catalogue.preparable())}")
    parser.add_argument(
        "--from",
        dest="raw_dir",
        metavar="DIR",
        help="folder with the raw files as published; without it they are downloaded",
    )
    parser.add_argument(
        "--data_dir",
        "--data-dir",
        metavar="DIR",
        help=f"where prepared data sets are (default: ${locations.VARIABLE} or {locations.DEFAULT})",
    )
    try:
        options = parser.parse_args(argv)
        prepare(
            options.name,
            raw_dir=options.raw_dir,
            data_dir=options.data_dir,
            report=functools.partial(print, flush=True),
        )
    except errors.UserError as error:
        print(f"data.prepare: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _builder(name: str) -> "type[Builder]":
    if name in catalogue.preparable():
        return catalogue.builder(name)
    if name.startswith("folder:") or any(name in generated for generated in catalogue.GENERATED.values()):
        raise errors.UserError(f"{name} needs no preparation of its own: it is loaded as it is")
    raise errors.unknown("data set", name, catalogue.preparable())


def _build(builder_class: "type[Builder]", raw_dir: Path, stage: Path) -> None:
    """Writes the data set under `stage` and makes sure that what was written reads back the same."""
    import tensorflow_datasets as tfds

    from data.readers import prepared

    shutil.rmtree(stage, ignore_errors=True)  # of a prepare that was killed
    builder = builder_class(data_dir=stage, file_format="array_record")
    splits = builder_class.read(raw_dir)
    # TFDS tells of a download of unknown size, which is not what happens here.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        builder.download_and_prepare(
            download_dir=stage / "downloads",
            download_config=tfds.download.DownloadConfig(manual_dir=raw_dir, try_download_gcs=False),
        )
    stored = prepared.open_folder(Path(builder.data_dir))
    for split, examples in splits.items():
        pairs = itertools.zip_longest(builder_class.records(examples), prepared.records(stored, split))
        if not all(_same(stored.info.features, *pair) for pair in pairs):
            raise errors.RunError(
                f"{builder.name}: split {split} reads back differently from what was written to "
                f"{stage}; is the disk sound?"
            )


def _same(features: Any, written: Any, read: Any) -> bool:
    """Whether a record reads back as it was written."""
    if written is None or read is None or written.keys() != read.keys():
        return False
    for name, value in written.items():
        feature = features[name]
        if hasattr(feature, "feature"):  # of each item of a sequence
            feature = feature.feature
        if hasattr(feature, "names"):  # classes may be written as their words
            words = feature.names or ()
            value = [words.index(v) if isinstance(v, str) else v for v in np.atleast_1d(value).tolist()]
            value = value if np.ndim(read[name]) else value[0]
        if not np.array_equal(np.asarray(value), np.asarray(read[name])):
            return False
    return True


@contextlib.contextmanager
def _lock(root: Path, name: str, report: Callable[[str], None]) -> Iterator[None]:
    # The kernel lets go of the lock when the process ends, however it ends.
    root.mkdir(parents=True, exist_ok=True)
    with open(locations.lock(root, name), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{name}: another process is preparing it; waiting for that to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _one_line_errors(root: Path) -> Iterator[None]:
    """Says in one line what the operating system or the record writer refused."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # the record writer, in C++, raises RuntimeError
        reason = " ".join(str(error).split())
        if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or _FULL in reason:
            reason = f"no space left on the disk of {root}"
        raise errors.RunError(f"{reason}; no data set was changed") from error


if __name__ == "__main__":
    sys.exit(main())
