"""Imports run one way, module by module, and are cheap: the arrows of the house, read from the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import command
from tests.command import ROOT

# What each package or module of ours may import of ours, besides itself.
ALLOWED = {
    "errors": set(),
    "spec": {"errors"},
    "attention": set(),
    "models": {"attention", "spec", "errors"},
    "data": {"spec", "errors"},
    "training": {"spec", "errors"},
    "tasks": {"attention", "models", "data", "spec", "errors"},
    "configs": {"models", "data", "tasks", "training", "spec", "errors"},
    "train": {"data", "tasks", "training", "configs", "spec", "errors"},
    "predict": {"data", "tasks", "training", "configs", "spec", "errors"},
    "experiments": {
        "attention",
        "models",
        "data",
        "tasks",
        "training",
        "train",
        "predict",
        "configs",
        "spec",
        "errors",
    },
    "benchmarks": {
        "attention",
        "models",
        "data",
        "tasks",
        "training",
        "configs",
        "experiments",
        "spec",
        "errors",
    },
}

# The only packages of others that these may import, besides the standard library.
ONLY = {
    "errors": set(),
    "spec": {"ml_collections"},
    "attention": {"jax", "numpy", "jaxtyping"},
    "configs": {"ml_collections"},
}

# Packages of others that may be imported by those named here alone.
KEPT_TO = {
    "tensorflow": set(),
    "torch": {"benchmarks"},
    "jax": {"attention", "models", "tasks", "training", "train", "predict", "experiments", "benchmarks"},
    "flax": {"models", "tasks", "training", "train", "predict", "benchmarks"},
}

# Not ours to hold to a rule: environments, caches, what runs leave behind.
OUTSIDE = {"runs", "build", "__pycache__"}
NAMELESS = {"utils", "util", "common", "helpers", "helper", "misc"}


def imported(source: str) -> set[str]:
    """Top-level names a source imports, wherever in it; a relative import is of its own package."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).split(".")[0])
    return names


def violations(importer: str, source: str) -> set[str]:
    """What a source of the package or module `importer` imports against the three tables."""
    wrong = set()
    for name in imported(source) - {importer}:
        ours = name in ALLOWED
        if ours and name not in ALLOWED[importer]:
            wrong.add(name)
        if not ours and importer in ONLY and name not in ONLY[importer] | sys.stdlib_module_names:
            wrong.add(name)
        if importer not in KEPT_TO.get(name, {importer}):
            wrong.add(name)
    return wrong


def sources(root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """Every source file outside the tests, with the package or module it belongs to."""
    for path in walk(root):
        if path.suffix == ".py":
            top = path.relative_to(root).parts[0].removesuffix(".py")
            if top != "tests":
                yield top, path


def module(path: Path, root: Path) -> str:
    """The name a source file is imported by."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    """What each module of ours imports of ours, wherever in it.

    `from data.text import files` imports the module `data.text.files` where that is one, and what stands in
    `data/text/__init__.py` where it is none.
    """
    paths = {module(path, root): path for _, path in sources(root)}
    return {name: needs(path.read_text(), name, path, set(paths)) for name, path in paths.items()}


def needs(source: str, name: str, path: Path, known: set[str]) -> set[str]:
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in known else base)
    return (found & known) - {name}


def circles(of: dict[str, set[str]]) -> list[list[str]]:
    """Every largest set of modules that all need each other, directly or through others, by name."""
    after = {name: reached(of, name) for name in of}
    members = {tuple(sorted(other for other in after[name] if name in after[other])) for name in of}
    return [list(circle) for circle in sorted(members - {()})]


def reached(of: dict[str, set[str]], start: str) -> set[str]:
    """All that a module needs, directly or through others; itself where that goes round in a circle."""
    found, edge = set(), {start}
    while edge:
        edge = {other for name in edge for other in of[name]} - found
        found |= edge
    return found


def walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in OUTSIDE or path.name.endswith(".egg-info"):
            continue
        if path.is_dir() and not (path / "pyvenv.cfg").exists():
            yield path
            yield from walk(path)
        elif path.is_file():
            yield path


def test_imports_run_one_way():
    found = {
        str(path.relative_to(ROOT)): wrong
        for importer, path in sources()
        if (wrong := violations(importer, path.read_text()))
    }
    assert not found


def test_no_modules_import_each_other():
    assert circles(graph()) == []


def test_every_package_has_its_row():
    assert {importer for importer, _ in sources()} <= set(ALLOWED)


def test_the_rule_has_no_circle():
    assert circles(ALLOWED) == []


@pytest.fixture
def plant(tmp_path):
    """Writes modules into a tree of their own and gives what circles there are."""

    def plant(modules):
        for name, source in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return circles(graph(tmp_path))

    return plant


@pytest.mark.parametrize(
    "one, other",
    [
        ("from data.text import other", "import data.text.one"),
        ("def f():\n    from data.text import other as o", "if True:\n    from data.text.one import x"),
        ("from . import other", "from .one import x"),
        ("from ..text import other", "from ..text.one import x"),
    ],
)
def test_a_circle_inside_a_folder_is_seen(one, other, plant):
    assert plant({"data/text/one": one, "data/text/other": ""}) == []
    assert plant({"data/text/other": other}) == [["data.text.one", "data.text.other"]]


def test_a_circle_is_whole_and_beside_others(plant):
    """Four modules of which any reaches all; two others; one that only uses them, and one that all use."""
    modules = {
        "a/one": "from a import two, four\nimport d",
        "a/two": "import a.three",
        "a/three": "from a.one import x",
        "a/four": "import a.one",
        "b/one": "from b import two",
        "b/two": "from b import one\nimport d",
        "c": "from a import one\nimport b.one",
        "d": "import os",
    }
    assert plant(modules) == [["a.four", "a.one", "a.three", "a.two"], ["b.one", "b.two"]]


def test_a_name_of_a_package_is_what_its_init_holds(plant):
    """So a module may not take from its own package what that takes from the module."""
    assert plant({"a/__init__": "from a.one import x", "a/one": "from a import two", "a/two": ""}) == []
    assert plant({"a/two": "from a import x"}) == [["a", "a.one", "a.two"]]


@pytest.mark.parametrize(
    "importer, source, caught",
    [
        ("attention", "import jax.numpy as jnp, numpy, math\nfrom attention import masks", set()),
        ("attention", "from flax import nnx", {"flax"}),
        ("attention", "def f():\n    import models.vit", {"models"}),
        ("attention", "import errors", {"errors"}),
        ("models", "import data.image as i, attention", {"data"}),
        ("models", "import spec", set()),
        ("spec", "import ml_collections, models, jax", {"models", "jax"}),
        ("models", "from training import state", {"training"}),
        ("data", "if True:\n    import jax", {"jax"}),
        ("data", "from . import streams\nfrom .idx import read", set()),
        ("tasks", "import train", {"train"}),
        ("training", "from tasks.task import Task\nimport tensorflow as tf", {"tasks", "tensorflow"}),
        ("configs", "import optax", {"optax"}),
        ("experiments", "import train, torch", {"torch"}),
        ("benchmarks", "import torch\nfrom train import Run", {"train"}),
    ],
)
def test_the_checker_sees(importer, source, caught):
    assert violations(importer, source) == caught


def test_no_file_or_folder_has_a_name_that_says_nothing():
    assert [str(path) for path in walk(ROOT) if path.stem in NAMELESS] == []


def python(source: str) -> str:
    environment = {**command.environment(), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", source], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_attention_adds_little_to_importing_jax():
    source = (
        "import time, jax; start = time.process_time(); import attention; print(time.process_time() - start)"
    )
    assert min(float(python(source)) for _ in range(3)) < 0.3


def test_training_on_digits_looks_for_no_tensorflow_or_torch():
    """Not even to see whether they are there, which would import them where they are."""
    looked_for = python(
        "import sys\n"
        "class Watch:\n"
        "    seen = set()\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        self.seen.add(name.split('.')[0])\n"
        "sys.meta_path.insert(0, Watch())\n"
        "import train\n"
        "from data.image import load\n"
        "load.labelled('digits')\n"
        "print(sorted(Watch.seen & {'tensorflow', 'torch', 'jax', 'train'}))"
    )
    assert looked_for.strip() == "['jax', 'train']"
