"""Text files of one's own: `file:TRAIN,VALIDATION,TEST`, `file:TRAIN,TEST`, `file:ALL` or `folder:DIR`.

A folder holds one file for each split, with `train`, `validation` (or `valid`, `val`, `dev`) or `test` as a
word of its name; other files are passed over. What a file holds is told by how its name ends:

    tagged sentences   .conllu           CoNLL-U
                       .csv .jsonl       a row per sentence, with tokens and tags
                       anything else     a line per token, its tag in another column
    labelled texts     .tsv .csv .jsonl  a row per text
"""

import re
from pathlib import Path

import errors
from data.readers import lines
from data.text import tokenisation
from data.text.readers import columns, conllu, table
from data.text.types import LabelledTexts, TaggedSentences

_WORDS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_SPLITS = {1: ("train",), 2: ("train", "test"), 3: ("train", "validation", "test")}


def listed(paths: str) -> dict[str, Path]:
    """The file of each split, from one to three paths with commas between them.

    Raises:
        errors.UserError: there are more.
    """
    files = [Path(path.strip()).expanduser() for path in paths.split(",")]
    if len(files) not in _SPLITS:
        raise errors.UserError(
            f"file:{paths} names {len(files)} files; allowed are TRAIN,VALIDATION,TEST or TRAIN,TEST or one"
        )
    return dict(zip(_SPLITS[len(files)], files, strict=True))


def in_folder(folder: Path) -> dict[str, Path]:
    """The file of each split in a folder.

    Raises:
        errors.UserError: the folder does not exist, two files are for one split, or none is for train.
    """
    if not folder.is_dir():
        raise errors.UserError(f"text folder {folder} does not exist")
    chosen: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        words = re.split(r"[^a-z]+", path.name.lower())
        splits = {_WORDS[word] for word in words if word in _WORDS}
        if not path.is_file() or path.name.startswith(".") or len(splits) != 1:
            continue
        split = splits.pop()
        if split in chosen:
            raise errors.UserError(
                f"text folder {folder} has two files for {split}, {chosen[split].name} and {path.name}; one "
                "is allowed"
            )
        chosen[split] = path
    if "train" not in chosen:
        raise errors.UserError(f"text folder {folder} has no file with the word train in its name")
    return chosen


def content(path: Path) -> bytes:
    """The content of a file.

    Raises:
        errors.UserError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"text file {path} cannot be read: {error.strerror}") from error


def tagged(
    files: dict[str, Path],
    *,
    token_column: str | None = None,
    tag_column: str | None = None,
    encoding: lines.Encoding = "utf-8",
) -> dict[str, TaggedSentences]:
    """Tagged sentences from the file of each split.

    Args:
        files: see `listed` and `in_folder`.
        token_column: name of the column of tokens, or its number from 0 in files of a line per token.
        tag_column: likewise of the tags; for CoNLL-U the field, upos when it is not given.
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: a file does not exist or is not as it must be; file and line are named.
    """

    def decode(path: Path) -> TaggedSentences:
        read, name, ending = content(path), str(path), path.suffix.lower()
        if ending == ".conllu":
            if token_column not in (None, "form"):
                raise errors.UserError(f"token_column {token_column!r}: in CoNLL-U it is form")
            return conllu.decode(read, name, field=tag_column or "upos", encoding=encoding)
        if ending in (".csv", ".jsonl"):
            return table.tagged(
                read, name, token_column=token_column, tag_column=tag_column, encoding=encoding
            )
        return columns.decode(
            read,
            name,
            token_column=_number("token_column", token_column or "0"),
            tag_column=_number("tag_column", tag_column or "-1"),
            encoding=encoding,
        )

    return {split: decode(path) for split, path in files.items()}


def labelled(
    files: dict[str, Path],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    how: tokenisation.Tokenisation | None = None,
    encoding: lines.Encoding = "utf-8",
) -> dict[str, LabelledTexts]:
    """Labelled texts from the file of each split.

    Args:
        files: see `listed` and `in_folder`.
        text_column: name of the column of texts; None is text or sentence.
        label_column: name of the column of labels; None is label.
        how: the tokenisation; None is "punctuation".
        encoding: see `data.readers.lines.numbered`.

    Raises:
        errors.UserError: a file does not exist or is not as it must be; file and line are named.
    """
    scheme = tokenisation.check(how or "punctuation")

    def decode(path: Path) -> LabelledTexts:
        texts, labels = table.labelled(
            content(path), str(path), text_column=text_column, label_column=label_column, encoding=encoding
        )
        return LabelledTexts([tokenisation.tokens(text, scheme) for text in texts], labels, scheme)

    return {split: decode(path) for split, path in files.items()}


def _number(option: str, column: str) -> int:
    try:
        return int(column)
    except ValueError:
        raise errors.UserError(
            f"{option} {column!r} is not allowed: in a file of a line per token, columns have numbers from 0"
        ) from None
