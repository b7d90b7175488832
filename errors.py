"""Errors a user can mend: one line that says what was wrong, where, and what is allowed."""

import argparse
import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what the user gave. Entry points print it as one line and exit with `exit_code`."""

    exit_code = 2


class RunError(UserError):
    """A run that could not go on (not-a-number, full disk, damaged file), through no wrong argument."""

    exit_code = 1


class ArgumentParser(argparse.ArgumentParser):
    """A command line whose mistakes are UserErrors, one line, rather than a page of usage."""

    def error(self, message: str):
        """Raise what argparse would print."""
        raise UserError(f"{message}; --help shows what is allowed")


def unknown(kind: str, word: str, allowed: Iterable[str]) -> UserError:
    """The error for a `word` that is none of `allowed`, with the nearest of them as a suggestion."""
    names = sorted(map(str, allowed))
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {word!r}.{hint} Allowed: {', '.join(names)}")
