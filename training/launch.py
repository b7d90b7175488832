"""How a command starts and how it ends: allocator, compilation cache, one-line errors, exit codes.

Nothing here imports JAX at the top, since `with_allocator` must come before it.
"""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from errors import RunError, UserError

# Large blocks come from one heap that is never given back, in huge pages.
_TUNABLES = {
    "glibc.malloc.hugetlb": 1,
    "glibc.malloc.mmap_threshold": 2**30,
    "glibc.malloc.trim_threshold": 2**32,
    "glibc.malloc.arena_max": 1,
}


def allocator_environment() -> dict[str, str]:
    """The environment with glibc told to keep its memory, or as it is where that does not apply.

    XLA's CPU backend allocates a step's temporaries afresh every step, and most of a small model's step
    is page faults; with these settings the same program takes about half the time. Settings that the
    user has made stay as they are.
    """
    environment = dict(os.environ)
    given = [setting for setting in environment.get("GLIBC_TUNABLES", "").split(":") if setting]
    names = {setting.split("=")[0] for setting in given}
    if sys.platform == "linux":
        ours = [f"{name}={value}" for name, value in _TUNABLES.items() if name not in names]
        environment["GLIBC_TUNABLES"] = ":".join([*given, *ours])
    return environment


def with_allocator() -> None:
    """Start this command once more with `allocator_environment`; do nothing if it is in force.

    A notebook can't be started again; there, set `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` before Jupyter,
    which alone does most of it.
    """
    environment = allocator_environment()
    if environment != dict(os.environ):
        with contextlib.suppress(OSError):  # not started again is slower, not wrong
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def compilation_cache() -> None:
    """Keep compiled programs across processes, in `$ATTENTION_CACHE` (default `~/.cache/attention`)."""
    import jax

    home = Path(os.environ.get("ATTENTION_CACHE", "~/.cache/attention")).expanduser()
    jax.config.update("jax_compilation_cache_dir", str(home / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def run(main: Callable[[], int | None]) -> None:
    """Call a command's main function and exit: errors a user can mend are one line on stderr.

    Exit codes: 0 done, 1 the run failed, 2 wrong arguments, 130 interrupted, 141 nobody reads on (as with
    `| head`), 143 stopped by SIGTERM.
    """
    # In place of the handler of absl, which comes with the libraries and says where in them one is.
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING, force=True)
    try:
        code = main() or 0
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # What is left unwritten would be tried once more at exit, and complained about.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141  # 128 + SIGPIPE
    sys.exit(code)


class Terminated(RunError):
    """A run that SIGTERM stopped, after its checkpoint."""

    exit_code = 128 + signal.SIGTERM


class Termination:
    """Notes SIGTERM instead of dying of it, so that a run can write a checkpoint first."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> "Termination":
        def note(signum, frame):
            self.requested = True

        try:
            self._before = signal.signal(signal.SIGTERM, note)
        except ValueError:  # not the main thread: the caller keeps its own handler
            self._before = None
        return self

    def __exit__(self, *exception) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
