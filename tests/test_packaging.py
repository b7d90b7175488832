"""What `pip install .` brings into an environment, and that all which is imported is declared."""

import ast
import re
import sys
import tomllib
from importlib import metadata

import pytest
from setuptools import find_namespace_packages

from tests.command import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CHECKOUT = ("benchmarks", "configs", "data", "experiments", "models", "tasks", "training")
CHECKOUT += ("errors.py", "predict.py", "train.py")


def names(requirements):
    return {re.match(r"[A-Za-z0-9_.-]+", line)[0].lower().replace("_", "-") for line in requirements}


DEPENDENCIES = names(PROJECT["project"]["dependencies"])
EXTRAS = {extra: names(of) for extra, of in PROJECT["project"]["optional-dependencies"].items()}


def test_only_attention_is_installed_and_all_of_it():
    settings = PROJECT["tool"]["setuptools"]
    assert settings["py-modules"] == []
    found = find_namespace_packages(str(ROOT), **settings["packages"]["find"])
    assert {name.split(".")[0] for name in found} == {"attention"}
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "attention").rglob("*.py")}
    assert {".".join(folder.parts) for folder in folders} == set(found)


def test_it_needs_three_packages():
    assert sorted(DEPENDENCIES) == ["jax", "jaxtyping", "numpy"]


def imported(folder):
    """Top-level names that the files of a folder import of others."""
    for path in folder.rglob("*.py") if folder.is_dir() else [folder]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield str(node.module).split(".")[0]


@pytest.mark.parametrize("folders, extras", [(("attention",), ()), (CHECKOUT, set(EXTRAS) - {"dev"})])
def test_what_is_imported_is_declared(folders, extras):
    declared = DEPENDENCIES.union(*(EXTRAS[extra] for extra in extras))
    installed = metadata.packages_distributions()  # what is not, fails where it is imported
    ours = {path.stem for path in ROOT.iterdir()}
    found = {name for folder in folders for name in imported(ROOT / folder)}
    missing = {
        name
        for name in found - sys.stdlib_module_names - ours
        if name in installed and not names(installed[name]) & declared
    }
    assert not missing
