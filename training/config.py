"""Configs as the command line gives them and as a run keeps them."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from errors import UserError, unknown

FILE = "config.json"


def parse(argv: Sequence[str], names: Sequence[str]) -> tuple[ConfigDict | None, dict[str, str]]:
    """Read `--config=FILE[:ARGUMENT]`, overrides `--config.a.b=VALUE` and the string flags `names`.

    Args:
        argv: the command line, program name first.
        names: flags besides the config, such as "workdir".

    Returns:
        The config with its overrides (None if none was given) and the values of the flags given.

    Raises:
        UserError: on anything wrong, in one line.
    """
    overrides = [a for a in argv[1:] if a.lstrip("-").startswith("config.")]
    plain = [a for a in argv[1:] if a not in overrides]
    for given, following in itertools.pairwise([*plain, ""]):
        flag, equals, value = given.partition("=")
        path = (value if equals else following).split(":")[0]
        if flag.lstrip("-") == "config" and not _is_config(Path(path)):
            raise unknown("config file", path, map(str, filter(_is_config, Path("configs").glob("*.py"))))
    config, chosen = _absl(argv[:1], plain, names)
    if config is None:
        if overrides:
            raise UserError(f"{overrides[0]} overrides a field of a config, but no --config was given")
        return None, chosen
    fields = _flat(config)
    for override in overrides:
        name = override.lstrip("-").removeprefix("config.").split("=")[0]
        inner = [field for field in fields if field.startswith(name + ".")]
        if inner:
            raise UserError(
                f"--config.{name} is a block of fields; override one at a time, such as "
                f"--config.{inner[0]}=VALUE"
            )
        if name not in fields:
            raise unknown("config field", name, fields)
    return _absl(argv[:1], [*plain, *overrides], names)


def _is_config(path: Path) -> bool:
    return path.suffix == ".py" and path.is_file() and "def get_config" in path.read_text()


def _absl(
    program: Sequence[str], arguments: Sequence[str], names: Sequence[str]
) -> tuple[ConfigDict | None, dict[str, str]]:
    values = flags.FlagValues()
    holder = config_flags.DEFINE_config_file("config", flag_values=values, sys_argv=[*program, *arguments])
    for name in names:
        flags.DEFINE_string(name, None, "", flag_values=values)
    try:
        rest = values([*program, *arguments])
        config = holder.value
    except UserError:
        raise
    except flags.UnrecognizedFlagError as error:
        raise unknown("flag", f"--{error.flagname}", [f"--{n}" for n in ("config", *names)]) from None
    except flags.Error as error:
        raise UserError(str(error)) from None
    except (SyntaxError, ImportError) as error:
        given = " ".join(a for a in arguments if "config." not in a)
        raise UserError(f"the config of {given!r} can't be loaded: {str(error).splitlines()[0]}") from None
    if len(rest) > 1:
        raise UserError(f"{rest[1]!r} is not a flag; flags start with --")
    chosen = {name: str(values[name].value) for name in names if values[name].value is not None}
    return config, chosen


def difference(old: ConfigDict, new: ConfigDict) -> str | None:
    """The first field in which two configs differ, with both values, or None."""
    one, two = _flat(old), _flat(new)
    for name in sorted(one.keys() | two.keys()):
        if one.get(name) != two.get(name):
            return f"{name} was {one.get(name)!r}, is now {two.get(name)!r}"
    return None


def _flat(config: ConfigDict, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, ConfigDict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = tuple(value) if isinstance(value, list) else value
    return flat


def save(config: ConfigDict, workdir: Path) -> None:
    """Write `config.json` into a run's folder."""
    part = workdir / (FILE + ".part")
    part.write_text(json.dumps(config.to_dict(), indent=2) + "\n")
    part.rename(workdir / FILE)


def load(workdir: Path) -> ConfigDict:
    """Read a run's `config.json`, as data: nothing in the folder is executed.

    Raises:
        UserError: if the folder holds no run, or the file is not a config.
    """
    path = workdir / FILE
    try:
        return from_json(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{workdir} holds no run: there is no {FILE} in it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a config: {error}") from None


def from_json(text: str) -> ConfigDict:
    """The config of a JSON text; ValueError if it is not an object."""
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    return ConfigDict(_tuples(fields))


def _tuples(value: Any) -> Any:
    """JSON has no tuples; configs have no lists."""
    if isinstance(value, dict):
        return {name: _tuples(inner) for name, inner in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
