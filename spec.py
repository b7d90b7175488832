"""Config blocks: a block holds every argument of the call it stands for.

    spec(TransformerEncoder, num_layers=2, attention=spec(Banded, window=(15, 15)))

is a `ConfigDict` with every argument of `TransformerEncoder` and its default, nested blocks included; `kind`
is the word for it in the registry that it is a row of. `Registry.build` makes the call. What a field may
hold is read off the signature, what it is for off the docstring, so neither is written twice:

    num_layers: int                             at least 1; `Natural` is from 0 on
    dropout_rate: Rate                          in [0, 1)
    norm: Literal["pre", "post"]                one of these
    clip_norm: float | None                     or nothing
    window: tuple[int, int]                     two integers
    attention: Annotated[Block, MECHANISMS]     a block of that registry
    hidden_dim: Annotated[int, derived(lambda dim: 4 * dim)]

A derived number is computed from the fields beside and around it when a config is made, stands there as the
number, and follows them when they are overridden, unless it was set to another.
"""

import ast
import dataclasses
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from ml_collections import ConfigDict

from errors import UserError, unknown

Block = Mapping[str, Any]
REQUIRED = inspect.Parameter.empty  # the default of a field that has none


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers a field may hold: from `least` on, below or up to `most`.

    Attributes:
        least: the smallest one.
        most: the largest one, or the first too large.
        open: which ends are left out: "", "least", "most" or "both".
    """

    least: float
    most: float = math.inf
    open: str = ""

    def __contains__(self, value: float) -> bool:
        above = value > self.least if self.open in ("least", "both") else value >= self.least
        below = value < self.most if self.open in ("most", "both") or self.most == math.inf else True
        return above and below and value <= self.most

    def __str__(self) -> str:
        left, right = "(["[self.open not in ("least", "both")], ")]"[self.open not in ("most", "both")]
        if self.most == math.inf:
            return f"{'above' if self.open == 'least' else 'at least'} {self.least:g}"
        return f"in {left}{self.least:g}, {self.most:g}{right}"


Natural = Annotated[int, Range(0)]
Rate = Annotated[float, Range(0, 1, "most")]  # of dropout
Share = Annotated[float, Range(0, 1, "both")]  # of a set that is parted
Fraction = Annotated[float, Range(0, 1)]
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, open="least")]


@dataclasses.dataclass(frozen=True)
class Derived:
    """How a number follows from others, named as the arguments of `function`."""

    function: Callable[..., Any]

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """What it follows from."""
        return tuple(inspect.signature(self.function).parameters)

    def value(self, around: Iterable[Mapping[str, Any]]) -> Any:
        """Computed from the innermost of the blocks around that has each name; `REQUIRED` if none has."""
        blocks = list(around)
        values = [next((block[name] for block in blocks if name in block), REQUIRED) for name in self.names]
        return REQUIRED if REQUIRED in values else self.function(*values)


def derived(function: Callable[..., Any]) -> Derived:
    """The mark of a number that follows from others; see the top of this file."""
    return Derived(function)


@dataclasses.dataclass(frozen=True)
class Field:
    """An argument as a config field.

    Attributes:
        name: of the argument.
        type: of its values: int, float, bool, str, a `Literal`, or a tuple of these.
        optional: whether it may be None.
        default: its default, `REQUIRED` if it has none.
        comment: what its docstring says of it, in one line.
        range: the numbers it may hold.
        derived: how it follows from others, where it does.
        part: what its block may be, of a nested block.
        is_list: whether it may be several such blocks.
    """

    name: str
    type: Any
    optional: bool
    default: Any
    comment: str
    range: Range | None = None
    derived: Derived | None = None
    part: "Registry | None" = None
    is_list: bool = False

    @property
    def allowed(self) -> str:
        """What it may hold, in words."""
        if self.part is not None:
            return "one of " + ", ".join(self.part) if self.part.key else "a block"
        words = _described(self.type, self.range)
        return f"{words}, or None" if self.optional else words

    def check(self, where: str, value: Any) -> Any:
        """The value, a list as a tuple and a whole number as a float where one is meant.

        Raises:
            UserError: it is not allowed.
        """
        if value is None and self.optional:
            return None
        found = _fits(value, self.type, self.range)
        if found is _WRONG:
            raise UserError(f"{where} is {value!r}; it must be {self.allowed}")
        return found

    def parse(self, where: str, text: str) -> Any:
        """The value that a command line means.

        Raises:
            UserError: it is not allowed.
        """
        value: Any = text
        if text in ("None", "none", "null") and self.optional:
            return None
        words = get_args(self.type) if get_origin(self.type) is Literal else ()
        if self.type is bool:
            value = {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        elif self.type is not str and text not in words:
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                try:
                    value = float(text)  # inf, 1e-3
                except ValueError:
                    value = text
        return self.check(where, value)


_WRONG = object()
_IN_TUPLES = Range(0)  # what each number of a tuple may be
_WORDS = {int: "an integer", float: "a number", bool: "True or False", str: "a word"}


def _described(kind: Any, limits: Range | None) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return f"a tuple, each of it {_described(inner[0], _IN_TUPLES)}"
        return "(" + ", ".join(_described(each, _IN_TUPLES) for each in inner) + ")"
    if kind is int:
        return f"an integer, {limits or Range(1)}"
    return _WORDS[kind] + (f", {limits}" if limits else "")


def _fits(value: Any, kind: Any, limits: Range | None) -> Any:
    """The value as that type, or `_WRONG`."""
    if get_origin(kind) is Literal:
        same = [each for each in get_args(kind) if each == value and type(each) is type(value)]
        return same[0] if same else _WRONG
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if not isinstance(value, list | tuple):
            return _WRONG
        if inner[-1] is Ellipsis:
            inner = (inner[0],) * len(value)
        if len(inner) != len(value):
            return _WRONG
        each = tuple(_fits(one, of, _IN_TUPLES) for one, of in zip(value, inner, strict=True))
        return _WRONG if _WRONG in each else each
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        return _WRONG
    if kind is int and value not in (limits or Range(1)):
        return _WRONG
    if kind is float and (not math.isfinite(value) or (limits is not None and value not in limits)):
        return _WRONG
    return value


class Registry(Mapping[str, Any]):
    """What a config can name of one kind of part: a table of words and constructors.

    Args:
        what: the part, for messages, such as "encoder".
        rows: constructors by word.
        given: arguments that are not for a config to give, such as the width that all parts share.
        key: the field of a block that holds the word; None where there is one row, and no word is needed.
        aliases: other words for rows.
    """

    def __init__(
        self,
        what: str,
        rows: Mapping[str, Any],
        *,
        given: Sequence[str] = (),
        key: str | None = "kind",
        aliases: Mapping[str, str] | None = None,
    ):
        self.what, self.rows, self.given, self.key = what, dict(rows), tuple(given), key
        self.aliases = dict(aliases or {})
        self.scope: dict[str, Derived] = {}
        for word, make in self.rows.items():
            _ROWS.setdefault(make, (self, word))

    __eq__, __hash__ = object.__eq__, object.__hash__  # each is itself alone; a mapping has no hash

    def __getitem__(self, word: str) -> Any:
        return self.rows[self.word(word)]

    def __contains__(self, word: object) -> bool:
        return word in self.rows or word in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def word(self, word: Any, where: str = "") -> str:
        """The word of a row, aliases resolved; raises UserError if there is none."""
        word = self.aliases.get(word, word)
        if word not in self.rows:
            raise unknown(
                f"{self.what}{f' in {where}' if where else ''}", str(word), (*self.rows, *self.aliases)
            )
        return word

    def where(self, allows: Callable[[Any], bool], why: str, **scope: Callable[..., Any]) -> "Registry":
        """The rows that can be used somewhere.

        Args:
            allows: tells by the constructor whether it can.
            why: what they are, for messages.
            scope: numbers that derived ones may follow from there, though no block around has them, each with
                the function that it follows by itself.
        """
        rows = {word: make for word, make in self.rows.items() if allows(make)}
        part = Registry(self.what, rows, given=self.given, key=self.key)
        part.aliases = {alias: word for alias, word in self.aliases.items() if word in rows}
        part.what = f"{self.what} {why}" if why else self.what
        part.scope = {name: Derived(function) for name, function in scope.items()}
        return part

    def inside(self, around: Sequence[Block]) -> tuple[Block, ...]:
        """What derived numbers of a block of this registry follow from, besides the block itself."""
        return (_there({name: follows.value(around) for name, follows in self.scope.items()}), *around)

    def fields(self, word: str) -> dict[str, Field]:
        """The arguments of a row that are for a config to give."""
        return {name: field for name, field in fields(self.rows[word]).items() if name not in self.given}

    def chosen(self, block: Block | str, where: str = "") -> str:
        """The word of a block; raises UserError if it has none of a row."""
        if self.key is None:
            return next(iter(self.rows))
        fields = self.as_block(block)
        if self.key not in fields:
            raise UserError(f"{where or self.what}: {self.key} is missing; allowed: {', '.join(self)}")
        return self.word(fields[self.key], where)

    def as_block(self, value: Any) -> Any:
        """A word alone as the block that it stands for; anything else as it is."""
        return {self.key: value} if isinstance(value, str) and self.key else value

    def block(self, word: str | None = None, **changes: Any) -> ConfigDict:
        """A block with every argument of a row; see `spec`."""
        word = self.word(next(iter(self.rows)) if word is None else word)
        return complete(self, {**({self.key: word} if self.key else {}), **changes})

    def build(self, block: Block | str, where: str = "config", **given: Any) -> Any:
        """Make the call that a block stands for.

        Args:
            block: the arguments; those left out are at their defaults. A word alone is a block of these.
            where: where the block stands, for messages.
            given: the arguments that are not for it to give, of which a row gets those it takes.

        Raises:
            UserError: a field that the row does not have, one that is missing, a value that is not allowed,
                or what the call itself refuses by a ValueError.
        """
        word = self.chosen(block, where)
        whole = complete(self, self.as_block(block), where, around=(given,), final=True)
        arguments = {name: value for name, value in whole.items() if name != self.key}
        make = self.rows[word]
        taken = fields(make)
        try:
            return make(**arguments, **{name: value for name, value in given.items() if name in taken})
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error


_ROWS: dict[Callable[..., Any], tuple[Registry, str]] = {}


def call(make: Callable[..., Any], *, given: Sequence[str] = ()) -> Registry:
    """The registry of a part that is always made by the same call, so that its block needs no word."""
    return Registry(make.__name__, {make.__name__: make}, given=given, key=None)


def nothing(**given: Any) -> None:
    """No such part; the row of the word "none"."""


def spec(make: Callable[..., Any], **changes: Any) -> ConfigDict:
    """The block of a call: every argument, at its default but for the changes.

    Args:
        make: a row of a registry.
        changes: arguments with other values.

    Raises:
        UserError: it has no such argument, or the value is not allowed.
    """
    registry, word = _ROWS[make]
    return registry.block(word, **changes)


def row_of(make: Callable[..., Any]) -> tuple[Registry, str]:
    """The registry that a constructor is a row of, and its word there."""
    return _ROWS[make]


@functools.cache
def fields(make: Callable[..., Any]) -> dict[str, Field]:
    """The arguments of a function, or those that a class is made with, as fields."""
    function = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
    if isinstance(make, type) and "__init__" not in vars(make):
        function = next(vars(base)["__init__"] for base in make.__mro__ if "__init__" in vars(base))
    hints = typing.get_type_hints(function, include_extras=True)
    comments = _comments(make)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        found[name] = _field(name, hints.get(name, Any), parameter.default, comments.get(name, ""))
    return found


def _field(name: str, hint: Any, default: Any, comment: str) -> Field:
    marks: list[Any] = []
    optional = is_list = False
    while get_origin(hint) is Annotated or get_origin(hint) in (typing.Union, types.UnionType):
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            marks += more
        else:
            kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
            optional = optional or len(kinds) < len(get_args(hint))
            is_list = is_list or any(get_origin(kind) is tuple for kind in kinds[1:])
            hint = kinds[0]  # a block may also be a word, or several blocks
    number = next((mark for mark in marks if isinstance(mark, Derived)), None)
    limits = next((mark for mark in marks if isinstance(mark, Range)), None)
    if hint is int and limits is None and default == 0 and default is not False:
        limits = Range(0)
    return Field(
        name,
        hint,
        optional and number is None,  # None stands there for the number
        default,
        comment,
        range=limits,
        derived=number,
        part=next((mark for mark in marks if isinstance(mark, Registry)), None),
        is_list=is_list,
    )


def _comments(make: Callable[..., Any]) -> dict[str, str]:
    """What the Args (or the Attributes, of a dataclass) of a docstring say of each name, in one line."""
    found: dict[str, str] = {}
    for cls in reversed(make.__mro__) if isinstance(make, type) else [make]:
        text = inspect.cleandoc(cls.__doc__ or "")
        for section in re.findall(r"^(?:Args|Attributes):\n((?:(?: +.*)?\n?)+)", text, re.MULTILINE):
            for entry in re.split(r"\n(?=    \S)", section.rstrip()):
                names, colon, said = entry.strip().partition(":")
                if colon:
                    found |= dict.fromkeys(re.split(r",\s*", names), " ".join(said.split()))
    return found


def complete(
    part: Registry, block: Block, where: str = "", *, around: Sequence[Block] = (), final: bool = False
) -> ConfigDict:
    """A block with every field of its row, checked.

    Args:
        part: what it may be.
        block: what is given; a nested block may be a word alone.
        where: where it stands, for messages.
        around: the blocks it stands in, the innermost first, from which derived numbers follow.
        final: whether to refuse a field that has no value; else it is left for a block around to tell.

    Raises:
        UserError: an unknown word or field, a value that is not allowed, or one that is missing.
    """
    around = part.inside(around)
    word = part.chosen(block, where or part.what)
    where = where or (word if part.key else part.what)
    known = part.fields(word)
    for name in block:
        if name not in known and name != part.key:
            raise misplaced(part, word, name, where)
    whole: dict[str, Any] = {part.key: word} if part.key else {}
    later: list[Field] = []
    for name, field in known.items():
        value = block.get(name, field.default)
        if field.part is not None:
            later.append(field)
            whole[name] = value  # so that the order is that of the signature
        elif value is REQUIRED or (value is None and field.derived is not None):
            whole[name] = REQUIRED
        else:
            whole[name] = field.check(f"{where}.{name}", value)
    blocks = {field.name for field in later}

    def derive(follows: Callable[[Derived], bool]) -> None:
        for name, field in known.items():
            if whole.get(name) is REQUIRED and field.derived and follows(field.derived):
                value = field.derived.value((_there(whole), *around))
                whole[name] = value if value is REQUIRED else field.check(f"{where}.{name}", value)

    derive(lambda number: not blocks & set(number.names))
    for field in later:
        outer = (_there(whole), *around)
        whole[field.name] = _nested(field, whole[field.name], f"{where}.{field.name}", outer, final)
    derive(lambda number: bool(blocks & set(number.names)))
    missing = next((name for name, value in whole.items() if value is REQUIRED), None)
    if final and missing:
        raise UserError(f"{where}.{missing} is missing; it must be {known[missing].allowed}")
    made = ConfigDict(type_safe=False, sort_keys=False)
    for name, value in _there(whole).items():
        made[name] = value
    return made.lock()


def _there(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not REQUIRED}


def _nested(field: Field, value: Any, where: str, around: Sequence[Block], final: bool) -> Any:
    part = typing.cast(Registry, field.part)
    if value is None and field.optional:
        return None
    if value is REQUIRED:
        if not part.key:
            value = {}
        elif final:
            raise UserError(f"{where} is missing; it must be {field.allowed}")
        else:
            return REQUIRED
    value = part.as_block(value)
    if field.is_list and isinstance(value, list | tuple):
        return tuple(
            complete(part, part.as_block(each), f"{where}.{number}", around=around, final=final)
            for number, each in enumerate(value)
        )
    if not isinstance(value, Mapping | ConfigDict):
        raise UserError(f"{where} is {value!r}; it must be {field.allowed}")
    return complete(part, value, where, around=around, final=final)


def misplaced(part: Registry, word: str, name: str, where: str) -> UserError:
    """The error for a field that the row `word` does not have."""
    known = part.fields(word)
    if part.key is None:
        return unknown(f"field of {where}", name, known)
    having = [other for other in part if name in part.fields(other)]
    of = f"{where} with {part.key} {word!r}"
    if not having:
        return unknown(f"field of {of}", name, known)
    return UserError(
        f"{of} has no field {name!r}, which is of {', '.join(having)}; it has {', '.join(known) or 'none'}"
    )
