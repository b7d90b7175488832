"""Checkpoints that notice when they are damaged.

`DIR/latest` holds the newest N steps and `DIR/best` the one best, kept by two managers with a rule each.
Orbax writes them; every finished step directory is then sealed with the SHA-256 of each of its files, and
nothing is restored whose seal is missing or does not hold, since Orbax alone restores a flipped bit without
a word.
"""

import dataclasses
import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from errors import RunError
from training.state import TrainState

SEAL = "SHA256.json"


@dataclasses.dataclass(frozen=True)
class Best:
    """The best evaluation so far: its step, its metric, and the state then."""

    step: int
    value: float
    state: TrainState


def _digests(directory: Path) -> dict[str, str]:
    files = sorted(f for f in directory.rglob("*") if f.is_file() and f.name != SEAL)
    return {str(f.relative_to(directory)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def damage(directory: Path) -> str | None:
    """What is wrong with a step directory, or None if it is as it was sealed."""
    try:
        sealed = json.loads((directory / SEAL).read_text())
    except FileNotFoundError:
        return "it was never finished"
    except (OSError, ValueError):
        return f"its {SEAL} is unreadable"
    found = _digests(directory)
    for name in sorted(sealed.keys() | found.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in sealed:
            return f"{name} does not belong to it"
        if sealed[name] != found[name]:
            return f"{name} has changed since it was written"
    return None


class _Shelf:
    """One directory of sealed steps, of which the newest `keep` stay."""

    def __init__(self, directory: Path, keep: int):
        self.directory = directory.absolute()  # Orbax takes no relative path
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=False)
        self.manager = ocp.CheckpointManager(self.directory, options=options, item_names=("state", "about"))

    def save(self, step: int, state: TrainState, about: dict[str, Any]) -> None:
        if step in self.manager.all_steps():  # a damaged one that the run has caught up with
            self.manager.delete(step)
        items = ocp.args.Composite(state=ocp.args.StandardSave(vars(state)), about=ocp.args.JsonSave(about))
        self.manager.save(step, args=items, force=True)
        self.manager.wait_until_finished()
        place = self.directory / str(step)
        part = place / (SEAL + ".part")
        part.write_text(json.dumps(_digests(place), indent=1))
        part.rename(place / SEAL)

    def restore(self, template: TrainState, say) -> Iterator[tuple[TrainState, dict[str, Any]]]:
        """All that are undamaged, newest first; RunError if there are some, but every one is damaged."""
        steps, sound = sorted(self.manager.all_steps(), reverse=True), 0
        for step in steps:
            wrong = damage(self.directory / str(step))
            if wrong is not None:
                say(f"checkpoint {self.directory.name}/{step} is damaged ({wrong}); trying the one before")
                continue
            items = ocp.args.Composite(
                state=ocp.args.StandardRestore(jax.tree.map(_abstract, vars(template))),
                about=ocp.args.JsonRestore(),
            )
            restored = self.manager.restore(step, args=items)
            sound += 1
            yield TrainState(**restored["state"]), restored["about"]
        if steps and not sound:
            raise RunError(f"every checkpoint in {self.directory} is damaged; remove it to start from step 0")


def _reason(error: Exception) -> str:
    """What the system said, out of the long messages of the storage library."""
    text = " ".join(str(error).split())
    said = re.search(r"(No space left on device|File too large|[A-Z][\w ]+) \[os_error_code", text)
    return said[1] if said else f"{type(error).__name__}: {text[:200]}"


def _abstract(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)


class Checkpoints:
    """The checkpoints of one run.

    Args:
        directory: made if missing.
        keep: newest checkpoints to keep, at least 2, so that a damaged one has one before it.
    """

    def __init__(self, directory: Path, keep: int):
        self.latest = _Shelf(directory / "latest", keep)
        self.best = _Shelf(directory / "best", 1)
        self._best_saved: int | None = None

    def save(self, state: TrainState, data: dict[str, Any], best: Best | None) -> None:
        """Write the state of a step, and the best one if it has changed.

        Args:
            state: the run's state.
            data: the state of the data iterator.
            best: the best evaluation so far.

        Raises:
            RunError: if it could not be written, such as on a full disk. What was there stays.
        """
        step = int(state.step)
        hook = sys.unraisablehook
        # When a write fails, Orbax's threads log and print tracebacks of their own, before its exception
        # arrives here and after; the error raised below says it all. So the hook stays off if it fails.
        logging.disable(logging.CRITICAL)
        sys.unraisablehook = lambda unraisable: None
        try:
            # The best first: a crash in between then leaves a best that the resumed run meets again.
            if best is not None and best.step != self._best_saved:
                self.best.save(best.step, best.state, {"step": best.step, "value": best.value})
                self._best_saved = best.step
            self.latest.save(step, state, data)
        except Exception as error:  # Orbax wraps a full disk in several types
            raise RunError(
                f"could not write the checkpoint of step {step} in {self.latest.directory}: "
                f"{_reason(error)}; those before it are untouched"
            ) from error
        sys.unraisablehook = hook
        logging.disable(logging.NOTSET)

    def restore(
        self, template: TrainState, say=print
    ) -> tuple[TrainState, dict[str, Any], Best | None] | None:
        """The newest undamaged state, its data iterator's state, and the best; None if there is none.

        Args:
            template: a state of the same structure, shapes and sharding.
            say: called with one line for each damaged checkpoint that is passed over.

        Raises:
            RunError: if there are checkpoints, but every one is damaged.
        """
        latest = next(self.latest.restore(template, say), None)
        if latest is None:
            return None
        try:
            best = next(self.best.restore(template, say), None)
        except RunError:  # the run is sound without it
            say("the best checkpoint is damaged: from here on, the best is chosen among what follows")
            best = None
        if best is None:
            return *latest, None
        state, about = best
        self._best_saved = about["step"]
        return *latest, Best(about["step"], about["value"], state)

    def newest(self, template: TrainState, say=print) -> Iterator[TrainState]:
        """All undamaged states among the newest ones kept, newest first.

        Args:
            template: a state of the same structure, shapes and sharding.
            say: called with one line for each damaged checkpoint that is passed over.

        Raises:
            RunError: if there are checkpoints, but every one is damaged.
        """
        return (state for state, _ in self.latest.restore(template, say))
