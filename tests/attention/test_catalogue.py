import inspect
import operator
from pathlib import Path

import pytest

import attention
from attention import catalogue
from tests.attention.rows import MECHANISMS

ROWS = [row for rows in catalogue.CATALOGUE.values() for row in rows]
PAGE = Path(attention.__file__).parent / "README.md"


def test_every_name_is_there_once():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for name in names:
        assert operator.attrgetter(name)(attention).__doc__


@pytest.mark.parametrize("module", ["scores", "normalizers", "masks", "positions", "pooling", "localness"])
def test_every_public_function_is_in_it(module):
    # Those that make another row's arguments are no rows of their own.
    parts = {"places", "check_lengths", "gaussian", "predict"}
    functions = {
        name
        for name, member in vars(getattr(attention, module)).items()
        if callable(member)
        and not name.startswith("_")
        and not inspect.isclass(member)
        and inspect.unwrap(member).__module__ == f"attention.{module}"
    }
    assert functions - parts == {row.name.split(".")[1] for row in ROWS if row.name.startswith(f"{module}.")}


def test_every_mechanism_is_held_to_the_identities():
    mechanisms = {name.removesuffix("_attention") for name in attention.__all__ if "_attention" in name}
    assert len(mechanisms) > 15
    held = {word.removesuffix("_attention") for m in MECHANISMS for word in m.name.split("-")}
    assert mechanisms <= held


def test_the_tables_of_the_page_are_fresh():
    text = PAGE.read_text()
    message = "run: python -m attention.catalogue attention/README.md"
    assert catalogue.update(text) == text, message
