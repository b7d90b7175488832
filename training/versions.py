"""What older versions of this code meant by the `config.json` that they wrote.

A config has the number of the version that wrote it, 1 where it has none. What a version added or changed is
said here once: with the value of each new field that does what was done before there was the field.
"""

from collections.abc import Mapping
from typing import Any

from training import version_1

Fields = dict[str, Any]

NEWEST = 2

# Fields that came later, or whose default changed: the path, the version since which it is so, and the value
# before. (Version 1 left out what was at its default.)
SINCE: tuple[tuple[str, int, Any], ...] = (
    ("patience", 2, None),
    ("final", 2, "best"),
    ("optimizer.accumulation", 2, 1),
)


def updated(fields: Mapping[str, Any]) -> Fields:
    """The fields of an older config as this version has them.

    Raises:
        ValueError: the config is of a version that this code does not know.
    """
    fields = dict(fields)
    version = fields.pop("version", 1)
    if not isinstance(version, int) or not 1 <= version <= NEWEST:
        raise ValueError(f"it is of version {version!r}; this code knows versions 1 to {NEWEST}")
    if version == 1:
        fields = version_1.updated(fields)
    for path, since, value in SINCE:
        if version < since:
            _put(fields, path, value)
    return fields


def _put(fields: Fields, path: str, value: Any) -> None:
    *outer, name = path.split(".")
    for block in outer:
        if block not in fields:
            return
        fields = fields[block]
    fields.setdefault(name, value)
