# SPDX-License-Identifier: Apache-2.0
"""Errors, split by whose fault they are."""

from __future__ import annotations

import difflib
from typing import Any


class RebatError(Exception):
    """Base of every error that rebat raises on purpose; its text is one readable line."""


class InputError(RebatError):
    """The user's input is wrong: a file, an option, a message from the peer.

    Parameters
    ----------
    what : str
        What is wrong.
    where : str, optional
        Where: a file with its line, a job id, an option.
    expected : str, optional
        What was expected instead.
    """

    def __init__(self, what: str, where: str | None = None, expected: str | None = None) -> None:
        self.what, self.where, self.expected = what, where, expected
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text} (expected {expected})" if expected else text)

    def at(self, where: str) -> InputError:
        """The same error with an outer place put before its own (a file before a line)."""
        place = f"{where}: {self.where}" if self.where else where
        return InputError(self.what, place, self.expected)


class BatsimAbort(RebatError):
    """A decision on which a real Batsim would have died (exit 134), and why."""


class PolicyError(RebatError):
    """A policy proposed what the session had to refuse, in a run that was asked to be strict."""


def unknown_name(kind: str, name: str, choices: object) -> InputError:
    """The error for a name that is not in a table; it lists what is there."""
    names = sorted(str(choice) for choice in choices)  # type: ignore[attr-defined]
    near = difflib.get_close_matches(str(name).lower(), names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return InputError(f"unknown {kind} {name!r}{hint}", expected=f"one of: {', '.join(names)}")


def short(value: Any) -> str:
    """A value as an error shows it: in one line of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """An error as one line; one that was not raised on purpose with its type."""
    text = str(error) if isinstance(error, RebatError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
