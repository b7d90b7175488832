"""A config as a page to read: every field with what it is for and what it may be."""

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from spec import Field, Registry

WIDTH = 110


def shown(config: ConfigDict, root: Registry) -> str:
    """All fields of a config, block by block.

    Args:
        config: a whole one.
        root: the registry of whole configs.
    """
    return "\n".join(_block(config, root, "config")) + "\n"


def _block(block: Mapping[str, Any] | ConfigDict, part: Registry, path: str) -> list[str]:
    """The fields of a block, and after them the blocks in it."""
    word = part.chosen(block)
    lines = [f"{path}: {_first_line(part[word])}"]
    rows = [(part.key, word, f"which {part.what}", _words(part))] if part.key else []
    inner: list[str] = []
    for name, field in part.fields(word).items():
        value = block[name]
        if field.part is None or value is None:
            rows.append((name, _value(value), field.comment, field.allowed))
            continue
        several = value if isinstance(value, list | tuple) else [value]
        for number, each in enumerate(several):
            place = f"{path}.{name}.{number}" if len(several) > 1 else f"{path}.{name}"
            inner += ["", *_block(each, field.part, place)]
            if field.comment:
                inner[len(inner) - len(_block(each, field.part, place))] += f"  ({field.comment})"
    left = max((len(f"{name} = {value}") for name, value, *_ in rows), default=0)
    left = min(left, 40)
    for name, value, comment, allowed in rows:
        lines += _row(f"{name} = {value}", f"{comment} [{allowed}]" if comment else f"[{allowed}]", left)
    return lines + inner


def _row(text: str, comment: str, left: int) -> list[str]:
    indent = " " * (left + 8)
    wrapped = textwrap.wrap(comment, WIDTH - len(indent), break_on_hyphens=False)
    if len(text) > left:
        return [f"    {text}", *(f"{indent}{line}" for line in wrapped)]
    return [f"    {text:{left}}  # {wrapped[0]}", *(f"{indent}{line}" for line in wrapped[1:])]


def _words(part: Registry) -> str:
    return "one of " + ", ".join(part)


def _value(value: Any) -> str:
    return repr(value) if not isinstance(value, str) or not value or " " in value else value


def _first_line(make: Callable) -> str:
    return (make.__doc__ or "").strip().partition("\n")[0]


_ = Field
