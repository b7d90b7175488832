"""Every field of every block of every config: it says what it is, and what is set arrives where it is used.

A block is visited where a config has one of its kind, and so is every other kind that could stand there
instead. All of its fields are set to another value as on the command line; then task, data, model, optimiser
and loop are made, and the very calls that make them are looked at. What a constructor does with its
arguments, tests/models tells, and of the others the last tests here.
"""

import ast
import contextlib
import dataclasses
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from unittest.mock import MagicMock

import pytest
from flax import nnx

import spec
import tasks
from configs import EXPERIMENT, loop_of
from models.search import Search
from spec import Field, Range, Registry
from tasks.image_classification import PixelEncoding
from tests.command import ROOT
from training import config as configs
from training import page
from training.loop import Loop
from training.optimizer import OPTIMIZERS, Optimizer

FILES = sorted(path for path in (ROOT / "configs").glob("*.py") if "def get_config" in path.read_text())

# Small configs, in which there is a block of every kind, each with a run of version 1 on data of its kind.
VISITED = [
    ("image", "model=vit", "image_vit"),
    ("labeling", "model=transformer", "labeling_rnn"),
    ("classification", "model=transformer,attention=cosine", "classification_transformer"),
    ("classification", "model=cnn,unit=bytes", "classification_transformer"),
    ("speech", "model=transformer", "speech"),
    ("translation", "model=rnn", "translation_rnn"),
    ("reading", "model=rnn,self_matching=additive", "reading"),
    ("transcription", "model=transformer", "transcription"),
    ("captioning", "attention=hard", "captioning"),
    ("graph", "model=gat", "graph"),
]
SMALL = {"dim": 8, "num_layers": 1, "num_heads": 2, "hidden_dim": 8}
# What data there are decides these.
NOT_REFILLED = ("dataset.", "encoding.", "model.inputs.")


def get_config(file: str, argument: str):
    config = configs.from_file(f"{ROOT / 'configs' / file}.py:{argument},smoke", EXPERIMENT)
    names = {path: path.rpartition(".")[2] for path in configs.paths(config, EXPERIMENT)}
    small = {path: SMALL[name] for path, name in names.items() if name in SMALL}
    return configs.override(config, small, EXPERIMENT, parsed=True)


def inputs_of(run: str, config: Any) -> dict[str, Any]:
    """What a run of version 1 kept of its data."""
    inputs = json.loads((ROOT / f"tests/training/version_1/{run}.json").read_text())["inputs"]
    if config.model.get("inputs", {}).get("kind") == "bytes":
        inputs["vocabulary"] |= {"unit": "bytes", "words": [], "affixes": []}
    return inputs


Place = tuple[str, Any, Registry]  # a path that ends in a dot, the block there, and what it may be


def blocks(block: Any, part: Registry, path: str = "") -> Iterator[Place]:
    """Every block of a config."""
    yield path, block, part
    for name, field in part.fields(part.chosen(block)).items():
        value = block[name]
        if field.part is None or value is None:
            continue
        for number, each in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
            inside = f"{path}{name}." if number is None else f"{path}{name}.{number}."
            yield from blocks(each, field.part, inside)


def every() -> Iterator[tuple[str, Any, str, Any, Registry]]:
    """A run, a config, and a place in it: each row of each registry once, and each registry that is used."""
    rows, parts = set(), set()
    for file, argument, run in VISITED:
        left = [(get_config(file, argument), "")]
        while left:
            config, inside = left.pop()
            for path, block, part in blocks(config, EXPERIMENT):
                there = part.chosen(block)
                fixed = part.key is None or path in ("", *NOT_REFILLED)
                for word in [there] if fixed else part:
                    if not path.startswith(inside) or (part[word] in rows and part.what in parts):
                        continue
                    rows.add(part[word])
                    parts.add(part.what)
                    if word == there:
                        yield run, config, path, block, part
                        continue
                    other = configs.override(config, {path + str(part.key): word}, EXPERIMENT)
                    yield run, other, *next(each for each in blocks(other, EXPERIMENT) if each[0] == path)
                    left.append((other, path))


def another(field: Field, value: Any) -> Any:
    """A value that the field may hold, and not the one it has."""
    kind = field.type
    if get_origin(kind) is Literal:
        return next(word for word in get_args(kind) if word != value)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        return (
            tuple(each(1) for each in inner if each is not Ellipsis)
            if value is None
            else tuple(each + 1 for each in value)
        )
    if kind is bool:
        return not value
    if kind is int:
        return 2 if value is None else value + 1
    if kind is float:
        return next(one for one in (0.25, 0.5, 1.25) if one != value and one in (field.range or Range(0)))
    return "3 steps"  # also the name of a data set, a folder, a column


class Made(Exception):
    """The call that was waited for."""


@contextlib.contextmanager
def waiting_for(rows: set[Any], values: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The arguments with which a registry calls these rows; once all values are among them, that is the end.

    No data are read.
    """
    found: list[dict[str, Any]] = []
    fields, build = spec.fields, Registry.build

    def noting(self, block, where="config", **given):
        word = self.chosen(block, where)
        row = self.rows[word]

        def call(**arguments):
            if row in rows:
                found.append({name: value for name, value in arguments.items() if name in values})
                if {name: value for each in found for name, value in each.items()} == values:
                    raise Made
            return MagicMock() if row.__module__.endswith(".load") else row(**arguments)

        call.row = row  # type: ignore[attr-defined]
        before, self.rows = self.rows, {**self.rows, word: call}
        try:
            return build(self, block, where, **given)
        finally:
            self.rows = before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spec, "fields", lambda make: fields(getattr(make, "row", make)))
        patch.setattr(Registry, "build", noting)
        yield found


def make(path: str, config: Any, inputs: Any) -> None:
    """What a block at that path is made for, as far as it can be made of such values."""
    if path.startswith("optimizer."):
        OPTIMIZERS.build(config.optimizer, "config.optimizer")
        return
    task = tasks.build(config)
    if path.startswith("model."):
        nnx.eval_shape(lambda: task.make_model(inputs, nnx.Rngs(params=0)))
    elif path:
        task.data()
    else:
        loop_of(config)


def test_what_is_set_arrives():
    """One walk, and what does not arrive is told all together."""
    lost, visited = [], 0
    for run, config, path, block, part in every():
        word = part.chosen(block)
        fields = {name: field for name, field in part.fields(word).items() if field.part is None}
        values = {name: another(field, block[name]) for name, field in fields.items()}
        if "final" in values:  # which does not go with no checkpoints
            values["final"] = "last"
        if config.task == "sequence_labeling" and not path:
            values["label_smoothing"] = 0.5
        changed = configs.override(config, {path + name: str(v) for name, v in values.items()}, EXPERIMENT)
        resolved = next(each for at, each, _ in blocks(changed, EXPERIMENT) if at == path)
        assert {name: resolved[name] for name in values} == values
        rows = {part[word]} | ({Loop} if not path else set())
        with waiting_for(rows, values) as calls, contextlib.suppress(Made):
            make(path, changed, inputs_of(run, changed))
        arrived = [item for each in calls for item in each.items()]
        lost += [f"{path}{name} of {word}" for name, value in values.items() if (name, value) not in arrived]
        if not calls and part[word] is not spec.nothing:
            lost.append(f"{path} {word} is never made")
        visited += 1
    assert not lost, "\n".join(lost)
    assert visited > 100


def test_every_registry_is_walked():
    """A kind of part that no config above has would not be tried."""
    walked = {part.what: part for *_, part in every()}
    for part in walked.values():
        for word in part:
            for name, field in part.fields(word).items():
                assert field.part is None or field.part.what in walked, (part.what, word, name)


# Where the fields of a dataclass are read besides its own module.
READERS = {Loop: ("train.py", "predict.py"), Optimizer: ("train.py", "training/state.py"), Search: ("tasks",)}


def unread(make: Any, names: set[str], *elsewhere: str) -> set[str]:
    """The arguments of a call that it does not look at, or the fields of a dataclass that nobody reads."""
    if not names:
        return names
    if not dataclasses.is_dataclass(make):
        function = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        nodes = [node for statement in tree.body for node in ast.walk(statement)]  # type: ignore[attr-defined]
        return names - {node.id for node in nodes if isinstance(node, ast.Name) and loads(node)}
    own = {inspect.getsourcefile(each) for each in make.__mro__ if dataclasses.is_dataclass(each)}  # type: ignore[attr-defined]
    other = [
        place
        for name in elsewhere
        for place in (ROOT.glob(f"{name}/*.py") if "." not in name else [ROOT / name])
    ]
    for file in (*own, *other):
        nodes = list(ast.walk(ast.parse(Path(str(file)).read_text())))
        names -= {node.attr for node in nodes if isinstance(node, ast.Attribute) and loads(node)}
        if file in other:  # durations are asked for by name
            names -= {node.value for node in nodes if isinstance(node, ast.Constant)}
    return names


def loads(node: Any) -> bool:
    return isinstance(node.ctx, ast.Load)


def test_nothing_that_can_be_set_is_a_dead_letter():
    rows = {part[part.chosen(block)]: set(part.fields(part.chosen(block))) for *_, block, part in every()}
    for make, names in rows.items():
        names = names - set(spec.fields(Loop)) if make in tasks.TASKS.rows.values() else names
        readers = [READERS.get(base, ()) for base in getattr(make, "__mro__", ())]
        in_tasks = make in tasks.TASKS.rows.values() or make is PixelEncoding
        assert unread(make, names, *itertools.chain(*readers), *(["tasks"] if in_tasks else [])) == set(), (
            make
        )


def test_a_dead_letter_is_seen():
    @dataclasses.dataclass
    class Kept:
        read: int
        forgotten_field: int

        def rule(self):
            return self.read

    def function(used, *, left=1):
        left = used  # noqa: F841
        return used

    assert unread(Kept, set(spec.fields(Kept))) == {"forgotten_field"}
    assert unread(function, set(spec.fields(function))) == {"left"}
    assert unread(Loop, set(spec.fields(Loop))) > {"seed", "num_devices"}  # which train.py reads
    assert unread(Loop, set(spec.fields(Loop)), *READERS[Loop]) == set()


def arguments(file: str) -> list[str]:
    return ["", *(argument for name, argument, _ in VISITED if name == file)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_page_says_of_every_field_what_it_is_and_may_be(path):
    for argument in arguments(path.stem):
        config = configs.from_file(f"{path}:{argument}", EXPERIMENT)
        lines = page.shown(config, EXPERIMENT).splitlines()
        rows = [line for line in lines if line.startswith("    ") and line[4] != " "]
        assert len(rows) == len(configs.paths(config, EXPERIMENT))
        for name, value, field, part in configs.walk(config, EXPERIMENT):
            if field is None:
                assert part[value].__doc__, f"what {value} is"
                continue
            assert field.comment, f"what {name} is for"
            assert field.allowed.strip("."), f"what {name} may be"
            assert "None" not in str(field.allowed) or field.optional, name


def test_a_field_without_a_comment_is_seen():
    def commented(one: int = 1, two: int = 2):
        """Does.

        Args:
            one: of them all.
        """

    assert [field.comment for field in spec.fields(commented).values()] == ["of them all.", ""]
