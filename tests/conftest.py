"""Strict settings for every test; they must be made before JAX is first imported."""

import os

# Two devices; and no optimisation, since most of a test is compiling.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from tests import command

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# A second run of the tests finds it compiled.
jax.config.update("jax_compilation_cache_dir", str(command.ROOT / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def pytest_collection_modifyitems(items):
    """One worker for tests that share compiled programs: those of a file, or all of one mechanism."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        group = getattr(parameters.get("mechanism"), "name", item.path.name)
        item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}/{group}"))
