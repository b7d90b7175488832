"""Configs as the command line gives them and as a run keeps them.

All functions take the `root`, the registry of whole configs: what the fields of a config are follows from it
(see `spec`).
"""

import ast
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

import spec
from errors import UserError, unknown
from spec import Field, Registry
from training import versions

FILE = "config.json"
HERE = "configs"  # where config files are


def parse(
    argv: Sequence[str], names: Sequence[str], root: Registry
) -> tuple[ConfigDict | None, dict[str, str]]:
    """Read `--config=FILE[:ARGUMENT]`, overrides `--config.a.b=VALUE` and the flags `names`.

    Args:
        argv: the command line, program name first.
        names: flags besides the config, such as "workdir"; one that ends in "?" is given without a value.
        root: see above.

    Returns:
        The config with its overrides (None if none was given) and the values of the flags given.

    Raises:
        UserError: on anything wrong, in one line.
    """
    plain = {name for name in names if not name.endswith("?")}
    switches = {name.removesuffix("?") for name in names} - plain
    flags: dict[str, str] = {}
    overrides: dict[str, str] = {}
    left = list(argv[1:])
    while left:
        given = left.pop(0)
        flag, equals, value = given.partition("=")
        name = flag.lstrip("-")
        if not given.startswith("-"):
            raise UserError(f"{given!r} is not a flag; flags start with --")
        if name in switches and not equals:
            flags[name] = ""
            continue
        if name not in plain | {"config"} and not name.startswith("config."):
            raise unknown("flag", f"--{name}", [f"--{each}" for each in ("config", *plain, *switches)])
        if not equals and (not left or left[0].startswith("--")):
            raise UserError(f"--{name} needs a value: --{name}=VALUE")
        value = value if equals else left.pop(0)
        if name.startswith("config."):
            overrides[name.removeprefix("config.")] = value
        else:
            flags[name] = value
    chosen = flags.pop("config", None)
    if chosen is None:
        if overrides:
            raise UserError(
                f"--config.{next(iter(overrides))} overrides a field of a config, but no --config was given"
            )
        return None, flags
    return override(from_file(chosen, root), overrides, root), flags


def files() -> list[Path]:
    """The config files."""
    return sorted(filter(_is_config, Path(HERE).glob("*.py")))


def _is_config(path: Path) -> bool:
    return path.suffix == ".py" and path.is_file() and "def get_config" in path.read_text()


def from_file(chosen: str, root: Registry) -> ConfigDict:
    """The config of `FILE[:ARGUMENT]`.

    Raises:
        UserError: there is no such file, or it can't be loaded.
    """
    name, _, argument = chosen.partition(":")
    path = Path(name)
    if not _is_config(path):
        raise unknown("config file", name, map(str, files()))
    place = importlib.util.spec_from_file_location(f"config_file_{path.stem}", path)
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    try:
        place.loader.exec_module(module)
    except (SyntaxError, ImportError) as error:
        raise UserError(f"the config of {name!r} can't be loaded: {str(error).splitlines()[0]}") from None
    return check(module.get_config(argument or None), root)


def check(config: ConfigDict, root: Registry) -> ConfigDict:
    """The config, whole: every field there, each with a value that is allowed.

    Raises:
        UserError: if not.
    """
    return spec.complete(root, config, "config", final=True)


def override(
    config: ConfigDict, changes: Mapping[str, Any], root: Registry, *, parsed: bool = False
) -> ConfigDict:
    """The config with other values in some fields.

    Choosing another kind of a block, by `a.kind=word` or by `a=word`, refills the block with the arguments of
    that kind; the kind that it has changes nothing. A number that follows from others follows them, unless it
    was set to another.

    Args:
        config: a whole one.
        changes: values by dotted path, in which a number stands for one of several blocks.
        root: see above.
        parsed: whether values are what they are, and not texts of a command line.

    Raises:
        UserError: there is no such field, or the value is not allowed.
    """
    fields = _plain(config)
    values: dict[str, Any] = {}
    # Blocks before those within, and a kind before the fields that come with it, however they are given.
    for path in sorted(changes, key=lambda path: (path.count("."), not path.endswith(".kind"))):
        value = changes[path]
        *outer, name = path.split(".")
        block, part, where = _block(fields, root, outer, path)
        known = part.fields(part.chosen(block, where))
        if name == part.key:
            if part is root:
                raise UserError(f"config.{name} is what the config file is for; choose another file")
            if part.word(value, where) == part.chosen(block, where):
                continue
            new = part.block(part.word(value, where)).to_dict()
            block.clear()
            block.update(new)
        elif name in known and known[name].part is not None:
            _choose(block, known[name], f"{where}.{name}", value)
        else:
            values[path] = value
    followers = {
        (id(block), field.name)
        for block, around, field in _derived(fields, root)
        if field.derived and block.get(field.name) == field.derived.value((block, *around))
    }
    for path, value in values.items():
        *outer, name = path.split(".")
        block, part, where = _block(fields, root, outer, path)
        word = part.chosen(block, where)
        known = part.fields(word)
        if name not in known:
            if not outer:
                raise unknown("config field", path, paths(config, root))
            raise _misplaced(part, word, path, where, ConfigDict(fields), root)
        field = known[name]
        block[name] = (
            field.check(f"{where}.{name}", value) if parsed else field.parse(f"{where}.{name}", value)
        )
        followers.discard((id(block), name))
    for block, _, field in _derived(fields, root):
        if (id(block), field.name) in followers:
            block.pop(field.name, None)
    return check(ConfigDict(_tuples(fields)), root)


def _misplaced(
    part: Registry, word: str, path: str, where: str, config: ConfigDict, root: Registry
) -> UserError:
    name = path.rpartition(".")[2]
    elsewhere = [each for each in paths(config, root) if each.rpartition(".")[2] == name]
    error = spec.misplaced(part, word, name, where)
    return UserError(f"{error}; config.{elsewhere[0]} is a field") if elsewhere else error


def _block(
    fields: dict[str, Any], root: Registry, outer: Sequence[str], path: str
) -> tuple[dict[str, Any], Registry, str]:
    """The block that a path ends in, what it may be, and where it stands."""
    block, part, where = fields, root, "config"
    found: Any = None
    for name in outer:
        if isinstance(found, list | tuple):
            if not name.isdigit() or int(name) >= len(found):
                raise UserError(
                    f"{where} has {len(found)} blocks; {name!r} is not the number of one, from 0 on"
                )
            block, found, where = found[int(name)], None, f"{where}.{name}"
            continue
        field = part.fields(part.chosen(block, where)).get(name)
        if field is None or field.part is None:
            raise unknown("config field", path, paths(ConfigDict(_tuples(fields)), root))
        part, where, value = field.part, f"{where}.{name}", block[name]
        if isinstance(value, list | tuple):
            found = value
        else:
            block = value
    if isinstance(found, list | tuple):
        raise UserError(f"{where} has {len(found)} blocks; name one by its number, such as {where}.0")
    return block, part, where


def _choose(block: dict[str, Any], field: Field, where: str, value: Any) -> None:
    """Put another block in a field: by a word, several words with + between, or a block."""
    part = field.part
    assert part is not None
    if isinstance(value, str) and part.key is None:
        example = next(iter(part.fields(next(iter(part)))))
        raise UserError(f"{where} is a block of fields; override one at a time: --{where}.{example}=VALUE")
    if isinstance(value, str) and field.is_list and "+" in value:
        block[field.name] = tuple(part.block(part.word(word, where)).to_dict() for word in value.split("+"))
    elif isinstance(value, str):
        there = block.get(field.name)
        if not isinstance(there, dict) or part.word(value, where) != part.chosen(there, where):
            block[field.name] = part.block(part.word(value, where)).to_dict()
    else:
        block[field.name] = _plain(value)


def _derived(
    block: dict[str, Any], part: Registry, around: Sequence[Mapping[str, Any]] = ()
) -> Iterator[tuple[dict[str, Any], Sequence[Mapping[str, Any]], Field]]:
    """Every number of a config that follows from others, with its block and the blocks around."""
    around = part.inside(around)
    for name, field in part.fields(part.chosen(block)).items():
        value = block.get(name)
        if field.part is None:
            if field.derived:
                yield block, around, field
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, dict):
                yield from _derived(each, field.part, (block, *around))


def walk(
    config: ConfigDict | Mapping, part: Registry, prefix: str = ""
) -> Iterator[tuple[str, Any, Field | None, Registry]]:
    """Every field of a config in order: its path, value, description (None for a kind), and registry."""
    if part.key is not None:
        yield prefix + part.key, config[part.key], None, part
    for name, field in part.fields(part.chosen(config)).items():
        value = config.get(name)  # a number that is still to be derived is not there
        if field.part is None or value is None:
            yield prefix + name, value, field, part
        elif isinstance(value, list | tuple):
            for number, each in enumerate(value):
                yield from walk(each, field.part, f"{prefix}{name}.{number}.")
        else:
            yield from walk(value, field.part, f"{prefix}{name}.")


def paths(config: ConfigDict, root: Registry) -> list[str]:
    """The path of every field."""
    return [path for path, *_ in walk(config, root)]


def difference(old: ConfigDict, new: ConfigDict) -> str | None:
    """The first field in which two configs differ, with both values, or None."""
    one, two = _flat(old.to_dict()), _flat(new.to_dict())
    for name in sorted(one.keys() | two.keys()):
        if one.get(name) != two.get(name):
            return f"{name} was {one.get(name)!r}, is now {two.get(name)!r}"
    return None


def _flat(block: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(block, ConfigDict):
        block = block.to_dict()
    flat: dict[str, Any] = {}
    for name, value in block.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple) and any(isinstance(each, dict | ConfigDict) for each in value):
            for number, each in enumerate(value):
                flat |= _flat(each, f"{prefix}{name}.{number}.")
        else:
            flat[prefix + name] = tuple(value) if isinstance(value, list) else value
    return flat


def save(config: ConfigDict, workdir: Path) -> None:
    """Write `config.json` into a run's folder."""
    part = workdir / (FILE + ".part")
    part.write_text(json.dumps({"version": versions.NEWEST, **_plain(config)}, indent=2) + "\n")
    part.rename(workdir / FILE)


def load(workdir: Path, root: Registry) -> ConfigDict:
    """Read a run's `config.json`, as data: nothing in the folder is executed.

    Raises:
        UserError: if the folder holds no run, or the file is not a config.
    """
    path = workdir / FILE
    try:
        return from_json(path.read_text(), root)
    except FileNotFoundError:
        raise UserError(f"{workdir} holds no run: there is no {FILE} in it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a config: {error}") from None


def from_json(text: str, root: Registry) -> ConfigDict:
    """The config of a JSON text, of this version or an older one.

    A field that it lacks has no value, whatever the default is today: what an older version did is said in
    `training.versions`.

    Raises:
        ValueError: it is not an object.
        UserError: it is not a config.
    """
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    whole = "version" in fields  # before there were versions, what was at its default was left out
    try:
        fields = _tuples(versions.updated(fields))
    except KeyError as error:
        raise ValueError(f"{error} is missing or unknown") from None
    config = check(ConfigDict(fields), root)
    missing = set(_flat(config)) - set(_flat(fields))
    if whole and missing:
        raise ValueError(f"{', '.join(sorted(missing))} is missing")
    return config


def _plain(value: Any) -> Any:
    """Blocks as dictionaries, however deep."""
    if isinstance(value, ConfigDict | Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _tuples(value: Any) -> Any:
    """JSON has no tuples; configs have no lists."""
    if isinstance(value, dict):
        return {name: _tuples(inner) for name, inner in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def help_page() -> str:
    """The config files, each with its purpose."""
    lines = {path: _purpose(path) for path in files()}
    width = max(len(str(path)) for path in lines)
    return "\n".join(f"  {path!s:{width}}  {purpose}" for path, purpose in lines.items())


def _purpose(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
