"""Strict settings for every test; they must be made before JAX is first imported."""

import gc
import os

# Two devices; and little work for the compiler, which most of a test is: no optimisation, and of its two
# generators of code for CPU the older, which takes half as long. With ATTENTION_TEST_EMITTERS=1, as in `make
# smoke`, tests run on the newer one, as users do.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
    + " --xla_cpu_use_fusion_emitters=false" * (os.environ.get("ATTENTION_TEST_EMITTERS") != "1"),
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


def group(nodeid: str) -> str:
    """Tests that share compiled programs: those of a file, or all of one mechanism."""
    path, _, test = nodeid.partition("::")
    return path + test[test.find("[") :] if path.endswith("test_identities.py") and "[" in test else path


def pytest_collection_modifyitems(items):
    """The tests of a group come one after the other."""
    order: dict[str, int] = {}
    for item in items:
        order.setdefault(group(item.nodeid), len(order))
    items.sort(key=lambda item: order[group(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker for each group. By marks, as of --dist=loadgroup, pytest 9.2 and xdist 3.8 do not do it."""
    from xdist.scheduler import LoadScopeScheduling

    scheduling = LoadScopeScheduling(config, log)
    scheduling._split_scope = group
    return scheduling


def pytest_collection_finish(session):
    """Let the collector of garbage pass over what has been imported, each time that a program is traced."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item, nextitem):
    """Forget what a file has compiled: little of it is used by another, and together it is gigabytes."""
    if nextitem is not None and item.path != nextitem.path:
        jax.clear_caches()
