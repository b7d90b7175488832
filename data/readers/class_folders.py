"""Folders of your own files, one subfolder per class.

Two layouts are understood.

    DIR/train/CLASS/*, DIR/test/CLASS/* and, if you like, DIR/validation/CLASS/*
    DIR/CLASS/*, of which about a fifth, chosen by the file names alone, is kept for the test, by
        `data.splits.is_test` of "CLASS/FILE"

Hidden files are passed over, any other file of another kind is an error.
"""

from collections.abc import Collection
from pathlib import Path

import errors
from data.splits import NAMES, is_test

ByClass = dict[str, list[Path]]


def read(folder: Path, suffixes: Collection[str], what: str) -> dict[str, ByClass]:
    """The files of each class of each split, by name.

    Args:
        folder: laid out in one of the two ways above.
        suffixes: endings of the files, lower case.
        what: the word for one of them, such as "image".

    Raises:
        errors.UserError: the layout is another; the first wrong file or folder is named.
    """
    if not folder.is_dir():
        raise errors.UserError(f"{what} folder {folder} does not exist")
    given = [split for split in NAMES if (folder / split).is_dir()]
    if not given:
        return _by_name(_by_class(folder, suffixes, what), folder, what)
    others = sorted({path.name for path in _visible(folder)} - set(given))
    if others:
        raise errors.UserError(
            f"{what} folder {folder} has {', '.join(given)} and also {others[0]!r}; beside "
            f"{', '.join(NAMES)} nothing else is allowed"
        )
    files = {split: _by_class(folder / split, suffixes, what) for split in given}
    for split in ("train", "test"):
        if split not in files:
            raise errors.UserError(f"{what} folder {folder} has {' and '.join(given)} but no {split}")
    for split, by_class in files.items():
        for name in by_class:
            if name not in files["train"]:
                raise errors.UserError(
                    f"class {name!r} of {folder / split} is none of train's: {', '.join(files['train'])}"
                )
    return files


def _by_class(folder: Path, suffixes: Collection[str], what: str) -> ByClass:
    by_class = {}
    for path in _visible(folder):
        if not path.is_dir():
            raise errors.UserError(f"{path} is no folder: {folder} must hold a folder per class")
        members = _visible(path)
        for member in members:
            if member.suffix.lower() not in suffixes or not member.is_file():
                raise errors.UserError(f"{member} is no {what} file; allowed endings: {' '.join(suffixes)}")
        if not members:
            raise errors.UserError(f"class folder {path} holds no {what}s")
        by_class[path.name] = members
    if not by_class:
        raise errors.UserError(f"{what} folder {folder} is empty: it must hold a folder per class")
    return by_class


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _by_name(by_class: ByClass, folder: Path, what: str) -> dict[str, ByClass]:
    files: dict[str, ByClass] = {"train": {}, "test": {}}
    for name, members in by_class.items():
        for split, kept in (("train", False), ("test", True)):
            files[split][name] = [path for path in members if is_test(f"{name}/{path.name}") == kept]
    for split, chosen in files.items():
        if not any(chosen.values()):
            raise errors.UserError(
                f"no {what} of {folder} falls to {split} by its name: add {what}s, or divide them "
                "yourself into train and test folders"
            )
    return files
