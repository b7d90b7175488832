"""A config as a page to read: every field with what it is for and what it may be."""

import textwrap
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from spec import Registry

WIDTH = 110
LEFT = 34  # for a field and its value, at most


def shown(config: ConfigDict, root: Registry) -> str:
    """All fields of a config, block by block.

    Args:
        config: a whole one.
        root: the registry of whole configs.
    """
    return "\n".join(_block(config, root, "config", "")) + "\n"


def _block(block: Mapping[str, Any] | ConfigDict, part: Registry, path: str, purpose: str) -> list[str]:
    """The fields of a block, and after them the blocks in it."""
    word = part.chosen(block)
    does = (part[word].__doc__ or "").strip().partition("\n")[0]
    lines = textwrap.wrap(f"{path}: {purpose or does}", WIDTH)
    if part.key is not None:
        lines += _row(part.key, word, does if purpose else "", f"one of {', '.join(part)}")
    inner: list[str] = []
    for name, field in part.fields(word).items():
        value = block[name]
        if field.part is None or value is None:
            lines += _row(name, _value(value), field.comment, field.allowed)
        elif isinstance(value, list | tuple):
            for number, each in enumerate(value):
                inner += ["", *_block(each, field.part, f"{path}.{name}.{number}", field.comment)]
        else:
            inner += ["", *_block(value, field.part, f"{path}.{name}", field.comment)]
    return lines + inner


def _row(name: str, value: str, comment: str, allowed: str) -> list[str]:
    """A field, and beside it what it is for and what it may be."""
    field = f"    {name} = {value}"
    beside = textwrap.wrap(f"{comment} [{allowed}]".strip(), WIDTH - LEFT - 2, break_on_hyphens=False)
    if len(field) >= LEFT:
        return [field, *(f"{'':{LEFT}}# {line}" for line in beside)]
    first, *rest = beside
    return [f"{field:{LEFT}}# {first}", *(f"{'':{LEFT}}# {line}" for line in rest)]


def _value(value: Any) -> str:
    plain = isinstance(value, str) and value.isprintable() and value and " " not in value
    return value if plain else repr(value)
