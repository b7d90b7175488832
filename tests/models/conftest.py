"""Models are compiled for these tests many times and run once, so compile them fast."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _compile_fast():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
