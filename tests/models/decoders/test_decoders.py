"""No decoder goes without the contract of all."""

import pytest

from models.decoders import DECODERS
from tests.command import ROOT


@pytest.mark.parametrize("word", DECODERS)
def test_every_decoder_is_held_to_the_contract(word):
    """A word in the table, and nobody who looks whether it can do what a decoder must."""
    tests = [path.read_text() for path in (ROOT / "tests" / "models").rglob("test_*.py")]
    assert any("check_decoder(" in test and DECODERS[word].__name__ in test for test in tests)
