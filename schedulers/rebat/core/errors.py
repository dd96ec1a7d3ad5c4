# SPDX-License-Identifier: Apache-2.0
"""Errors, with a class for each source: user input, decisions for Batsim, policies."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class RebatError(Exception):
    """Base class of all errors that rebat raises intentionally. The error text is a single line."""


class InputError(RebatError):
    """Invalid input: a file, an option, or a message of the simulator or scheduler.

    Parameters
    ----------
    problem : str
        The problem.
    where : str, optional
        Place of the problem: a file and its line, a job id, or an option.
    expected : str, optional
        The expected value or input.
    """

    def __init__(self, problem: str, where: str | None = None, expected: str | None = None) -> None:
        self.problem, self.where, self.expected = problem, where, expected
        text = f"{where}: {problem}" if where else problem
        super().__init__(f"{text} (expected {expected})" if expected else text)

    def at(self, where: str) -> InputError:
        """Return the error with ``where`` in front of its place, such as a file before a line."""
        place = f"{where}: {self.where}" if self.where else where
        return InputError(self.problem, place, self.expected)


@contextmanager
def error_at(place: str) -> Iterator[None]:
    """Add a place to errors raised in the block, for example the name of an option."""
    try:
        yield
    except InputError as error:
        raise error.at(place) from None


class BatsimAbort(RebatError):
    """A decision at which a real Batsim would have aborted."""


class Deadlock(BatsimAbort):
    """Jobs wait, but no event is left. A real Batsim would have ended without their results."""


class PolicyError(RebatError):
    """Error of a policy: the session refused its proposal in a strict run."""


MOST_NAMES = 30
"""Maximum number of valid names that an error lists."""


def unknown_name(kind: str, name: str, choices: object, listed: str = "") -> InputError:
    """Return the error for a name that is not in a table.

    The error lists the valid names. If there are more than `MOST_NAMES`, it lists the five nearest.

    Parameters
    ----------
    kind : str
        What the name stands for.
    name : str
        The invalid name.
    choices : iterable of str
        The valid names.
    listed : str
        The command that lists all names.
    """
    names = sorted(str(choice) for choice in choices)  # type: ignore[attr-defined]
    near = difflib.get_close_matches(str(name).lower(), names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    expected = f"one of: {', '.join(names)}" if names else f"no {kind}"
    if len(names) > MOST_NAMES:
        with_it = [choice for choice in names if str(name).lower() in choice.lower()]
        close = difflib.get_close_matches(str(name).lower(), names, n=5, cutoff=0)
        nearest = list(dict.fromkeys([*with_it[:5], *close]))[:5]
        where = f", see '{listed}'" if listed else ""
        expected = f"{', '.join(nearest)}, or {len(names) - len(nearest)} others{where}"
    return InputError(f"unknown {kind} {name!r}{hint}", expected=expected)


def check_keys(table: Iterable[str], valid: Sequence[str], where: str) -> None:
    """Raise InputError if a key of a table is unknown."""
    for key in table:
        if key not in valid:
            error = unknown_name("key", key, valid)
            raise error.at(where) if where else error


def not_installed(package: str, where: str, extra: str = "campaign") -> InputError:
    """Return the error for a missing package, with the command that installs it."""
    problem = (
        f"{package} is not installed; install it with: pip install 'rebat[{extra}]' (in a checkout "
        f"of rebat: pip install '.[{extra}]')"
    )
    return InputError(problem, where)


def short(value: Any) -> str:
    """Return a value for an error message: one line of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """Return an error as one line. For an unexpected error, the line includes the type."""
    text = str(error) if isinstance(error, RebatError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
