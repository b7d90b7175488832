"""Tests of attention/ run with every shape annotation checked by beartype.

A wrong call is refused by those annotations before the contract can speak. So the checks are on for
every test of this folder except those that ask for `untyped`, which are about the contract's own
errors; and off for the tests of other folders.
"""

import jaxtyping
import pytest

jaxtyping.install_import_hook("attention", "beartype.beartype")
jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def _typed(request):
    jaxtyping.config.update("jaxtyping_disable", "untyped" in request.fixturenames)
    yield
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture
def untyped():
    """Annotations are not checked."""


@pytest.fixture
def x64():
    """Arrays of float64 and int64 are allowed."""
    import jax

    with jax.enable_x64(True):
        yield
