"""The typed argument string after a config's name: `configs/image.py:model=vit,smoke`."""

from typing import Any

from errors import UserError, unknown


def parse(text: str | None, **defaults: Any) -> dict[str, Any]:
    """Read `name=value,name,...` by the types of the defaults; a bare name sets a bool to True.

    Args:
        text: the argument string.
        **defaults: allowed names, each with its default, whose type its values take; those of None are words.

    Raises:
        UserError: on an unknown name, or a value of another type.
    """
    values = dict(defaults)
    for part in filter(None, (text or "").split(",")):
        name, equals, given = part.partition("=")
        if name not in defaults:
            raise unknown("config argument", name, defaults)
        kind = str if defaults[name] is None else type(defaults[name])
        try:
            if kind is bool:
                values[name] = {"": True, "true": True, "false": False}[given.lower()]
            elif not equals:
                raise ValueError
            else:
                values[name] = kind(given)
        except (ValueError, KeyError):
            raise UserError(f"config argument {part!r}: {name} needs a {kind.__name__}") from None
    return values
