"""The fields of a config block, checked against the arguments of what they make."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from errors import UserError, unknown

Made = TypeVar("Made")

TYPES = {int: "an integer", float: "a number", bool: "True or False", str: "a word"}


def construct(
    block: str, make: Callable[..., Made], fields: Mapping[str, Any], *, kind: str = "", **given: Any
) -> Made:
    """Make what a config block describes.

    Integers are from 1 on, or from 0 on where that is the default; rates of dropout lie in [0, 1).

    Args:
        block: where the fields stand, such as "config.model.head".
        make: a class or function.
        fields: its arguments, as the block gives them.
        kind: the word by which the block chose it, for messages.
        given: its arguments that are not for the block to give.

    Raises:
        UserError: a field that `make` does not have, one that is missing, a value of another type or out
            of range, or what `make` itself refuses by a ValueError.
    """
    parameters = {name: found for name, found in arguments(make).items() if name not in given}
    of = f" for kind {kind!r}" if kind else ""
    for name, value in fields.items():
        if name not in parameters:
            raise unknown(f"field of {block}{of}", name, parameters)
        _check(f"{block}.{name}", value, parameters[name])
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in fields:
            raise UserError(f"{block}.{name} is missing{of}")
    try:
        return make(**fields, **given)
    except ValueError as error:
        raise UserError(f"{block}: {error}") from None


def arguments(make: Callable) -> dict[str, inspect.Parameter]:
    """The arguments of a function, or those that a class is made with.

    (The signature of a Flax module itself is that of its metaclass, and says nothing.)
    """
    if not isinstance(make, type):
        return dict(inspect.signature(make).parameters)
    _, *rest = inspect.signature(make.__dict__["__init__"]).parameters.items()  # without self
    return dict(rest)


def _check(where: str, value: Any, parameter: inspect.Parameter) -> None:
    annotation = parameter.annotation
    if annotation in TYPES:
        allowed = (int, float) if annotation is float else annotation
        if not isinstance(value, allowed) or (isinstance(value, bool) and annotation is not bool):
            raise UserError(f"{where} is {value!r}; it must be {TYPES[annotation]}")
    least = 0 if parameter.default == 0 else 1
    if annotation is int and value < least:
        raise UserError(f"{where} is {value}; it must be at least {least}")
    if parameter.name.endswith("dropout_rate") and value is not None and not 0 <= value < 1:
        raise UserError(f"{where} is {value}; it must be in [0, 1)")
