"""Strict settings for every test; they must be made before JAX is first imported."""

import os

# Two devices; and little time for the compiler, which most of a test is: no optimisation, and the older of
# its two code generators for CPU, which takes half as long. Users run the newer one, and so does
# `make smoke`, by ATTENTION_TEST_EMITTERS=1.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
    + ("" if os.environ.get("ATTENTION_TEST_EMITTERS") == "1" else " --xla_cpu_use_fusion_emitters=false"),
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from tests import command

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# A second run of the tests finds it compiled.
jax.config.update("jax_compilation_cache_dir", str(command.ROOT / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def group(item):
    """Tests that share compiled programs: those of a file, or all of one mechanism."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return f"{item.path.parent.name}/{getattr(parameters.get('mechanism'), 'name', item.path.name)}"


def pytest_collection_modifyitems(items):
    """One worker for each group, whose tests come one after the other."""
    order: dict[str, int] = {}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
        order.setdefault(group(item), len(order))
    items.sort(key=lambda item: order[group(item)])


def pytest_runtest_teardown(item, nextitem):
    """Forget what a file has compiled: little of it is used by another, and together it is gigabytes."""
    if nextitem is not None and item.path != nextitem.path:
        jax.clear_caches()
