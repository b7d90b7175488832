"""Imports run one way, and are cheap: the arrows of DESIGN section 2, read from the source."""

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
    "attention": set(),
    "models": {"attention", "errors"},
    "data": {"errors"},
    "tasks": {"attention", "models", "data", "errors"},
    "training": {"errors"},
    "configs": {"errors"},
    "train": {"tasks", "training", "errors"},
    "predict": {"tasks", "training", "errors"},
    "experiments": {
        "attention",
        "models",
        "data",
        "tasks",
        "training",
        "train",
        "predict",
        "configs",
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
        "errors",
    },
}

# The only packages of others that these may import, besides the standard library.
ONLY = {
    "errors": set(),
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


def modules() -> Iterator[tuple[str, Path]]:
    """Every source file outside the tests, with the package or module it belongs to."""
    for path in walk(ROOT):
        if path.suffix == ".py":
            top = path.relative_to(ROOT).parts[0].removesuffix(".py")
            if top != "tests":
                yield top, path


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
        for importer, path in modules()
        if (wrong := violations(importer, path.read_text()))
    }
    assert not found


def test_every_package_has_its_row():
    assert {importer for importer, _ in modules()} == set(ALLOWED)


def test_the_rule_has_no_circle():
    left = dict(ALLOWED)
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        assert free, f"these need each other: {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


@pytest.mark.parametrize(
    "importer, source, caught",
    [
        ("attention", "import jax.numpy as jnp, numpy, math\nfrom attention import masks", set()),
        ("attention", "from flax import nnx", {"flax"}),
        ("attention", "def f():\n    import models.vit", {"models"}),
        ("attention", "import errors", {"errors"}),
        ("models", "import data.image as i, attention", {"data"}),
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
        "import time, jax; start = time.perf_counter(); import attention; print(time.perf_counter() - start)"
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
        "from data.image import dataset\n"
        "dataset.load('digits')\n"
        "print(sorted(Watch.seen & {'tensorflow', 'torch', 'jax', 'train'}))"
    )
    assert looked_for.strip() == "['jax', 'train']"
